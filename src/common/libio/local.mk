# SPDX-License-Identifier: BSD-3-Clause
include src/common/libio/hub.mk
noinst_LTLIBRARIES += libio.la
libio_la_SOURCES = \
	src/common/libio/agent.c src/common/libio/agent.h \
	src/common/libio/agent_internal.h \
	src/common/libio/agent_absent.c \
	src/common/libio/agent_control.c \
	src/common/libio/agent_idle.c \
	src/common/libio/agent_links.c \
	src/common/libio/agent_ranks.c \
	src/common/libio/agent_slots.c \
	src/common/libio/agent_tell.c \
	src/common/libio/agent_state.c src/common/libio/agent_state.h \
	src/common/libio/agent_trace.c src/common/libio/agent_trace.h \
	src/common/libio/attach_fds.h \
	src/common/libio/agent_wireup.c \
	src/common/libio/edges.c src/common/libio/edges.h \
	src/common/libio/frames.c src/common/libio/frames.h \
	src/common/libio/handshake.c src/common/libio/handshake.h \
	src/common/libio/link.c src/common/libio/link.h \
	src/common/libio/listener.c src/common/libio/listener.h \
	src/common/libio/loop.c src/common/libio/loop.h \
	src/common/libio/peer.c src/common/libio/peer.h \
	src/common/libio/registration.c src/common/libio/registration.h \
	src/common/libio/secret.c src/common/libio/secret.h \
	src/common/libio/stopped.c src/common/libio/stopped.h \
	src/common/libio/strangers.c src/common/libio/strangers.h \
	src/common/libio/stream.c src/common/libio/stream.h \
	src/common/libio/thread.c src/common/libio/thread.h \
	$(libio_hub_sources)
libio_la_CPPFLAGS = $(AM_CPPFLAGS) -D_GNU_SOURCE
libio_la_CFLAGS = $(AM_CFLAGS) $(LIBUV_CFLAGS) $(SODIUM_CFLAGS) \
	-fvisibility=hidden -pthread
libio_la_LIBADD = -lpthread -ldl
