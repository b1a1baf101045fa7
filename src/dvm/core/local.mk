# SPDX-License-Identifier: BSD-3-Clause
# Tasks inside an allocation: head and node of a DVM as state machines.
if HAVE_JANSSON
noinst_LTLIBRARIES += libdvm.la
endif
libdvm_la_SOURCES = $(files_src_dvm_core)

libdvm_la_CPPFLAGS = $(AM_CPPFLAGS) -D_GNU_SOURCE
libdvm_la_CFLAGS = $(AM_CFLAGS) -fvisibility=hidden
