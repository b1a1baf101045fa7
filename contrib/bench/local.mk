# SPDX-License-Identifier: BSD-3-Clause
# Linked with the drop-in libpmi2, so that LD_LIBRARY_PATH can choose another.
noinst_PROGRAMS += contrib/bench/pmi2-fence
contrib_bench_pmi2_fence_SOURCES = contrib/bench/pmi2-fence.c
contrib_bench_pmi2_fence_LDADD = contrib/libpmi2x/libpmi2.la
contrib_bench_pmi2_fence_LDFLAGS = $(AM_LDFLAGS) -no-install

# The bound: the same tree, bytes and processes without PMI.
pkglibexec_PROGRAMS = contrib/bench/floor
contrib_bench_floor_SOURCES = \
	contrib/bench/floor.c contrib/bench/floor.h \
	contrib/bench/floor_launch.c \
	contrib/bench/floor_limits.c \
	contrib/bench/floor_node.c \
	contrib/bench/floor_shm.c \
	contrib/bench/floor_socket.c
contrib_bench_floor_CPPFLAGS = -D_GNU_SOURCE $(AM_CPPFLAGS)
contrib_bench_floor_LDADD = libcoll.la
