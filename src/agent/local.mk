# SPDX-License-Identifier: BSD-3-Clause
# The agent of a node.
noinst_LTLIBRARIES += libagent_nodeps.la libagent.la
# What who starts it needs, too: the C library only.
libagent_nodeps_la_SOURCES = \
	src/agent/setup.c src/agent/setup.h \
	src/agent/stopped.c src/agent/stopped.h \
	src/agent/unspoken.c src/agent/unspoken.h
libagent_nodeps_la_CPPFLAGS = $(AM_CPPFLAGS) -D_GNU_SOURCE
libagent_nodeps_la_CFLAGS = $(AM_CFLAGS) -fvisibility=hidden

libagent_la_SOURCES = $(files_src_agent) $(files_src_agent_peers) \
	$(files_src_agent_step)
libagent_la_CPPFLAGS = $(AM_CPPFLAGS) -D_GNU_SOURCE
libagent_la_CFLAGS = $(libio_la_CFLAGS)
libagent_la_LIBADD = libagent_nodeps.la libconfine.la libstore.la

# Started by slurmstepd's plugin and by the fake server.
pkglibexec_PROGRAMS += src/agent/pmi2x-agent
src_agent_pmi2x_agent_SOURCES = src/agent/main.c
src_agent_pmi2x_agent_CPPFLAGS = $(libagent_la_CPPFLAGS)
src_agent_pmi2x_agent_CFLAGS = $(libagent_la_CFLAGS)
src_agent_pmi2x_agent_LDADD = libagent.la libio.la libengine.la libpmi.la libshm.la \
	libcoll.la libutil.la $(LIBUV_LIBS) $(SODIUM_LIBS) $(XXHASH_LIBS) -lpthread
