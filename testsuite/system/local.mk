# SPDX-License-Identifier: BSD-3-Clause
# Tests on a real Slurm; testsuite/run starts them.
SOAK_FLAGS =
.PHONY: soak
soak: bench-inst
	LD_LIBRARY_PATH="$(bench_inst)$(libdir)" \
		$(srcdir)/testsuite/system/soak --prefix "$(bench_inst)$(prefix)" \
		--plugindir "$(bench_inst)$(slurm_plugindir)" $(SOAK_FLAGS)

EXTRA_DIST += testsuite/system
# Without what Python has compiled there.
dist-hook:
	find "$(distdir)/testsuite/system" -name __pycache__ -prune -exec rm -rf {} +
