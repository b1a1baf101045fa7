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

libagent_la_SOURCES = \
	src/agent/agent.c src/agent/agent.h \
	src/agent/host.h \
	src/agent/netinfo.c src/agent/netinfo.h \
	src/agent/node.c src/agent/node.h \
	src/agent/peers/connect_back.c src/agent/peers/connect_back.h \
	src/agent/peers/connect_back_listener.c src/agent/peers/connect_back_listener.h \
	src/agent/peers/links.c src/agent/peers/links.h \
	src/agent/peers/lookup.c src/agent/peers/lookup.h \
	src/agent/peers/missing.c src/agent/peers/missing.h \
	src/agent/peers/neighbour.c src/agent/peers/neighbour.h \
	src/agent/peers/peers.c src/agent/peers/peers.h \
	src/agent/peers/settings.c src/agent/peers/settings.h \
	src/agent/peers/wireup.c src/agent/peers/wireup.h \
	src/agent/pmix_stream.c src/agent/pmix_stream.h \
	src/agent/program.c src/agent/program.h \
	src/agent/step/control_path.c src/agent/step/control_path.h \
	src/agent/step/pmix_link.c src/agent/step/pmix_link.h \
	src/agent/step/ranks.c src/agent/step/ranks.h \
	src/agent/step/root_services.c src/agent/step/root_services.h \
	src/agent/step/service.c src/agent/step/service.h \
	src/agent/step/service_internal.h \
	src/agent/step/service_status.c src/agent/step/service_status.h \
	src/agent/step/slot_wakes.c src/agent/step/slot_wakes.h \
	src/agent/step/srun_link.c src/agent/step/srun_link.h \
	src/agent/step/store_link.c src/agent/step/store_link.h \
	src/agent/step/sync_door.c src/agent/step/sync_door.h \
	src/agent/step/holder_wait.c src/agent/step/holder_wait.h \
	src/agent/step/torch_door.c src/agent/step/torch_door.h \
	src/agent/step/torch_peers.c src/agent/step/torch_peers.h \
	src/agent/step/topology_wait.c src/agent/step/topology_wait.h \
	src/agent/step/trace.c src/agent/step/trace.h
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
