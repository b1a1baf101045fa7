# SPDX-License-Identifier: BSD-3-Clause
noinst_LTLIBRARIES += libio_nodeps.la libio.la
# What needs the C library only, for slurmstepd, which loads no other.
libio_nodeps_la_SOURCES = \
	src/common/libio/attach_fds.h \
	src/common/libio/clock.h \
	src/common/libio/fd.h \
	src/common/libio/hang_up.c src/common/libio/hang_up.h \
	src/common/libio/holder.c src/common/libio/holder.h \
	src/common/libio/proc_stat.c src/common/libio/proc_stat.h \
	src/common/libio/listener_socket.c src/common/libio/listener_socket.h \
	src/common/libio/owner.c src/common/libio/owner.h \
	src/common/libio/peer.c src/common/libio/peer.h \
	src/common/libio/protocol.c src/common/libio/protocol.h \
	src/common/libio/registration.c src/common/libio/registration.h \
	src/common/libio/secret.c src/common/libio/secret.h \
	src/common/libio/thread.c src/common/libio/thread.h
libio_nodeps_la_CPPFLAGS = $(AM_CPPFLAGS) -D_GNU_SOURCE
libio_nodeps_la_CFLAGS = $(AM_CFLAGS) -fvisibility=hidden -pthread
libio_nodeps_la_LIBADD = -lpthread -ldl

libio_la_SOURCES = \
	src/common/libio/channel.c src/common/libio/channel.h \
	src/common/libio/epoll_set.c src/common/libio/epoll_set.h \
	src/common/libio/frames.c src/common/libio/frames.h \
	src/common/libio/handshake.c src/common/libio/handshake.h \
	src/common/libio/link.c src/common/libio/link.h \
	src/common/libio/listener.c src/common/libio/listener.h \
	src/common/libio/loop.c src/common/libio/loop.h \
	src/common/libio/out_queue.c src/common/libio/out_queue.h \
	src/common/libio/proof.c src/common/libio/proof.h \
	src/common/libio/refusals.c src/common/libio/refusals.h \
	src/common/libio/strangers.c src/common/libio/strangers.h \
	src/common/libio/stream.c src/common/libio/stream.h \
	src/common/libio/tcp.c src/common/libio/tcp.h
libio_la_CPPFLAGS = $(libio_nodeps_la_CPPFLAGS)
libio_la_CFLAGS = $(libio_nodeps_la_CFLAGS) $(LIBUV_CFLAGS) $(SODIUM_CFLAGS)
libio_la_LIBADD = libio_nodeps.la
