# SPDX-License-Identifier: BSD-3-Clause
# The parts of the plugin that need no Slurm.
unit_tests += testsuite/unit/spawn-srun-test testsuite/unit/netinfo-test \
	testsuite/unit/trace-file-test testsuite/unit/options-test \
	testsuite/unit/multi-prog-test testsuite/unit/network-test \
	testsuite/unit/stale-sockets-test testsuite/unit/topology-env-test \
	testsuite/unit/socket-name-test

testsuite_unit_topology_env_test_SOURCES = testsuite/unit/topology-env-test.c \
	src/plugins/mpi/pmi2x/topology_env.c
testsuite_unit_topology_env_test_CPPFLAGS = $(UNIT_CPPFLAGS) -D_GNU_SOURCE \
	-I$(top_srcdir)/src/plugins/mpi/pmi2x
testsuite_unit_topology_env_test_LDADD = $(CMOCKA_LIBS)

testsuite_unit_socket_name_test_SOURCES = testsuite/unit/socket-name-test.c \
	src/plugins/mpi/pmi2x/socket_name.c
testsuite_unit_socket_name_test_CPPFLAGS = $(UNIT_CPPFLAGS) \
	-I$(top_srcdir)/src/plugins/mpi/pmi2x
testsuite_unit_socket_name_test_LDADD = libutil.la $(CMOCKA_LIBS)

testsuite_unit_options_test_SOURCES = testsuite/unit/options-test.c \
	src/plugins/mpi/pmi2x/network.c src/plugins/mpi/pmi2x/options.c
testsuite_unit_options_test_CPPFLAGS = $(UNIT_CPPFLAGS) -D_GNU_SOURCE \
	-I$(top_srcdir)/src/plugins/mpi/pmi2x
testsuite_unit_options_test_LDADD = libcoll.la libutil.la $(XXHASH_LIBS) $(CMOCKA_LIBS)

testsuite_unit_multi_prog_test_SOURCES = testsuite/unit/multi-prog-test.c \
	src/plugins/mpi/pmi2x/multi_prog.c
testsuite_unit_multi_prog_test_CPPFLAGS = $(UNIT_CPPFLAGS) \
	-I$(top_srcdir)/src/plugins/mpi/pmi2x
testsuite_unit_multi_prog_test_LDADD = $(CMOCKA_LIBS)

testsuite_unit_network_test_SOURCES = testsuite/unit/network-test.c \
	src/plugins/mpi/pmi2x/network.c
testsuite_unit_network_test_CPPFLAGS = $(UNIT_CPPFLAGS) -D_GNU_SOURCE \
	-I$(top_srcdir)/src/plugins/mpi/pmi2x
testsuite_unit_network_test_LDADD = libutil.la $(CMOCKA_LIBS)

testsuite_unit_stale_sockets_test_SOURCES = testsuite/unit/stale-sockets-test.c \
	src/plugins/mpi/pmi2x/stale_sockets.c
testsuite_unit_stale_sockets_test_CPPFLAGS = $(UNIT_CPPFLAGS) -D_GNU_SOURCE \
	-I$(top_srcdir)/src/plugins/mpi/pmi2x
testsuite_unit_stale_sockets_test_LDADD = $(CMOCKA_LIBS)

testsuite_unit_trace_file_test_SOURCES = testsuite/unit/trace-file-test.c \
	src/plugins/mpi/pmi2x/trace_file.c src/supervisor/process_time.c
testsuite_unit_trace_file_test_CPPFLAGS = $(UNIT_CPPFLAGS) -D_GNU_SOURCE \
	-I$(top_srcdir)/src/plugins/mpi/pmi2x
testsuite_unit_trace_file_test_LDADD = libutil.la $(CMOCKA_LIBS)

testsuite_unit_netinfo_test_SOURCES = testsuite/unit/netinfo-test.c \
	src/agent/netinfo.c
testsuite_unit_netinfo_test_CPPFLAGS = $(UNIT_CPPFLAGS) -D_GNU_SOURCE
testsuite_unit_netinfo_test_LDADD = $(CMOCKA_LIBS)

testsuite_unit_spawn_srun_test_SOURCES = testsuite/unit/spawn-srun-test.c \
	src/plugins/mpi/pmi2x/launch_text.c \
	src/plugins/mpi/pmi2x/spawn_srun.c \
	src/plugins/mpi/pmi2x/strvec.c
testsuite_unit_spawn_srun_test_CPPFLAGS = $(UNIT_CPPFLAGS) -D_GNU_SOURCE \
	-I$(top_srcdir)/src/plugins/mpi/pmi2x
testsuite_unit_spawn_srun_test_LDADD = libpmi_nodeps.la libshm_nodeps.la \
	libcoll.la libutil.la $(CMOCKA_LIBS)

EXTRA_DIST += testsuite/unit/plugin-test.sh testsuite/unit/slurm-types-test.sh
AM_TESTS_ENVIRONMENT = SLURMFULL='$(SLURMFULL)' SLURM_CALLS='$(SLURM_CALLS)' \
	SLURM_TREE='$(SLURM_TREE)' CONFIGURE_SLURM="$(DISTCHECK_SLURM)" \
	SANITIZE='$(SANITIZE)'; \
	export SLURMFULL SLURM_CALLS SLURM_TREE CONFIGURE_SLURM SANITIZE;
if BUILD_PLUGIN
unit_tests += testsuite/unit/launcher-library-test
check_LTLIBRARIES += testsuite/unit/other-launcher.la
TESTS += testsuite/unit/plugin-test.sh testsuite/unit/slurm-types-test.sh
endif

# -rpath makes libtool build a shared object of what is not installed.
testsuite_unit_other_launcher_la_SOURCES = testsuite/unit/other-launcher.c
testsuite_unit_other_launcher_la_LDFLAGS = $(AM_LDFLAGS) -module \
	-avoid-version -shared -rpath /nowhere

testsuite_unit_launcher_library_test_SOURCES = \
	testsuite/unit/launcher-library-test.c \
	src/plugins/mpi/pmi2x/srun_library.c
testsuite_unit_launcher_library_test_CPPFLAGS = $(UNIT_CPPFLAGS) -D_GNU_SOURCE \
	-I$(top_srcdir)/src/plugins/mpi/pmi2x \
	-DBUILT_LAUNCHER='"$(abs_top_builddir)/.libs/libpmi2x-srun.so"' \
	-DOTHER_LAUNCHER='"$(abs_top_builddir)/testsuite/unit/.libs/other-launcher.so"'
testsuite_unit_launcher_library_test_LDADD = libutil.la $(DL_LIBS) $(CMOCKA_LIBS)
