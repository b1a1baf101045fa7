# SPDX-License-Identifier: BSD-3-Clause
# Measures PMI2X_LEND=on with mpiexec, without Slurm. LEND_FLAGS adds options. MINIFE and DLB are
# directories of a miniFE.x with MPICH and of DLB, which are then measured, too.
EXTRA_DIST += testsuite/lend/check-lend testsuite/lend/launch.c testsuite/lend/latency.c \
	testsuite/lend/times.c testsuite/lend/times.h testsuite/lend/work.c \
	testsuite/lend/work.F90 testsuite/lend/mpich-suite

LEND_FLAGS =
.PHONY: check-lend
check-lend: libpmi2x-lend.la
	$(srcdir)/testsuite/lend/check-lend --source=$(srcdir) \
		--library=$(abs_builddir)/.libs/libpmi2x-lend.so \
		$(if $(MINIFE),--minife=$(MINIFE)) $(if $(DLB),--dlb=$(DLB)) $(LEND_FLAGS)

# MPICH's own tests with lending and without. SUITE is the source of MPICH 4.0, or its test/mpi.
.PHONY: check-lend-mpich
check-lend-mpich: libpmi2x-lend.la
	$(srcdir)/testsuite/lend/mpich-suite --source=$(srcdir) \
		--library=$(abs_builddir)/.libs/libpmi2x-lend.so $(SUITE)
