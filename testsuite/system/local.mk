# SPDX-License-Identifier: BSD-3-Clause
# Tests on a real Slurm; testsuite/run starts them.
SOAK_FLAGS =
.PHONY: soak
soak: bench-inst
	LD_LIBRARY_PATH="$(bench_inst)$(libdir)" \
		$(srcdir)/testsuite/system/soak --prefix "$(bench_inst)$(prefix)" \
		--plugindir "$(bench_inst)$(slurm_plugindir)" $(SOAK_FLAGS)

EXTRA_DIST += \
	testsuite/system/conftest.py \
	testsuite/system/faulty.py \
	testsuite/system/harness.py \
	testsuite/system/test_algorithms.py \
	testsuite/system/soak \
	testsuite/system/test_allgather.py \
	testsuite/system/test_bench.py \
	testsuite/system/test_cluster.py \
	testsuite/system/test_config.py \
	testsuite/system/test_dynamic.py \
	testsuite/system/test_failure.py \
	testsuite/system/test_faults.py \
	testsuite/system/test_faults_clients.py \
	testsuite/system/test_faults_daemons.py \
	testsuite/system/test_faults_gang.py \
	testsuite/system/test_faults_links.py \
	testsuite/system/test_faults_nodes.py \
	testsuite/system/test_faults_pairs.py \
	testsuite/system/test_hostile.py \
	testsuite/system/test_input.py \
	testsuite/system/test_layouts.py \
	testsuite/system/test_library.py \
	testsuite/system/test_live.py \
	testsuite/system/test_pmi.py \
	testsuite/system/test_probe.py \
	testsuite/system/test_scale.py \
	testsuite/system/test_sim.py \
	testsuite/system/test_startup.py \
	testsuite/system/test_soak.py \
	testsuite/system/test_steps.py \
	testsuite/system/test_trace.py \
	testsuite/system/test_wheels.py \
	testsuite/system/programs/abort.py \
	testsuite/system/programs/attack.py \
	testsuite/system/programs/attributes.py \
	testsuite/system/programs/commands.py \
	testsuite/system/programs/exchange.py \
	testsuite/system/programs/fault-client.c \
	testsuite/system/programs/garbage.py \
	testsuite/system/programs/gate.py \
	testsuite/system/programs/gates.py \
	testsuite/system/programs/job.py \
	testsuite/system/programs/late.py \
	testsuite/system/programs/leave.py \
	testsuite/system/programs/misbehave.py \
	testsuite/system/programs/mpi-abort.c \
	testsuite/system/programs/mpi-connect.c \
	testsuite/system/programs/mpi-spawn.c \
	testsuite/system/programs/names.py \
	testsuite/system/programs/pmi.py \
	testsuite/system/programs/pmi-client.c \
	testsuite/system/programs/pmi2-client.c \
	testsuite/system/programs/spawn.py \
	testsuite/system/programs/stranger.py \
	testsuite/system/programs/values.py
