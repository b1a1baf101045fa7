# SPDX-License-Identifier: BSD-3-Clause
noinst_LTLIBRARIES += libcoll.la
libcoll_la_SOURCES = \
	src/common/libcoll/coll.c src/common/libcoll/coll.h \
	src/common/libcoll/coll_fault.c \
	src/common/libcoll/coll_fetch.c src/common/libcoll/fetch.h \
	src/common/libcoll/coll_gather.c \
	src/common/libcoll/coll_msg.c \
	src/common/libcoll/coll_op.c \
	src/common/libcoll/coll_private.h \
	src/common/libcoll/coll_scan.c \
	src/common/libcoll/coll_series.c \
	src/common/libcoll/layout.c src/common/libcoll/layout.h \
	src/common/libcoll/layout_code.c src/common/libcoll/layout_code.h \
	src/common/libcoll/subset.c src/common/libcoll/subset.h \
	src/common/libcoll/subset_fault.c \
	src/common/libcoll/subset_name.c \
	src/common/libcoll/subset_op.c \
	src/common/libcoll/subset_private.h \
	src/common/libcoll/tree.c src/common/libcoll/tree.h
libcoll_la_CFLAGS = $(AM_CFLAGS) -fvisibility=hidden
