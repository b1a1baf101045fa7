# SPDX-License-Identifier: BSD-3-Clause
# The PMI server engine of a node: needs libpmi, libshm, libcoll and libutil.
noinst_LTLIBRARIES += libengine.la
libengine_la_SOURCES = $(files_src_common_libengine)
libengine_la_CFLAGS = $(AM_CFLAGS) -fvisibility=hidden
