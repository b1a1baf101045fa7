# SPDX-License-Identifier: BSD-3-Clause
# Correctness at full size, on a test cluster. SCALE_FLAGS adds options.
EXTRA_DIST += testsuite/scale/check-scale

SCALE_FLAGS =
.PHONY: check-scale
check-scale: bench-inst
	$(srcdir)/testsuite/scale/check-scale $(bench_places) $(SCALE_FLAGS)
