# SPDX-License-Identifier: BSD-3-Clause
bin_PROGRAMS += src/tools/pmi2x-probe
src_tools_pmi2x_probe_SOURCES = $(files_src_tools)
src_tools_pmi2x_probe_CPPFLAGS = -D_GNU_SOURCE $(AM_CPPFLAGS) \
	-DAGENT_PROGRAM='"$(pkglibexecdir)/pmi2x-agent"' \
	-DPROBE_SERVER='"$(pkglibexecdir)/fake-server"'
src_tools_pmi2x_probe_LDADD = contrib/libpmi2x/libpmi2x.la libutil.la
dist_man_MANS += src/tools/pmi2x-probe.1

bin_PROGRAMS += src/tools/sync/pmi2x-sync
src_tools_sync_pmi2x_sync_SOURCES = src/tools/sync/pmi2x-sync.c
# One file, which can be copied into an image.
src_tools_sync_pmi2x_sync_LDADD = contrib/libpmi2x/libclient.la
dist_man_MANS += src/tools/pmi2x-sync.1
syncdir = $(pkgdatadir)/python
dist_sync_DATA = src/tools/sync/pmi2x_sync.py

# Python programs find their modules in src/tools or contrib/bench in the source
# tree, and below modulesdir once they are installed.
modulesdir = $(pkgdatadir)/python
python_programs = src/tools/pmi2x
# The programs of its verbs.
python_verbs = contrib/bench/pmi2x-bench-collectives contrib/bench/pmi2x-bench-dvm \
	contrib/bench/pmi2x-dvm-plot \
	contrib/bench/pmi2x-bench-launch contrib/bench/pmi2x-bench-lookup \
	contrib/bench/pmi2x-bench-store \
	contrib/cluster/pmi2x-cluster contrib/sim/pmi2x-sim-plot \
	contrib/sim/pmi2x-sim-calibrate contrib/sim/pmi2x-sim-validate src/tools/pmi2x-check src/tools/pmi2x-trace \
	src/tools/pmi2x-why
dist_bin_SCRIPTS += $(python_programs)
dist_pkglibexec_SCRIPTS += $(python_verbs)
dist_man_MANS += src/tools/pmi2x.1 src/tools/pmi2x-check.1 src/tools/pmi2x-trace.1 \
	src/tools/pmi2x-why.1

tracedir = $(modulesdir)/pmi2x_trace
dist_trace_DATA = $(files_src_tools_pmi2x_trace)
pmi2x_checkdir = $(modulesdir)/pmi2x_check
dist_pmi2x_check_DATA = $(files_src_tools_pmi2x_check)
whydir = $(modulesdir)/pmi2x_why
dist_why_DATA = $(files_src_tools_pmi2x_why)

# Where shells look for completions, below the prefix.
bash_completiondir = $(datadir)/bash-completion/completions
dist_bash_completion_DATA = src/tools/completion/pmi2x
zsh_completiondir = $(datadir)/zsh/site-functions
dist_zsh_completion_DATA = src/tools/completion/_pmi2x

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
