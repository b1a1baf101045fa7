# SPDX-License-Identifier: BSD-3-Clause
# Linked with the drop-in libpmi2, so that LD_LIBRARY_PATH can choose another.
noinst_PROGRAMS += contrib/bench/pmi2-fence
contrib_bench_pmi2_fence_SOURCES = contrib/bench/pmi2-fence.c
contrib_bench_pmi2_fence_LDADD = contrib/libpmi2x/libpmi2.la
contrib_bench_pmi2_fence_LDFLAGS = $(AM_LDFLAGS) -no-install
