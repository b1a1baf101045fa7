# SPDX-License-Identifier: BSD-3-Clause
EXTRA_DIST += quickstart contrib/build-tree contrib/install-deps \
	contrib/packages.debian contrib/plain-path contrib/cluster/mpi-hello.c \
	testsuite/report.sh testsuite/run testsuite/count testsuite/sanitize \
	testsuite/asan-at-fork.c \
	testsuite/slurm-version testsuite/unit/man-test.py
dist_check_SCRIPTS += testsuite/unit/configure-test.sh testsuite/unit/man-test.sh \
	testsuite/unit/slurm-headers-test.sh
TESTS += testsuite/unit/configure-test.sh testsuite/unit/man-test.sh \
	testsuite/unit/slurm-headers-test.sh

# In hours. With the plugin when it is built here.
check-sanitize:
	$(AM_V_at)$(srcdir)/testsuite/sanitize --build . all -- $(DISTCHECK_SLURM)
.PHONY: check-sanitize

# make check-slurm VERSION=24.11: build and system tests with another Slurm.
check-slurm:
	$(AM_V_at)env -u MAKEFLAGS -u MAKEOVERRIDES -u MFLAGS \
		$(srcdir)/testsuite/slurm-version $(VERSION)
.PHONY: check-slurm
