# SPDX-License-Identifier: BSD-3-Clause
# Keys and meetings of a step for programs without PMI: needs libcoll and libutil.
noinst_LTLIBRARIES += libstore.la
libstore_la_SOURCES = \
	src/common/libstore/home.c src/common/libstore/home.h \
	src/common/libstore/home_private.h \
	src/common/libstore/keys.c \
	src/common/libstore/meet.c \
	src/common/libstore/node.c \
	src/common/libstore/relay.c src/common/libstore/relay.h \
	src/common/libstore/request.c src/common/libstore/request.h \
	src/common/libstore/store.c src/common/libstore/store.h \
	src/common/libstore/store_msg.c src/common/libstore/store_msg.h \
	src/common/libstore/store_private.h \
	src/common/libstore/window.c src/common/libstore/window.h
libstore_la_CFLAGS = $(AM_CFLAGS) -fvisibility=hidden
