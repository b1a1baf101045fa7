# SPDX-License-Identifier: BSD-3-Clause
# Tests of the ring allgather.
unit_tests += testsuite/unit/transport-test
testsuite_unit_transport_test_SOURCES = testsuite/unit/transport-test.c
testsuite_unit_transport_test_CPPFLAGS = -D_GNU_SOURCE $(UNIT_CPPFLAGS) \
	-I$(srcdir)/contrib/allgather
testsuite_unit_transport_test_LDADD = contrib/allgather/libring.la $(CMOCKA_LIBS)

unit_tests += testsuite/unit/schedule-test testsuite/unit/flow-test
testsuite_unit_schedule_test_SOURCES = testsuite/unit/schedule-test.c
testsuite_unit_schedule_test_CPPFLAGS = $(testsuite_unit_transport_test_CPPFLAGS)
testsuite_unit_schedule_test_LDADD = $(testsuite_unit_transport_test_LDADD)

testsuite_unit_flow_test_SOURCES = testsuite/unit/flow-test.c
testsuite_unit_flow_test_CPPFLAGS = $(testsuite_unit_transport_test_CPPFLAGS)
testsuite_unit_flow_test_LDADD = $(testsuite_unit_transport_test_LDADD)

unit_tests += testsuite/unit/group-test
testsuite_unit_group_test_SOURCES = testsuite/unit/group-test.c
testsuite_unit_group_test_CPPFLAGS = \
	$(testsuite_unit_transport_test_CPPFLAGS) \
	-I$(srcdir)/contrib/allgather/include
testsuite_unit_group_test_LDADD = $(testsuite_unit_transport_test_LDADD)

unit_tests += testsuite/unit/settings-test
testsuite_unit_settings_test_SOURCES = testsuite/unit/settings-test.c
testsuite_unit_settings_test_CPPFLAGS = $(testsuite_unit_group_test_CPPFLAGS)
testsuite_unit_settings_test_LDADD = $(testsuite_unit_transport_test_LDADD)
