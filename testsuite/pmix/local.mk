# SPDX-License-Identifier: BSD-3-Clause
# pmi2x-pmixd with unmodified clients of PMIx, without Slurm and without agents.
if HAVE_PMIXD
check_PROGRAMS += testsuite/pmix/pmix-host testsuite/pmix/pmix-exercise
check_LTLIBRARIES += testsuite/pmix/old-libpmix.la
endif
testsuite_pmix_pmix_host_SOURCES = \
	testsuite/pmix/attack.c testsuite/pmix/attack.h \
	testsuite/pmix/host.c testsuite/pmix/host.h \
	testsuite/pmix/host-agent.c testsuite/pmix/host-node.c \
	testsuite/fake/fake-layout.c testsuite/fake/fake.h
testsuite_pmix_pmix_host_CPPFLAGS = -D_GNU_SOURCE $(AM_CPPFLAGS) $(PMIX_CFLAGS) \
	-I$(srcdir)/testsuite/fake
testsuite_pmix_pmix_host_LDADD = libpmixd.la libagent.la libpmi.la libcoll.la \
	libutil.la $(XXHASH_LIBS) $(DL_LIBS) -lpthread

testsuite_pmix_pmix_exercise_SOURCES = \
	testsuite/pmix/exercise.c testsuite/pmix/exercise.h \
	testsuite/pmix/exercise-client.c testsuite/pmix/exercise-event.c \
	testsuite/pmix/exercise-group.c testsuite/pmix/exercise-name.c \
	testsuite/pmix/exercise-spawn.c
testsuite_pmix_pmix_exercise_CPPFLAGS = $(AM_CPPFLAGS) $(PMIX_CFLAGS)
testsuite_pmix_pmix_exercise_LDADD = $(PMIX_LIBS)

# -rpath makes libtool build a shared object of what is not installed.
testsuite_pmix_old_libpmix_la_SOURCES = testsuite/pmix/old-libpmix.c
testsuite_pmix_old_libpmix_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version \
	-shared -rpath /nowhere

dist_check_SCRIPTS += testsuite/pmix/pmixd-test.sh
TESTS += testsuite/pmix/pmixd-test.sh
