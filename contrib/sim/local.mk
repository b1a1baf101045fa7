# SPDX-License-Identifier: BSD-3-Clause
# The model; it calls nothing of the system either (testsuite/check-rules).
noinst_LTLIBRARIES += libsim.la
libsim_la_SOURCES = \
	contrib/sim/build.c \
	contrib/sim/client.c contrib/sim/client.h \
	contrib/sim/coll_node.c \
	contrib/sim/contents.c contrib/sim/contents.h \
	contrib/sim/events.c contrib/sim/events.h \
	contrib/sim/faults.c \
	contrib/sim/message.c \
	contrib/sim/network.c contrib/sim/network.h \
	contrib/sim/path.c contrib/sim/path.h \
	contrib/sim/pmi_node.c contrib/sim/pmi_node.h \
	contrib/sim/random.c contrib/sim/random.h \
	contrib/sim/run.c \
	contrib/sim/scenario.c contrib/sim/scenario.h \
	contrib/sim/scenario_clients.c \
	contrib/sim/scenario_forms.c \
	contrib/sim/scenario_keys.c contrib/sim/scenario_keys.h \
	contrib/sim/shape.c \
	contrib/sim/sim.h \
	contrib/sim/stats.c \
	contrib/sim/stock.c \
	contrib/sim/units.c contrib/sim/units.h \
	contrib/sim/workload.c contrib/sim/workload.h \
	contrib/sim/workload_file.c

# DVMs, which are libdvm's own heads and nodes.
if HAVE_JANSSON
noinst_LTLIBRARIES += libsimdvm.la
SIM_DVM_LIBS = libsimdvm.la libdvmjson.la libdvm.la $(JANSSON_LIBS)
SIM_DVM_FLAGS = -DSIM_DVM
SIM_DVM_SOURCES = contrib/sim/dvm_report.c contrib/sim/dvm_report.h
endif
libsimdvm_la_SOURCES = \
	contrib/sim/dvm_client.c \
	contrib/sim/dvm_faults.c \
	contrib/sim/dvm_head.c \
	contrib/sim/dvm_node.c \
	contrib/sim/dvm_sim.c contrib/sim/dvm_sim.h
libsimdvm_la_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS)

pkglibexec_PROGRAMS += contrib/sim/pmi2x-sim-run
contrib_sim_pmi2x_sim_run_SOURCES = contrib/sim/sim.c contrib/sim/sim_command.h \
	contrib/sim/sim_dvm.c \
	contrib/sim/csv.c \
	contrib/sim/report.c contrib/sim/report.h $(SIM_DVM_SOURCES)
SIM_LIBS = $(SIM_DVM_LIBS) libsim.la libengine.la libpmi.la libshm.la libcoll.la libutil.la $(XXHASH_LIBS) -lm
contrib_sim_pmi2x_sim_run_CPPFLAGS = $(AM_CPPFLAGS) $(SIM_DVM_FLAGS)
contrib_sim_pmi2x_sim_run_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS)
contrib_sim_pmi2x_sim_run_LDADD = $(SIM_LIBS)
dist_man_MANS += contrib/sim/pmi2x-sim-run.1 contrib/sim/pmi2x-sim-scenario.5

# Plots of its CSV files.
dist_man_MANS += contrib/sim/pmi2x-sim-plot.1 contrib/sim/pmi2x-sim-validate.1

simdir = $(pkgdatadir)/sim
dist_sim_DATA = \
	contrib/sim/examples/cluster.scenario \
	contrib/sim/examples/docking.scenario \
	contrib/sim/examples/dvm-faults.scenario \
	contrib/sim/examples/faults.scenario \
	contrib/sim/examples/gpu-1000.scenario \
	contrib/sim/examples/gpu-hours.scenario \
	contrib/sim/examples/large.scenario \
	contrib/sim/examples/mpi-beside.scenario \
	contrib/sim/examples/node-1024.scenario \
	contrib/sim/examples/seed-256.scenario \
	contrib/sim/examples/seed-512.scenario \
	contrib/sim/examples/seed-1024.scenario \
	contrib/sim/examples/seed-2048.scenario \
	contrib/sim/examples/servers.scenario \
	contrib/sim/examples/stock.scenario

# What it says against what libcoll promises: a part in make check, the whole,
# to a million ranks, in make check-scale.
dist_check_SCRIPTS += testsuite/scale/sim-bounds testsuite/scale/sim-test.sh
dist_check_SCRIPTS += testsuite/scale/sim-dvm-bound testsuite/scale/sim-dvm-test.sh \
	testsuite/scale/sim-dvm-scenarios
TESTS += testsuite/scale/sim-test.sh testsuite/scale/sim-dvm-test.sh
.PHONY: check-sim
check-sim: contrib/sim/pmi2x-sim-run testsuite/unit/sim/fault-test
	/usr/bin/python3 -B $(srcdir)/testsuite/scale/sim-bounds --large \
		contrib/sim/pmi2x-sim-run
	/usr/bin/python3 -B $(srcdir)/testsuite/scale/sim-dvm-scenarios --large \
		contrib/sim/pmi2x-sim-run
	SIM_SCENARIOS=50000 testsuite/unit/sim/fault-test
check-scale: check-sim
