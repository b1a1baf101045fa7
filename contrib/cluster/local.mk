# SPDX-License-Identifier: BSD-3-Clause
# Modules of pmi2x cluster.
clusterdir = $(modulesdir)/pmi2x_cluster
dist_cluster_DATA = $(files_contrib_cluster_pmi2x_cluster)
dist_man_MANS += contrib/cluster/pmi2x-cluster.1
