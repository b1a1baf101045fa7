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
	contrib/tools/probe_node_list.c \
	contrib/tools/probe_node_list.h \
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

# Python programs find their modules beside themselves or in contrib/tools in the source
# tree, and below modulesdir once they are installed.
modulesdir = $(pkgdatadir)/python
python_programs = contrib/tools/pmi2x
# The programs of its verbs.
python_verbs = contrib/bench/pmi2x-bench-lookup contrib/cluster/pmi2x-cluster \
	contrib/sim/pmi2x-sim-plot contrib/sim/pmi2x-sim-validate \
	contrib/tools/pmi2x-bench-collectives contrib/tools/pmi2x-bench-dvm \
	contrib/tools/pmi2x-bench-launch contrib/tools/pmi2x-check \
	contrib/tools/pmi2x-trace contrib/tools/pmi2x-why
dist_bin_SCRIPTS += $(python_programs)
dist_pkglibexec_SCRIPTS += $(python_verbs)
dist_man_MANS += contrib/tools/pmi2x.1 contrib/tools/pmi2x-bench-collectives.1 \
	contrib/tools/pmi2x-check.1 contrib/tools/pmi2x-bench-dvm.1 \
	contrib/tools/pmi2x-bench-launch.1 \
	contrib/tools/pmi2x-trace.1 contrib/tools/pmi2x-why.1

dist_modules_DATA = contrib/tools/pmi2x_plot.py
benchdir = $(modulesdir)/pmi2x_bench
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
dvm_benchdir = $(modulesdir)/pmi2x_dvm_bench
dist_dvm_bench_DATA = \
	contrib/tools/pmi2x_dvm_bench/__init__.py \
	contrib/tools/pmi2x_dvm_bench/dvm.py \
	contrib/tools/pmi2x_dvm_bench/peers.py \
	contrib/tools/pmi2x_dvm_bench/report.py \
	contrib/tools/pmi2x_dvm_bench/rows.py
startupdir = $(modulesdir)/pmi2x_startup
dist_startup_DATA = \
	contrib/tools/pmi2x_startup/__init__.py \
	contrib/tools/pmi2x_startup/allocation.py \
	contrib/tools/pmi2x_startup/capacity.py \
	contrib/tools/pmi2x_startup/counters.py \
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
	contrib/tools/pmi2x_startup/strace.py \
	contrib/tools/pmi2x_startup/waiting.py \
	contrib/tools/pmi2x_startup/where.py
tracedir = $(modulesdir)/pmi2x_trace
dist_trace_DATA = \
	contrib/tools/pmi2x_trace/__init__.py \
	contrib/tools/pmi2x_trace/chrome.py \
	contrib/tools/pmi2x_trace/division.py \
	contrib/tools/pmi2x_trace/phases.py \
	contrib/tools/pmi2x_trace/records.py \
	contrib/tools/pmi2x_trace/status.py
pmi2x_checkdir = $(modulesdir)/pmi2x_check
dist_pmi2x_check_DATA = \
	contrib/tools/pmi2x_check/__init__.py \
	contrib/tools/pmi2x_check/judge.py \
	contrib/tools/pmi2x_check/local.py \
	contrib/tools/pmi2x_check/look.py \
	contrib/tools/pmi2x_check/trial.py
whydir = $(modulesdir)/pmi2x_why
dist_why_DATA = \
	contrib/tools/pmi2x_why/__init__.py \
	contrib/tools/pmi2x_why/nodes.py \
	contrib/tools/pmi2x_why/reader.py \
	contrib/tools/pmi2x_why/words.py

# Where shells look for completions, below the prefix.
bash_completiondir = $(datadir)/bash-completion/completions
dist_bash_completion_DATA = contrib/tools/completion/pmi2x
zsh_completiondir = $(datadir)/zsh/site-functions
dist_zsh_completion_DATA = contrib/tools/completion/_pmi2x

EXTRA_DIST += testsuite/unit/check-test.py testsuite/unit/command-test.py \
	testsuite/unit/completion-test.py testsuite/unit/why-test.py
tools_tests = testsuite/unit/dvm-bench-test.sh testsuite/unit/trace-test.sh \
	testsuite/unit/probe-nodes-test.sh testsuite/unit/probe-mpi-test.sh \
	testsuite/unit/command-test.sh
dist_check_SCRIPTS += $(tools_tests)
TESTS += $(tools_tests)

# Programs learn where they are.
install-exec-hook: install-python-programs
.PHONY: install-python-programs
install-python-programs:
	build=`$(BUILD_ID)`; \
	put() { $(SED) -e "s|^VERSION = .*|VERSION = \"$$build\"|" \
		-e 's|^MODULES = .*|MODULES = "$(modulesdir)"|' \
		-e 's|^BINARIES = .*|BINARIES = "$(bindir)"|' \
		-e 's|^PROGRAMS = .*|PROGRAMS = "$(pkglibexecdir)"|' \
		-e 's|^LIBRARIES = .*|LIBRARIES = "$(libdir)"|' \
		-e 's|^PLUGINS = .*|PLUGINS = "$(slurm_plugindir)"|' \
		-e 's|^MANUALS = .*|MANUALS = "$(mandir)"|' \
		"$(srcdir)/$$1" >"$(DESTDIR)$$2/$${1##*/}"; }; \
	for path in $(python_programs); do put $$path $(bindir) || exit 1; done; \
	for path in $(python_verbs); do put $$path $(pkglibexecdir) || exit 1; done
