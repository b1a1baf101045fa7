# SPDX-License-Identifier: BSD-3-Clause
# Fork, exec and wait, beside which "pmi2x bench dvm" shows what it measures.
pkglibexec_PROGRAMS += contrib/bench/dvm-floor
contrib_bench_dvm_floor_SOURCES = contrib/bench/dvm-floor.c

# The bound: the same tree, bytes and processes without PMI.
pkglibexec_PROGRAMS += contrib/bench/floor
contrib_bench_floor_SOURCES = \
	contrib/bench/floor.c contrib/bench/floor.h \
	contrib/bench/floor_launch.c \
	contrib/bench/floor_layout.c \
	contrib/bench/floor_limits.c \
	contrib/bench/floor_meet.c \
	contrib/bench/floor_node.c \
	contrib/bench/floor_shm.c \
	contrib/bench/floor_socket.c \
	contrib/bench/number.c contrib/bench/number.h
contrib_bench_floor_CPPFLAGS = -D_GNU_SOURCE $(AM_CPPFLAGS)
contrib_bench_floor_LDADD = libcoll.la libutil.la

# These files serve ranks of several benchmarks.
bench_shared = contrib/bench/agent_process.c contrib/bench/agent_process.h \
	contrib/bench/bench_meet.c contrib/bench/bench_rank.h

# A rank of pmi2x bench collectives loads its PMI client at run time.
bench_rank = $(files_contrib_bench) contrib/bench/bench_pmi1.c $(bench_shared)
pkglibexec_PROGRAMS += contrib/bench/pmi2x-bench-rank
contrib_bench_pmi2x_bench_rank_SOURCES = $(bench_rank) contrib/bench/bench_pmi.c
contrib_bench_pmi2x_bench_rank_LDADD = libutil.la -ldl

# A rank of pmi2x bench store.
pkglibexec_PROGRAMS += contrib/bench/store-rank
contrib_bench_store_rank_SOURCES = $(bench_shared) contrib/bench/store-rank.c \
	contrib/bench/tcp_store.c contrib/bench/tcp_store.h
contrib_bench_store_rank_CPPFLAGS = -D_GNU_SOURCE $(AM_CPPFLAGS)

# The PMI no-op of pmi2x bench launch.
pkglibexec_PROGRAMS += contrib/bench/pmi2x-noop
contrib_bench_pmi2x_noop_SOURCES = contrib/bench/pmi2x-noop.c \
	contrib/bench/bench_pmi.c contrib/bench/bench_pmi.h \
	contrib/bench/bench_pmi1.c
contrib_bench_pmi2x_noop_LDADD = -ldl

# The ring of libpmi2x-allgather beside what PMI does itself.
pkglibexec_PROGRAMS += contrib/bench/pmi2x-bench-ring
contrib_bench_pmi2x_bench_ring_SOURCES = contrib/bench/ring-bench.c
contrib_bench_pmi2x_bench_ring_CPPFLAGS = $(AM_CPPFLAGS) \
	-I$(srcdir)/contrib/allgather/include
contrib_bench_pmi2x_bench_ring_LDADD = \
	contrib/allgather/libpmi2x-allgather.la contrib/libpmi2x/libpmi2x.la

# The same over PMIx, where its development files are.
EXTRA_DIST += contrib/bench/bench_pmix.c
if HAVE_PMIX
pkglibexec_PROGRAMS += contrib/bench/pmi2x-bench-pmix
contrib_bench_pmi2x_bench_pmix_SOURCES = $(bench_rank) contrib/bench/bench_pmix.c
contrib_bench_pmi2x_bench_pmix_CPPFLAGS = $(AM_CPPFLAGS) $(PMIX_CFLAGS)
contrib_bench_pmi2x_bench_pmix_LDADD = libutil.la $(PMIX_LIBS)
pkglibexec_PROGRAMS += contrib/bench/pmi2x-noop-pmix
contrib_bench_pmi2x_noop_pmix_SOURCES = contrib/bench/pmi2x-noop.c \
	contrib/bench/bench_pmi1.c contrib/bench/bench_pmix.c
contrib_bench_pmi2x_noop_pmix_CPPFLAGS = $(AM_CPPFLAGS) $(PMIX_CFLAGS)
contrib_bench_pmi2x_noop_pmix_LDADD = $(PMIX_LIBS)
endif

# The look-up study; pmi2x bench lookup runs it.
pkglibexec_PROGRAMS += contrib/bench/lookup
contrib_bench_lookup_SOURCES = \
	contrib/bench/lookup.c contrib/bench/lookup.h \
	contrib/bench/lookup_image.c \
	contrib/bench/lookup_run.c \
	contrib/bench/lookup_ways.c \
	contrib/bench/number.c contrib/bench/number.h
contrib_bench_lookup_CPPFLAGS = -D_GNU_SOURCE $(AM_CPPFLAGS)
contrib_bench_lookup_CFLAGS = $(AM_CFLAGS) -pthread
contrib_bench_lookup_LDADD = libshm.la libutil.la -lpthread

dist_man_MANS += contrib/bench/pmi2x-bench-lookup.1

# On a test cluster. Slurm wants the plugin installed, so everything is, below
# the build directory.
bench_inst = $(abs_builddir)/bench-inst
bench_places = --programs "$(bench_inst)$(pkglibexecdir)" \
	--libraries "$(bench_inst)$(libdir)" \
	--plugindir "$(bench_inst)$(slurm_plugindir)"

# The plugin opens what is installed with it by absolute paths: there, others.
EXTRA_LTLIBRARIES = contrib/bench/mpi_pmi2x.la
contrib_bench_mpi_pmi2x_la_SOURCES = $(mpi_pmi2x_la_SOURCES)
contrib_bench_mpi_pmi2x_la_CPPFLAGS = $(plugin_cppflags) \
	$(call plugin_paths,$(bench_inst))
contrib_bench_mpi_pmi2x_la_LDFLAGS = $(mpi_pmi2x_la_LDFLAGS) \
	-rpath $(slurm_plugindir)
contrib_bench_mpi_pmi2x_la_LIBADD = $(mpi_pmi2x_la_LIBADD)
if BUILD_PLUGIN
bench_plugin = contrib/bench/mpi_pmi2x.la
endif

.PHONY: bench-inst
bench-inst: all $(bench_plugin)
	$(MAKE) $(AM_MAKEFLAGS) install DESTDIR="$(bench_inst)" >bench-inst.log 2>&1
	test -z "$(bench_plugin)" || \
		cp contrib/bench/.libs/mpi_pmi2x.so "$(bench_inst)$(slurm_plugindir)"

# A program of MPI and OpenMP for doc/lend.md, which users and make check-lend compile.
EXTRA_DIST += contrib/bench/lend-cg.c

# What doc/measurements.md and doc/performance.md show, in hours; and the plot of the README.
EXTRA_DIST += contrib/bench/front-plot contrib/bench/measure

# A small matrix, in minutes. BENCH_FLAGS adds options, or replaces those here.
# Plots where there is matplotlib.
BENCH_FLAGS =
bench_matrix = --private 16 --mpi none,pmi2,pmi2x:stock,pmi2x:own,floor \
	--nodes 4,16 --ranks-per-node 1,8 --op fence,allgather,ring,init,iinit \
	--repeats 3
.PHONY: bench
bench: bench-inst
	svg=`/usr/bin/python3 -c "import matplotlib" 2>/dev/null && \
		echo "--svg bench-plots"`; \
	/usr/bin/python3 $(srcdir)/contrib/bench/pmi2x-bench-collectives $(bench_places) \
		$(bench_matrix) --csv bench.csv $$svg $(BENCH_FLAGS)

CLEANFILES += bench.csv bench-inst.log
clean-local: clean-bench
.PHONY: clean-bench
clean-bench:
	-rm -rf bench-inst bench-plots

# pmi2x bench collectives, launch and dvm; src/tools/local.mk installs the programs.
dist_man_MANS += contrib/bench/pmi2x-bench-collectives.1 contrib/bench/pmi2x-bench-dvm.1 \
	contrib/bench/pmi2x-bench-store.1 \
	contrib/bench/pmi2x-dvm-plot.1 \
	contrib/bench/pmi2x-bench-launch.1 contrib/bench/pmi2x-bench-ring.1
benchdir = $(modulesdir)/pmi2x_bench
dist_bench_DATA = $(files_contrib_bench_pmi2x_bench)
bench_collectivesdir = $(benchdir)/collectives
dist_bench_collectives_DATA = $(files_contrib_bench_pmi2x_bench_collectives)
bench_tasksdir = $(benchdir)/tasks
dist_bench_tasks_DATA = $(files_contrib_bench_pmi2x_bench_tasks)
bench_modeldir = $(benchdir)/model
dist_bench_model_DATA = $(files_contrib_bench_pmi2x_bench_model)
bench_launchdir = $(benchdir)/launch
dist_bench_launch_DATA = $(files_contrib_bench_pmi2x_bench_launch)
