# SPDX-License-Identifier: BSD-3-Clause
# How a program that slurmstepd starts as root gives up its rights, and what it says to
# who started it: the C library only.
noinst_LTLIBRARIES += libconfine_nodeps.la libconfine.la
# The starting side needs this, too.
libconfine_nodeps_la_SOURCES = \
	src/common/libconfine/agent_fd.h \
	src/common/libconfine/host_msg.c src/common/libconfine/host_msg.h \
	src/common/libconfine/host_out.c src/common/libconfine/host_out.h
libconfine_nodeps_la_CPPFLAGS = $(AM_CPPFLAGS) -D_GNU_SOURCE
libconfine_nodeps_la_CFLAGS = $(AM_CFLAGS) -fvisibility=hidden

libconfine_la_SOURCES = $(files_src_common_libconfine)
libconfine_la_CPPFLAGS = $(libconfine_nodeps_la_CPPFLAGS)
libconfine_la_CFLAGS = $(libconfine_nodeps_la_CFLAGS)
libconfine_la_LIBADD = libconfine_nodeps.la
