# SPDX-License-Identifier: BSD-3-Clause
bin_PROGRAMS += contrib/tools/pmi2x-probe
contrib_tools_pmi2x_probe_SOURCES = \
	contrib/tools/pmi2x-probe.c \
	contrib/tools/probe.h \
	contrib/tools/probe_nodes.c \
	contrib/tools/probe_ops.c \
	contrib/tools/probe_show.c
contrib_tools_pmi2x_probe_LDADD = contrib/libpmi2x/libpmi2x.la
dist_man_MANS += contrib/tools/pmi2x-probe.1
