# SPDX-License-Identifier: BSD-3-Clause
# Modules of pmi2x cluster.
clusterdir = $(modulesdir)/pmi2x_cluster
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
