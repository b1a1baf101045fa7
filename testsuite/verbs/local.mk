# SPDX-License-Identifier: BSD-3-Clause
# Tests that need InfiniBand devices: one guest with Soft-RoCE runs them all.
VERBS_GUEST = testsuite/verbs/guest-init testsuite/verbs/guest-kernel \
	testsuite/verbs/guest-run testsuite/verbs/on-device \
	testsuite/verbs/soft-roce-guest
dist_check_SCRIPTS += testsuite/verbs/verbs-test.sh \
	testsuite/verbs/in-guest.sh $(VERBS_GUEST)
TESTS += testsuite/verbs/verbs-test.sh

if HAVE_VERBS
# With the library inside, to break its queue pairs.
check_PROGRAMS += testsuite/verbs/ring-exercise
testsuite_verbs_ring_exercise_SOURCES = $(ring_exercise_sources) \
	testsuite/verbs/break-links.c
testsuite_verbs_ring_exercise_CPPFLAGS = $(AM_CPPFLAGS) \
	-I$(srcdir)/contrib/allgather/include -I$(srcdir)/contrib/allgather
testsuite_verbs_ring_exercise_LDADD = contrib/allgather/libring.la \
	contrib/libpmi2x/libpmi2x.la
testsuite_verbs_ring_exercise_LDFLAGS = $(AM_LDFLAGS) -no-install

if HAVE_CMOCKA
check_PROGRAMS += testsuite/verbs/verbs-test
testsuite_verbs_verbs_test_SOURCES = testsuite/verbs/verbs-test.c
testsuite_verbs_verbs_test_CPPFLAGS = $(CPPFLAGS_UNIT) $(UNIT_CPPFLAGS_RING)
testsuite_verbs_verbs_test_LDADD = contrib/allgather/libring.la $(LIBS_UNIT)
endif
endif
