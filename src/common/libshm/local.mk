# SPDX-License-Identifier: BSD-3-Clause
noinst_LTLIBRARIES += libshm_nodeps.la libshm.la
# What needs the C library only, for slurmstepd and srun.
libshm_nodeps_la_SOURCES = \
	src/common/libshm/records.c src/common/libshm/records.h \
	src/common/libshm/region_map.c src/common/libshm/region_map.h \
	src/common/libshm/region_memory.c src/common/libshm/region_memory.h
libshm_nodeps_la_CFLAGS = $(AM_CFLAGS) -fvisibility=hidden

libshm_la_SOURCES = $(files_src_common_libshm)
libshm_la_CFLAGS = $(AM_CFLAGS) $(XXHASH_CFLAGS) -fvisibility=hidden
libshm_la_LIBADD = libshm_nodeps.la
