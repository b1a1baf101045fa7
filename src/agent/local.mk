# SPDX-License-Identifier: BSD-3-Clause
# The agent of a node.
noinst_LTLIBRARIES += libagent_plain.la libagent.la
# What who starts it needs, too: the C library only.
libagent_plain_la_SOURCES = \
	src/agent/host_msg.c src/agent/host_msg.h \
	src/agent/setup.c src/agent/setup.h
libagent_plain_la_CPPFLAGS = $(AM_CPPFLAGS) -D_GNU_SOURCE
libagent_plain_la_CFLAGS = $(AM_CFLAGS) -fvisibility=hidden

libagent_la_SOURCES = \
	src/agent/agent.c src/agent/agent.h \
	src/agent/agent_missing.c \
	src/agent/agent_control.c src/agent/agent_control.h \
	src/agent/agent_internal.h \
	src/agent/agent_links.c \
	src/agent/agent_lookup.c \
	src/agent/agent_ranks.c \
	src/agent/agent_slots.c \
	src/agent/agent_srun.c \
	src/agent/agent_status.c src/agent/agent_status.h \
	src/agent/agent_tell.c \
	src/agent/agent_trace.c src/agent/agent_trace.h \
	src/agent/agent_wireup.c \
	src/agent/confine.c src/agent/confine.h \
	src/agent/crash.c src/agent/crash.h \
	src/agent/filter.c src/agent/filter.h \
	src/agent/netinfo.c src/agent/netinfo.h \
	src/agent/program.c src/agent/program.h \
	src/agent/stopped.c src/agent/stopped.h
libagent_la_CPPFLAGS = $(AM_CPPFLAGS) -D_GNU_SOURCE
libagent_la_CFLAGS = $(libio_la_CFLAGS)
libagent_la_LIBADD = libagent_plain.la

# Started by slurmstepd's plugin and by the fake server.
pkglibexec_PROGRAMS += src/agent/pmi2x-agent
src_agent_pmi2x_agent_SOURCES = src/agent/main.c
src_agent_pmi2x_agent_CPPFLAGS = $(libagent_la_CPPFLAGS)
src_agent_pmi2x_agent_CFLAGS = $(libagent_la_CFLAGS)
src_agent_pmi2x_agent_LDADD = libagent.la libio.la libpmi.la libshm.la \
	libcoll.la libutil.la $(LIBUV_LIBS) $(SODIUM_LIBS) $(XXHASH_LIBS) -lpthread
