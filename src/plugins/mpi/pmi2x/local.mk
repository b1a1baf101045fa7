# SPDX-License-Identifier: BSD-3-Clause
# The Slurm plugin. Slurm wants the file mpi_pmi2x.so, without lib and version.
EXTRA_DIST += contrib/build/slurm-source src/plugins/mpi/pmi2x/mpi_pmi2x.conf.5
man_MANS =
if BUILD_PLUGIN
slurm_plugin_LTLIBRARIES = mpi_pmi2x.la
endif
if BUILD_FOR_SLURM
pkglib_LTLIBRARIES += libpmi2x-srun.la
man_MANS += src/plugins/mpi/pmi2x/mpi_pmi2x.conf.5
endif
slurm_plugindir = @slurm_plugindir@

mpi_pmi2x_la_SOURCES = $(files_src_plugins_mpi_pmi2x)
plugin_cppflags = -D_GNU_SOURCE $(SLURM_CPPFLAGS) $(AM_CPPFLAGS)
plugin_paths = -DSRUN_LIBRARY='"$(1)$(pkglibdir)/libpmi2x-srun.so"' \
	-DLEND_LIBRARY='"$(1)$(pkglibdir)/libpmi2x-lend.so"' \
	-DAGENT_PROGRAM='"$(1)$(pkglibexecdir)/pmi2x-agent"' \
	-DTOPOLOGY_PROGRAM='"$(1)$(pkglibexecdir)/pmi2x-topology"' \
	-DPMIXD_PROGRAM='"$(1)$(pkglibexecdir)/pmi2x-pmixd"'
mpi_pmi2x_la_CPPFLAGS = $(plugin_cppflags) $(call plugin_paths,)
# nodelete: a thread may still be in one of Slurm's calls when Slurm unloads us.
mpi_pmi2x_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version -shared \
	-export-symbols-regex '^(plugin_(name|type|id|version)|mpi_p_.*|init|fini)$$' \
	-Wl,-z,nodelete
mpi_pmi2x_la_LIBADD = liblend.la libsupervisor.la libagent_nodeps.la \
	libconfine_nodeps.la libio_nodeps.la \
	libpmi.la libshm_nodeps.la libcoll.la libutil.la $(DL_LIBS)
