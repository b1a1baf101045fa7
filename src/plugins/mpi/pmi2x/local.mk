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

mpi_pmi2x_la_SOURCES = \
	src/plugins/mpi/pmi2x/address.c \
	src/plugins/mpi/pmi2x/address.h \
	src/plugins/mpi/pmi2x/conf.c \
	src/plugins/mpi/pmi2x/conf.h \
	src/plugins/mpi/pmi2x/foreign_env.c \
	src/plugins/mpi/pmi2x/foreign_env.h \
	src/plugins/mpi/pmi2x/launch_env.c \
	src/plugins/mpi/pmi2x/launch_env.h \
	src/plugins/mpi/pmi2x/launch_text.c \
	src/plugins/mpi/pmi2x/lend_offer.c \
	src/plugins/mpi/pmi2x/lend_offer.h \
	src/plugins/mpi/pmi2x/multi_prog.c \
	src/plugins/mpi/pmi2x/multi_prog.h \
	src/plugins/mpi/pmi2x/network.c \
	src/plugins/mpi/pmi2x/network.h \
	src/plugins/mpi/pmi2x/options.c \
	src/plugins/mpi/pmi2x/options.h \
	src/plugins/mpi/pmi2x/plugin.c \
	src/plugins/mpi/pmi2x/pmix_offer.c \
	src/plugins/mpi/pmi2x/pmix_offer.h \
	src/plugins/mpi/pmi2x/preload_list.c \
	src/plugins/mpi/pmi2x/preload_list.h \
	src/plugins/mpi/pmi2x/slurm_calls.h \
	src/plugins/mpi/pmi2x/slurm_compat.h \
	src/plugins/mpi/pmi2x/slurm_log.c \
	src/plugins/mpi/pmi2x/slurm_log.h \
	src/plugins/mpi/pmi2x/slurm_types.c \
	src/plugins/mpi/pmi2x/socket_name.c \
	src/plugins/mpi/pmi2x/socket_name.h \
	src/plugins/mpi/pmi2x/spawn_srun.c \
	src/plugins/mpi/pmi2x/spawn_srun.h \
	src/plugins/mpi/pmi2x/spool.c \
	src/plugins/mpi/pmi2x/spool.h \
	src/plugins/mpi/pmi2x/srun.c \
	src/plugins/mpi/pmi2x/srun.h \
	src/plugins/mpi/pmi2x/srun_host.c \
	src/plugins/mpi/pmi2x/srun_options.c \
	src/plugins/mpi/pmi2x/srun_options.h \
	src/plugins/mpi/pmi2x/srun_private.h \
	src/plugins/mpi/pmi2x/stale_sockets.c \
	src/plugins/mpi/pmi2x/stale_sockets.h \
	src/plugins/mpi/pmi2x/srun_library.c \
	src/plugins/mpi/pmi2x/srun_library.h \
	src/plugins/mpi/pmi2x/mpir_table.c \
	src/plugins/mpi/pmi2x/mpir_table.h \
	src/plugins/mpi/pmi2x/step_apps.c \
	src/plugins/mpi/pmi2x/step_apps.h \
	src/plugins/mpi/pmi2x/step_layout.c \
	src/plugins/mpi/pmi2x/step_layout.h \
	src/plugins/mpi/pmi2x/step_manager.c \
	src/plugins/mpi/pmi2x/step_manager.h \
	src/plugins/mpi/pmi2x/stepd.c \
	src/plugins/mpi/pmi2x/stepd.h \
	src/plugins/mpi/pmi2x/stepd_private.h \
	src/plugins/mpi/pmi2x/stepd_task.c \
	src/plugins/mpi/pmi2x/topology_env.c \
	src/plugins/mpi/pmi2x/topology_env.h \
	src/plugins/mpi/pmi2x/topology_file.c \
	src/plugins/mpi/pmi2x/topology_file.h \
	src/plugins/mpi/pmi2x/torch_offer.c \
	src/plugins/mpi/pmi2x/torch_offer.h \
	src/plugins/mpi/pmi2x/trace_file.c \
	src/plugins/mpi/pmi2x/trace_file.h \
	src/plugins/mpi/pmi2x/strvec.c \
	src/plugins/mpi/pmi2x/strvec.h
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
