# SPDX-License-Identifier: BSD-3-Clause
bin_PROGRAMS += contrib/tools/pmi2x-probe
contrib_tools_pmi2x_probe_SOURCES = \
	contrib/tools/pmi2x-probe.c \
	contrib/tools/probe.h \
	contrib/tools/probe_files.c \
	contrib/tools/probe_files.h \
	contrib/tools/probe_look.c \
	contrib/tools/probe_look.h \
	contrib/tools/probe_mpi.c \
	contrib/tools/probe_mpi.h \
	contrib/tools/probe_nodes.c \
	contrib/tools/probe_ops.c \
	contrib/tools/probe_process.c \
	contrib/tools/probe_process.h \
	contrib/tools/probe_run.c \
	contrib/tools/probe_show.c \
	contrib/tools/probe_witness.c
contrib_tools_pmi2x_probe_CPPFLAGS = -D_GNU_SOURCE $(AM_CPPFLAGS) \
	-DAGENT_PROGRAM='"$(pkglibexecdir)/pmi2x-agent"' \
	-DPROBE_SERVER='"$(pkglibexecdir)/fake-server"'
contrib_tools_pmi2x_probe_LDADD = contrib/libpmi2x/libpmi2x.la libutil.la
dist_man_MANS += contrib/tools/pmi2x-probe.1

# As pmi2x-cluster: modules beside it in the source tree, else in benchdir.
benchdir = $(pkgdatadir)/bench/pmi2x_bench
dist_bin_SCRIPTS += contrib/tools/pmi2x-bench
dist_bench_DATA = \
	contrib/tools/pmi2x_bench/__init__.py \
	contrib/tools/pmi2x_bench/command.py \
	contrib/tools/pmi2x_bench/errors.py \
	contrib/tools/pmi2x_bench/layout.py \
	contrib/tools/pmi2x_bench/limits.py \
	contrib/tools/pmi2x_bench/matrix.py \
	contrib/tools/pmi2x_bench/place.py \
	contrib/tools/pmi2x_bench/plots.py \
	contrib/tools/pmi2x_bench/record.py \
	contrib/tools/pmi2x_bench/report.py \
	contrib/tools/pmi2x_bench/steps.py
dist_man_MANS += contrib/tools/pmi2x-bench.1

# Its modules lie beside those of pmi2x-bench, which it uses.
startupdir = $(pkgdatadir)/bench/pmi2x_startup
dist_bin_SCRIPTS += contrib/tools/pmi2x-startup
dist_startup_DATA = \
	contrib/tools/pmi2x_startup/__init__.py \
	contrib/tools/pmi2x_startup/allocation.py \
	contrib/tools/pmi2x_startup/capacity.py \
	contrib/tools/pmi2x_startup/fit.py \
	contrib/tools/pmi2x_startup/matrix.py \
	contrib/tools/pmi2x_startup/measure.py \
	contrib/tools/pmi2x_startup/mpi-noop.c \
	contrib/tools/pmi2x_startup/plan.py \
	contrib/tools/pmi2x_startup/plots.py \
	contrib/tools/pmi2x_startup/programs.py \
	contrib/tools/pmi2x_startup/record.py \
	contrib/tools/pmi2x_startup/report.py \
	contrib/tools/pmi2x_startup/simulated.py \
	contrib/tools/pmi2x_startup/sources.py \
	contrib/tools/pmi2x_startup/where.py
dist_man_MANS += contrib/tools/pmi2x-startup.1

tracedir = $(pkgdatadir)/trace/pmi2x_trace
dist_bin_SCRIPTS += contrib/tools/pmi2x-trace
dist_trace_DATA = \
	contrib/tools/pmi2x_trace/__init__.py \
	contrib/tools/pmi2x_trace/chrome.py \
	contrib/tools/pmi2x_trace/division.py \
	contrib/tools/pmi2x_trace/phases.py \
	contrib/tools/pmi2x_trace/records.py \
	contrib/tools/pmi2x_trace/status.py
dist_man_MANS += contrib/tools/pmi2x-trace.1

tools_tests = testsuite/unit/trace-test.sh testsuite/unit/probe-nodes-test.sh \
	testsuite/unit/probe-mpi-test.sh
dist_check_SCRIPTS += $(tools_tests)
TESTS += $(tools_tests)

install-exec-hook: install-bench-programs install-trace-program

.PHONY: install-bench-programs install-trace-program
install-trace-program:
	$(SED) -e "s|^VERSION = .*|VERSION = \"`$(BUILD_ID)`\"|" \
		-e 's|^MODULES = .*|MODULES = "$(pkgdatadir)/trace"|' \
		"$(srcdir)/contrib/tools/pmi2x-trace" \
		> "$(DESTDIR)$(bindir)/pmi2x-trace"

install-bench-programs:
	for name in pmi2x-bench pmi2x-startup; do \
		$(SED) -e "s|^VERSION = .*|VERSION = \"`$(BUILD_ID)`\"|" \
			-e 's|^MODULES = .*|MODULES = "$(pkgdatadir)/bench"|' \
			-e 's|^PROGRAMS = .*|PROGRAMS = "$(pkglibexecdir)"|' \
			-e 's|^LIBRARIES = .*|LIBRARIES = "$(libdir)"|' \
			-e 's|^PLUGINS = .*|PLUGINS = "$(slurm_plugindir)"|' \
			"$(srcdir)/contrib/tools/$$name" \
			> "$(DESTDIR)$(bindir)/$$name" || exit 1; \
	done
