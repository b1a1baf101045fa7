# SPDX-License-Identifier: BSD-3-Clause
# Unit tests are cmocka programs and scripts: one line each in the file tests.
EXTRA_DIST += testsuite/unit/tests testsuite/unit/wire-reference
PROGRAMS_UNIT =
include testsuite/unit/tests.mk
$(srcdir)/testsuite/unit/tests.mk: $(srcdir)/testsuite/unit/tests \
		$(srcdir)/testsuite/unit/make-stanzas
	$(AM_V_GEN)$(srcdir)/testsuite/unit/make-stanzas unit && touch $@
if HAVE_CMOCKA
check_PROGRAMS += $(PROGRAMS_UNIT)
TESTS += $(PROGRAMS_UNIT)
check_LTLIBRARIES += testsuite/unit/libunit.la
endif

CPPFLAGS_UNIT = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS) $(JANSSON_CFLAGS) $(LIBUV_CFLAGS) \
	-D_GNU_SOURCE -I$(srcdir)/testsuite/unit
CFLAGS_UNIT = $(AM_CFLAGS) -pthread
LDFLAGS_UNIT = $(AM_LDFLAGS)
SOURCES_UNIT =
LIBS_UNIT = testsuite/unit/libunit.la $(CMOCKA_LIBS)
testsuite_unit_libunit_la_SOURCES = testsuite/unit/unit.c testsuite/unit/unit-main.c
testsuite_unit_libunit_la_CPPFLAGS = $(CPPFLAGS_UNIT)

# By kind of test or fuzz target; libraries in the order in which the linker needs them.
UNIT_LIBS_CORE = libcoll.la libutil.la
UNIT_CPPFLAGS_BED = -I$(srcdir)/testsuite
UNIT_LIBS_BED = testsuite/bed/libbed.la $(UNIT_LIBS_CORE)
UNIT_LIBS_STORE = libstore.la $(UNIT_LIBS_CORE)
UNIT_LIBS_SHM = libshm.la libutil.la
UNIT_LIBS_PMI = libengine.la libpmi.la libshm.la $(XXHASH_LIBS) $(UNIT_LIBS_CORE)
UNIT_LIBS_IO = libio.la libutil.la $(SODIUM_LIBS) $(XXHASH_LIBS) $(LIBUV_LIBS)
UNIT_LIBS_AGENT = libsupervisor.la libagent.la libsrun.la libio.la $(SODIUM_LIBS) \
	$(LIBUV_LIBS) $(UNIT_LIBS_PMI)
UNIT_LIBS_LENDCORE = liblendcore.la
UNIT_LIBS_LEND = liblend.la $(DL_LIBS)
UNIT_LIBS_SRUN = $(UNIT_LIBS_AGENT)
UNIT_LDFLAGS_SRUN = -Wl,--wrap=payload_copy_in
UNIT_CPPFLAGS_PLUGIN = -I$(srcdir)/src/plugins/mpi/pmi2x
UNIT_LIBS_PLUGIN = $(DL_LIBS) $(UNIT_LIBS_PMI)
# libclient.la has its own copies of what it needs; the server in the tests needs the
# writing half of libshm as well.
UNIT_CPPFLAGS_CLIENT = -I$(srcdir)/contrib/libpmi2x
UNIT_LIBS_CLIENT = contrib/libpmi2x/libclient.la $(UNIT_LIBS_SHM)
UNIT_CPPFLAGS_RING = -I$(srcdir)/contrib/allgather -I$(srcdir)/contrib/allgather/include
UNIT_LIBS_RING = contrib/allgather/libring.la
UNIT_LIBS_DVM = libdvmjson.la libdvm.la libcoll.la libutil.la $(JANSSON_LIBS)
UNIT_LIBS_MESH = libdvm.la libcoll.la $(UNIT_LIBS_IO)
UNIT_CPPFLAGS_SIM = -I$(srcdir)/contrib/sim
UNIT_LIBS_SIM = $(SIM_LIBS)

# Sources that several tests of a directory share.
client_server = testsuite/unit/client/server.c testsuite/unit/client/server-pmi1.c \
	testsuite/unit/client/server-pmi2.c
pmix_bed = testsuite/unit/engine/pmix-bed.c testsuite/unit/engine/net.c

# For tests that let allocations fail (wrap-memory.h), or with refusal.c other calls, too.
WRAP_MEMORY = -Wl,--wrap=malloc -Wl,--wrap=calloc -Wl,--wrap=realloc
WRAP_REFUSAL = $(WRAP_MEMORY) \
	-Wl,--wrap=memfd_create -Wl,--wrap=ftruncate -Wl,--wrap=fchmod \
	-Wl,--wrap=fstat -Wl,--wrap=madvise -Wl,--wrap=fallocate \
	-Wl,--wrap=poll -Wl,--wrap=send -Wl,--wrap=recvmsg -Wl,--wrap=mmap \
	-Wl,--wrap=fcntl -Wl,--wrap=open

# A program in place of pmi2x-topology.
check_PROGRAMS += testsuite/unit/supervisor/other-topology
testsuite_unit_supervisor_other_topology_SOURCES = testsuite/unit/supervisor/other-topology.c
testsuite_unit_supervisor_other_topology_CPPFLAGS = $(CPPFLAGS_UNIT)
testsuite_unit_supervisor_other_topology_LDADD = libagent_nodeps.la libconfine_nodeps.la \
	libio_nodeps.la libpmi.la libshm_nodeps.la libcoll.la libutil.la
OTHER_TOPOLOGY_CPPFLAGS = \
	-DOTHER_TOPOLOGY='"$(abs_top_builddir)/testsuite/unit/supervisor/other-topology"'

# A library in place of srun's. -rpath makes libtool build a shared object of what is not
# installed.
if BUILD_PLUGIN
check_LTLIBRARIES += testsuite/unit/plugin/other-srun.la
endif
testsuite_unit_plugin_other_srun_la_SOURCES = testsuite/unit/plugin/other-srun.c
testsuite_unit_plugin_other_srun_la_LDFLAGS = $(AM_LDFLAGS) -module \
	-avoid-version -shared -rpath /nowhere
SRUN_LIBRARY_CPPFLAGS = -DBUILT_SRUN_LIBRARY='"$(abs_top_builddir)/.libs/libpmi2x-srun.so"' \
	-DOTHER_SRUN_LIBRARY='"$(abs_top_builddir)/testsuite/unit/plugin/.libs/other-srun.so"'

EXTRA_DIST += testsuite/abi/libpmi2x-0.1.0.abi
AM_TESTS_ENVIRONMENT = SLURMFULL='$(SLURMFULL)' SLURM_CALLS='$(SLURM_CALLS)' \
	SLURM_TREE='$(SLURM_TREE)' CONFIGURE_SLURM="$(DISTCHECK_SLURM)" \
	SANITIZE='$(SANITIZE)'; \
	export SLURMFULL SLURM_CALLS SLURM_TREE CONFIGURE_SLURM SANITIZE;
