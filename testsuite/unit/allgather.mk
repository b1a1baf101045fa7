# SPDX-License-Identifier: BSD-3-Clause
# Tests of the ring allgather.
unit_tests += testsuite/unit/transport-test
testsuite_unit_transport_test_SOURCES = testsuite/unit/transport-test.c
testsuite_unit_transport_test_CPPFLAGS = -D_GNU_SOURCE $(UNIT_CPPFLAGS) \
	-I$(srcdir)/contrib/allgather
testsuite_unit_transport_test_LDADD = contrib/allgather/libring.la $(CMOCKA_LIBS)
