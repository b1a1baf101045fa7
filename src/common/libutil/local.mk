# SPDX-License-Identifier: BSD-3-Clause
noinst_LTLIBRARIES += libutil.la
libutil_la_SOURCES = \
	src/common/libutil/array.c src/common/libutil/array.h \
	src/common/libutil/base64.c src/common/libutil/base64.h \
	src/common/libutil/budget.c src/common/libutil/budget.h \
	src/common/libutil/buf.c src/common/libutil/buf.h \
	src/common/libutil/coder.c src/common/libutil/coder.h \
	src/common/libutil/decimal.c src/common/libutil/decimal.h \
	src/common/libutil/elf_needs.c src/common/libutil/elf_needs.h \
	src/common/libutil/hash.c src/common/libutil/hash.h \
	src/common/libutil/hex.c src/common/libutil/hex.h \
	src/common/libutil/hwloc_plugins.h \
	src/common/libutil/log.c src/common/libutil/log.h \
	src/common/libutil/pack.c src/common/libutil/pack.h \
	src/common/libutil/passed_fds.h \
	src/common/libutil/payload.c src/common/libutil/payload.h \
	src/common/libutil/plural.h \
	src/common/libutil/rankset.c src/common/libutil/rankset.h
libutil_la_CFLAGS = $(AM_CFLAGS) $(XXHASH_CFLAGS) -fvisibility=hidden
