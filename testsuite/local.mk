# SPDX-License-Identifier: BSD-3-Clause
EXTRA_DIST += quickstart contrib/build/build-tree contrib/build/install-deps \
	contrib/build/list-files contrib/build/packages.debian \
	contrib/build/plain-path contrib/build/record contrib/build/site \
	contrib/build/site-search.js \
	contrib/cluster/mpi-hello.c \
	testsuite/report.sh testsuite/run testsuite/count testsuite/sanitize \
	testsuite/asan-at-fork.c testsuite/cross testsuite/debian-root.sh \
	testsuite/check-promises testsuite/expected-skips testsuite/fresh-debian testsuite/matrix \
	testsuite/slurm-from-source \
	testsuite/slurm-version

# How many there are tells testsuite/run how far it is.
list-tests:
	@echo $(TESTS)
.PHONY: list-tests

# Where packages find what is installed. Those of the plugin are lists of their own.
list-installed:
	@printf 'usr/bin/%s\n' $(notdir $(bin_PROGRAMS) $(dist_bin_SCRIPTS))
	@printf 'usr/libexec/pmi2x/%s\n' \
		$(notdir $(pkglibexec_PROGRAMS) $(dist_pkglibexec_SCRIPTS))
	@for page in $(notdir $(dist_man_MANS) $(man_MANS)); do \
		echo "usr/share/man/man$${page##*.}/$$page"; \
	done
.PHONY: list-installed

# In hours. With the plugin when it is built here. make check-sanitize KIND=thread: that
# kind alone.
KIND = all
check-sanitize:
	$(AM_V_at)$(srcdir)/testsuite/sanitize --build . $(KIND) -- $(DISTCHECK_SLURM)
.PHONY: check-sanitize

# README, doc/ and the man pages as a site in ./site, with a search.
site:
	$(AM_V_at)$(PYTHON3) $(srcdir)/contrib/build/site . $(PACKAGE_VERSION)
.PHONY: site

# Build and system tests with another Slurm: make check-slurm VERSION=24.11 that of a
# Debian release, make check-slurm SOURCE=DIR any source tree.
check-slurm:
	$(AM_V_at)set -- $(VERSION); if test -n '$(SOURCE)'; then \
		set -- $(srcdir)/testsuite/slurm-from-source '$(SOURCE)'; else \
		set -- $(srcdir)/testsuite/slurm-version "$$@"; fi; \
		env -u MAKEFLAGS -u MAKEOVERRIDES -u MFLAGS "$$@"
.PHONY: check-slurm

# The longer tests of which continuous integration runs one part with each commit;
# make check-matrix PART=2: that one alone.
check-matrix: all
	$(AM_V_at)$(srcdir)/testsuite/matrix $(PART)
.PHONY: check-matrix
