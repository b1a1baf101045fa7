# SPDX-License-Identifier: BSD-3-Clause
# The model; it calls nothing of the system either (testsuite/check-rules).
noinst_LTLIBRARIES += libsim.la
libsim_la_SOURCES = $(files_contrib_sim)

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
	contrib/sim/dvm_sim.c contrib/sim/dvm_sim.h \
	contrib/sim/dvm_tree.c
libsimdvm_la_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS)

pkglibexec_PROGRAMS += contrib/sim/pmi2x-sim-run
contrib_sim_pmi2x_sim_run_SOURCES = contrib/sim/sim.c contrib/sim/sim_command.h \
	contrib/sim/sim_dvm.c contrib/sim/sim_runs.c \
	contrib/sim/csv.c \
	contrib/sim/report.c contrib/sim/report.h $(SIM_DVM_SOURCES)
SIM_LIBS = $(SIM_DVM_LIBS) libsim.la libstore.la libengine.la libpmi.la libshm.la libcoll.la libutil.la $(XXHASH_LIBS) -lm
contrib_sim_pmi2x_sim_run_CPPFLAGS = $(AM_CPPFLAGS) $(SIM_DVM_FLAGS)
contrib_sim_pmi2x_sim_run_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS)
contrib_sim_pmi2x_sim_run_LDADD = $(SIM_LIBS)
dist_man_MANS += contrib/sim/pmi2x-sim-run.1 contrib/sim/pmi2x-sim-scenario.5

# Plots of its CSV files.
dist_man_MANS += contrib/sim/pmi2x-sim-plot.1 contrib/sim/pmi2x-sim-validate.1 \
	contrib/sim/pmi2x-sim-calibrate.1

simdir = $(pkgdatadir)/sim
dist_sim_DATA = $(files_contrib_sim_examples)

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
