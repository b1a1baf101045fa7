# SPDX-License-Identifier: BSD-3-Clause
# Against real agents on a private cluster, which fit the model's costs.
# SIM_VALIDATE_FLAGS adds options.
EXTRA_DIST += contrib/sim/pmi2x-sim-validate-pmi2 \
	testsuite/scale/sim-validate-test.py testsuite/scale/sim-dvm-validate-test.py \
	testsuite/scale/recorded/agents.csv testsuite/scale/recorded/agents.calibration testsuite/scale/recorded/mpi-pmi2.csv
pkglibexec_PROGRAMS += contrib/sim/sim-rank
contrib_sim_sim_rank_SOURCES = contrib/sim/sim-rank.c
contrib_sim_sim_rank_LDADD = contrib/libpmi2x/libpmi2x.la
SIM_VALIDATE_FLAGS =
.PHONY: sim-validate
sim-validate: bench-inst
	/usr/bin/python3 $(srcdir)/contrib/sim/pmi2x-sim-validate \
		$(bench_places) --sim contrib/sim/pmi2x-sim-run $(SIM_VALIDATE_FLAGS)

# DVMs of pmi2x-dvm up --local.
.PHONY: sim-validate-dvm
sim-validate-dvm: bench-inst
	/usr/bin/python3 $(srcdir)/contrib/sim/pmi2x-sim-validate --dvm \
		--dvm-program "$(bench_inst)$(bindir)/pmi2x-dvm" \
		$(bench_places) --sim contrib/sim/pmi2x-sim-run $(SIM_VALIDATE_FLAGS)

# The same for the model of mpi/pmi2, by processor time. As root.
.PHONY: sim-validate-pmi2
sim-validate-pmi2: bench-inst
	/usr/bin/python3 $(srcdir)/contrib/sim/pmi2x-sim-validate-pmi2 \
		$(bench_places) --sim contrib/sim/pmi2x-sim-run $(SIM_VALIDATE_FLAGS)
