# SPDX-License-Identifier: BSD-3-Clause
# Tests that need InfiniBand devices: one guest with Soft-RoCE runs them all.
VERBS_GUEST = testsuite/verbs/guest-init testsuite/verbs/guest-kernel \
	testsuite/verbs/guest-run testsuite/verbs/soft-roce-guest
dist_check_SCRIPTS += testsuite/verbs/verbs-test.sh \
	testsuite/verbs/in-guest.sh $(VERBS_GUEST)
TESTS += testsuite/verbs/verbs-test.sh

if HAVE_VERBS
if HAVE_CMOCKA
check_PROGRAMS += testsuite/verbs/verbs-test
testsuite_verbs_verbs_test_SOURCES = testsuite/verbs/verbs-test.c
testsuite_verbs_verbs_test_CPPFLAGS = -D_GNU_SOURCE $(UNIT_CPPFLAGS) \
	-I$(srcdir)/contrib/allgather -I$(srcdir)/testsuite/unit
testsuite_verbs_verbs_test_LDADD = contrib/allgather/libring.la $(CMOCKA_LIBS)

unit_tests += testsuite/unit/verbs-open-test
testsuite_unit_verbs_open_test_SOURCES = testsuite/unit/verbs-open-test.c \
	testsuite/unit/verbs-fake.c testsuite/unit/verbs-fake.h
testsuite_unit_verbs_open_test_CPPFLAGS = -D_GNU_SOURCE $(UNIT_CPPFLAGS) \
	-I$(srcdir)/contrib/allgather
testsuite_unit_verbs_open_test_LDADD = contrib/allgather/libring.la $(CMOCKA_LIBS)
endif
endif
