# SPDX-License-Identifier: BSD-3-Clause
# What finds out the topology of a node for its ranks. Started by slurmstepd's plugin.
if HAVE_HWLOC
pkglibexec_PROGRAMS += src/helpers/topology/pmi2x-topology
endif
src_helpers_topology_pmi2x_topology_SOURCES = $(files_src_helpers_topology)
src_helpers_topology_pmi2x_topology_CPPFLAGS = $(libconfine_la_CPPFLAGS)
src_helpers_topology_pmi2x_topology_CFLAGS = $(AM_CFLAGS) $(HWLOC_CFLAGS)
src_helpers_topology_pmi2x_topology_LDADD = libconfine.la libio_nodeps.la libutil.la $(HWLOC_LIBS)
