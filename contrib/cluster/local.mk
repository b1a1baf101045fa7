# SPDX-License-Identifier: BSD-3-Clause
# The program finds its modules beside itself in the source tree, and in
# clusterdir once it is installed.
clusterdir = $(pkgdatadir)/cluster/pmi2x_cluster
dist_bin_SCRIPTS += contrib/cluster/pmi2x-cluster
dist_cluster_DATA = \
	contrib/cluster/pmi2x_cluster/__init__.py \
	contrib/cluster/pmi2x_cluster/auth.py \
	contrib/cluster/pmi2x_cluster/cgroups.py \
	contrib/cluster/pmi2x_cluster/config.py \
	contrib/cluster/pmi2x_cluster/machine.py \
	contrib/cluster/pmi2x_cluster/namespaces.py \
	contrib/cluster/pmi2x_cluster/processes.py \
	contrib/cluster/pmi2x_cluster/site.py \
	contrib/cluster/pmi2x_cluster/spank-fork.c \
	contrib/cluster/pmi2x_cluster/state.py \
	contrib/cluster/pmi2x_cluster/supervisor.py
dist_man_MANS += contrib/cluster/pmi2x-cluster.1

install-exec-hook: install-cluster-program

.PHONY: install-cluster-program
install-cluster-program:
	$(SED) -e "s|^VERSION = .*|VERSION = \"`$(BUILD_ID)`\"|" \
		-e 's|^MODULES = .*|MODULES = "$(pkgdatadir)/cluster"|' \
		"$(srcdir)/contrib/cluster/pmi2x-cluster" \
		> "$(DESTDIR)$(bindir)/pmi2x-cluster"
