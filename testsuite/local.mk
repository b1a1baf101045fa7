# SPDX-License-Identifier: BSD-3-Clause
EXTRA_DIST += quickstart contrib/build-tree contrib/install-deps \
	contrib/packages.debian contrib/plain-path contrib/cluster/mpi-hello.c \
	testsuite/run testsuite/count testsuite/sanitize

check-sanitize:
	$(AM_V_at)$(srcdir)/testsuite/sanitize --build . address thread memcheck
.PHONY: check-sanitize
