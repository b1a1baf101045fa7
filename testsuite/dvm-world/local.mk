# SPDX-License-Identifier: BSD-3-Clause
# A whole DVM in one process and in virtual time, by seed: testsuite/dvm-world/world.h.
testsuite_dvm_world_dvm_world_SOURCES = $(files_testsuite_dvm_world)
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
