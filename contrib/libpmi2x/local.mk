# SPDX-License-Identifier: BSD-3-Clause
# The client library. Its objects make three shared libraries that differ in
# what they export, and the unit tests link them as they are.
noinst_LTLIBRARIES += contrib/libpmi2x/libclient.la

# What it needs of libpmi, libshm and libutil is compiled in (xxHash inlined): a
# library inside a container should need nothing but libc.
contrib_libpmi2x_libclient_la_SOURCES = $(files_contrib_libpmi2x) \
	src/common/libpmi/message.c \
	src/common/libpmi/wire1.c \
	src/common/libpmi/wire2.c \
	src/common/libpmi/writer.c \
	src/common/libshm/image.c \
	src/common/libshm/image_hash.c \
	src/common/libshm/index.c \
	src/common/libshm/records.c \
	src/common/libshm/region_map.c \
	src/common/libshm/region_reader.c \
	src/common/libstore/request.c \
	src/common/libstore/store_msg.c \
	src/common/libutil/array.c \
	src/common/libutil/budget.c \
	src/common/libutil/buf.c \
	src/common/libutil/coder.c \
	src/common/libutil/decimal.c \
	src/common/libutil/log.c \
	src/common/libutil/pack.c \
	src/common/libutil/payload.c
contrib_libpmi2x_libclient_la_CFLAGS = $(AM_CFLAGS) $(XXHASH_CFLAGS) -pthread

pmi2x_link = -version-info 0:0:0 -pthread -Wl,--no-undefined
pmi2x_maps = contrib/libpmi2x/libpmi2x.map contrib/libpmi2x/libpmi2.map \
	contrib/libpmi2x/libpmi.map
EXTRA_DIST += $(pmi2x_maps)

lib_LTLIBRARIES += contrib/libpmi2x/libpmi2x.la
contrib_libpmi2x_libpmi2x_la_SOURCES =
contrib_libpmi2x_libpmi2x_la_LIBADD = contrib/libpmi2x/libclient.la
contrib_libpmi2x_libpmi2x_la_LDFLAGS = $(AM_LDFLAGS) $(pmi2x_link) \
	-Wl,--version-script=$(srcdir)/contrib/libpmi2x/libpmi2x.map
EXTRA_contrib_libpmi2x_libpmi2x_la_DEPENDENCIES = $(pmi2x_maps)

# Drop-ins for programs and MPI libraries that look for Slurm's libraries.
pkglib_LTLIBRARIES += contrib/libpmi2x/libpmi2.la contrib/libpmi2x/libpmi.la
contrib_libpmi2x_libpmi2_la_SOURCES =
contrib_libpmi2x_libpmi2_la_LIBADD = contrib/libpmi2x/libclient.la
contrib_libpmi2x_libpmi2_la_LDFLAGS = $(AM_LDFLAGS) $(pmi2x_link) \
	-Wl,--version-script=$(srcdir)/contrib/libpmi2x/libpmi2.map
EXTRA_contrib_libpmi2x_libpmi2_la_DEPENDENCIES = $(pmi2x_maps)

contrib_libpmi2x_libpmi_la_SOURCES =
contrib_libpmi2x_libpmi_la_LIBADD = contrib/libpmi2x/libclient.la
contrib_libpmi2x_libpmi_la_LDFLAGS = $(AM_LDFLAGS) $(pmi2x_link) \
	-Wl,--version-script=$(srcdir)/contrib/libpmi2x/libpmi.map
EXTRA_contrib_libpmi2x_libpmi_la_DEPENDENCIES = $(pmi2x_maps)

pkginclude_HEADERS = $(files_contrib_libpmi2x_include)

pkgconfigdir = $(libdir)/pkgconfig
pkgconfig_DATA = contrib/libpmi2x/pmi2x.pc

dist_man_MANS += $(files_contrib_libpmi2x_man)
