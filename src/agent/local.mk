# SPDX-License-Identifier: BSD-3-Clause
# The agent of a node.
noinst_LTLIBRARIES += libagent.la
libagent_la_SOURCES = \
	src/agent/agent.c src/agent/agent.h \
	src/agent/agent_missing.c \
	src/agent/agent_control.c src/agent/agent_control.h \
	src/agent/agent_idle.c \
	src/agent/agent_internal.h \
	src/agent/agent_links.c \
	src/agent/agent_lookup.c \
	src/agent/agent_ranks.c \
	src/agent/agent_slots.c \
	src/agent/agent_srun.c \
	src/agent/agent_state.c src/agent/agent_state.h \
	src/agent/agent_tell.c \
	src/agent/agent_trace.c src/agent/agent_trace.h \
	src/agent/agent_wireup.c \
	src/agent/registration.c src/agent/registration.h \
	src/agent/stopped.c src/agent/stopped.h
libagent_la_CPPFLAGS = $(AM_CPPFLAGS) -D_GNU_SOURCE
libagent_la_CFLAGS = $(libio_la_CFLAGS)
