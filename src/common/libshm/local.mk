# SPDX-License-Identifier: BSD-3-Clause
noinst_LTLIBRARIES += libshm_nodeps.la libshm.la
# What needs the C library only, for slurmstepd and srun.
libshm_nodeps_la_SOURCES = \
	src/common/libshm/records.c src/common/libshm/records.h \
	src/common/libshm/region_map.c src/common/libshm/region_map.h \
	src/common/libshm/region_memory.c src/common/libshm/region_memory.h
libshm_nodeps_la_CFLAGS = $(AM_CFLAGS) -fvisibility=hidden

libshm_la_SOURCES = \
	src/common/libshm/byteorder.h \
	src/common/libshm/extents.c src/common/libshm/extents.h \
	src/common/libshm/image.c src/common/libshm/image.h \
	src/common/libshm/image_build.c \
	src/common/libshm/image_hash.c \
	src/common/libshm/image_layout.h \
	src/common/libshm/index.c src/common/libshm/index.h \
	src/common/libshm/region.h \
	src/common/libshm/region_layout.h \
	src/common/libshm/region_prefault.c src/common/libshm/region_prefault.h \
	src/common/libshm/region_merge.c src/common/libshm/region_merge.h \
	src/common/libshm/region_reader.c \
	src/common/libshm/region_writer.c \
	src/common/libshm/slots.c src/common/libshm/slots.h \
	src/common/libshm/slots_layout.h
libshm_la_CFLAGS = $(AM_CFLAGS) $(XXHASH_CFLAGS) -fvisibility=hidden
libshm_la_LIBADD = libshm_nodeps.la
