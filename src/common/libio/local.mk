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

libio_la_SOURCES = $(files_src_common_libio)
libio_la_CPPFLAGS = $(libio_nodeps_la_CPPFLAGS)
libio_la_CFLAGS = $(libio_nodeps_la_CFLAGS) $(LIBUV_CFLAGS) $(SODIUM_CFLAGS)
libio_la_LIBADD = libio_nodeps.la
