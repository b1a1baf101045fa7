# SPDX-License-Identifier: BSD-3-Clause
noinst_LTLIBRARIES += libcoll.la
libcoll_la_SOURCES = $(files_src_common_libcoll)
libcoll_la_CFLAGS = $(AM_CFLAGS) -fvisibility=hidden
