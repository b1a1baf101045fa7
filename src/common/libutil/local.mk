# SPDX-License-Identifier: BSD-3-Clause
noinst_LTLIBRARIES += libutil.la
libutil_la_SOURCES = $(files_src_common_libutil)
libutil_la_CFLAGS = $(AM_CFLAGS) $(XXHASH_CFLAGS) -fvisibility=hidden
