# SPDX-License-Identifier: BSD-3-Clause
# Keys and meetings of a step for programs without PMI: needs libcoll and libutil.
noinst_LTLIBRARIES += libstore.la
libstore_la_SOURCES = $(files_src_common_libstore)
libstore_la_CFLAGS = $(AM_CFLAGS) -fvisibility=hidden
