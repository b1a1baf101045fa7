# SPDX-License-Identifier: BSD-3-Clause
# A whole DVM in one process and in virtual time, by seed: testsuite/dvm-world/world.h.
testsuite_dvm_world_dvm_world_SOURCES = \
	testsuite/dvm-world/client.c testsuite/dvm-world/daemon.c \
	testsuite/dvm-world/disk.c testsuite/dvm-world/disk.h \
	testsuite/dvm-world/disk_crash.c testsuite/dvm-world/disk_private.h \
	testsuite/dvm-world/dvm-world.c testsuite/dvm-world/head.c \
	testsuite/dvm-world/head_begin.c testsuite/dvm-world/head_private.h \
	testsuite/dvm-world/links.c testsuite/dvm-world/output.c testsuite/dvm-world/plan.c \
	testsuite/dvm-world/promises.c \
	testsuite/dvm-world/store.c testsuite/dvm-world/store.h \
	testsuite/dvm-world/world.c testsuite/dvm-world/world.h \
	testsuite/dvm-world/zygote.c
testsuite_dvm_world_dvm_world_CPPFLAGS = $(AM_CPPFLAGS) -D_GNU_SOURCE $(JANSSON_CFLAGS)
testsuite_dvm_world_dvm_world_LDFLAGS = $(AM_LDFLAGS) -no-install
testsuite_dvm_world_dvm_world_LDADD = libdvmjson.la libdvm.la libcoll.la libutil.la $(JANSSON_LIBS) $(XXHASH_LIBS)

EXTRA_DIST += testsuite/dvm-world/mutants testsuite/dvm-world/run
dist_check_SCRIPTS += testsuite/dvm-world/dvm-world-test.sh \
	testsuite/dvm-world/mutants-test.sh
if HAVE_JANSSON
check_PROGRAMS += testsuite/dvm-world/dvm-world
TESTS += testsuite/dvm-world/dvm-world-test.sh testsuite/dvm-world/mutants-test.sh
check-simulation: check-dvm-world
endif

# Under a minute: make check-dvm-world; with SEEDS=2000 FIRST_SEED=N others.
check-dvm-world: testsuite/dvm-world/dvm-world
	$(AM_V_at)$(srcdir)/testsuite/dvm-world/run $(SEEDS) $(FIRST_SEED)
.PHONY: check-dvm-world

# What mutants-test.sh compiles and links mutants with.
testsuite/dvm-world/compile: Makefile
	$(AM_V_at)$(MKDIR_P) testsuite/dvm-world
	$(AM_V_GEN){ echo 'compile="$(CC) $(DEFS) $(DEFAULT_INCLUDES) $(INCLUDES) $(testsuite_dvm_world_dvm_world_CPPFLAGS) $(CPPFLAGS) $(AM_CFLAGS) $(CFLAGS)"'; \
	echo 'link="$(LIBTOOL) --quiet --tag=CC --mode=link $(CC) $(AM_CFLAGS) $(CFLAGS) $(testsuite_dvm_world_dvm_world_LDFLAGS) $(LDFLAGS)"'; \
	echo 'objects="$(testsuite_dvm_world_dvm_world_OBJECTS)"'; \
	echo 'libraries="$(testsuite_dvm_world_dvm_world_LDADD)"'; } >$@
check_SCRIPTS = testsuite/dvm-world/compile
CLEANFILES += testsuite/dvm-world/compile
