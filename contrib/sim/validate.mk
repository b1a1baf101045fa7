# SPDX-License-Identifier: BSD-3-Clause
# Against real agents on a private cluster, which fit the model's costs.
# SIM_VALIDATE_FLAGS adds options.
EXTRA_DIST += contrib/sim/pmi2x-sim-validate testsuite/scale/sim-validate-test.py
pkglibexec_PROGRAMS += contrib/sim/sim-rank
contrib_sim_sim_rank_SOURCES = contrib/sim/sim-rank.c
contrib_sim_sim_rank_LDADD = contrib/libpmi2x/libpmi2x.la
SIM_VALIDATE_FLAGS =
.PHONY: sim-validate
sim-validate: bench-inst
	/usr/bin/python3 $(srcdir)/contrib/sim/pmi2x-sim-validate \
		$(bench_places) --sim contrib/sim/pmi2x-sim $(SIM_VALIDATE_FLAGS)
