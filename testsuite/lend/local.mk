# SPDX-License-Identifier: BSD-3-Clause
# Measures PMI2X_LEND=on with MPICH and its mpiexec, without Slurm. LEND_FLAGS adds options.
EXTRA_DIST += testsuite/lend/check-lend testsuite/lend/launch.c testsuite/lend/latency.c \
	testsuite/lend/work.c

LEND_FLAGS =
.PHONY: check-lend
check-lend: libpmi2x-lend.la
	$(srcdir)/testsuite/lend/check-lend --source=$(srcdir) \
		--library=$(abs_builddir)/.libs/libpmi2x-lend.so $(LEND_FLAGS)
