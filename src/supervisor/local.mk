# SPDX-License-Identifier: BSD-3-Clause
# What starts the agent of a node, and answers it. The C library only.
noinst_LTLIBRARIES += libsupervisor.la
libsupervisor_la_SOURCES = $(files_src_supervisor)
libsupervisor_la_CPPFLAGS = $(AM_CPPFLAGS) -D_GNU_SOURCE \
	-DPMIX_MULTIARCH='"$(shell $(CC) -print-multiarch)"'
libsupervisor_la_CFLAGS = $(AM_CFLAGS) -fvisibility=hidden -pthread
