# SPDX-License-Identifier: BSD-3-Clause
# Tests of libpmi2x. libclient.la has its own copies of what it needs; the
# server in the tests needs the writing half of libshm as well.
CLIENT_TEST_LIBS = contrib/libpmi2x/libclient.la libshm.la libutil.la \
	$(CMOCKA_LIBS)
CLIENT_TEST_SERVER = testsuite/unit/client-server.c \
	testsuite/unit/client-server.h testsuite/unit/client-server-parts.h \
	testsuite/unit/client-server-pmi1.c testsuite/unit/client-server-pmi2.c
CLIENT_TEST_CFLAGS = $(AM_CFLAGS) -pthread

unit_tests += testsuite/unit/client-test \
	testsuite/unit/client-extension-test \
	testsuite/unit/client-failure-test \
	testsuite/unit/client-group-test \
	testsuite/unit/client-text-test \
	testsuite/unit/client-thread-test

testsuite_unit_client_test_SOURCES = testsuite/unit/client-test.c \
	$(CLIENT_TEST_SERVER)
testsuite_unit_client_test_CPPFLAGS = $(UNIT_CPPFLAGS)
testsuite_unit_client_test_CFLAGS = $(CLIENT_TEST_CFLAGS)
testsuite_unit_client_test_LDADD = $(CLIENT_TEST_LIBS)

testsuite_unit_client_extension_test_SOURCES = \
	testsuite/unit/client-extension-test.c $(CLIENT_TEST_SERVER)
testsuite_unit_client_extension_test_CPPFLAGS = $(UNIT_CPPFLAGS)
testsuite_unit_client_extension_test_CFLAGS = $(CLIENT_TEST_CFLAGS)
testsuite_unit_client_extension_test_LDADD = $(CLIENT_TEST_LIBS)

testsuite_unit_client_failure_test_SOURCES = \
	testsuite/unit/client-failure-test.c $(CLIENT_TEST_SERVER)
testsuite_unit_client_failure_test_CPPFLAGS = $(UNIT_CPPFLAGS)
testsuite_unit_client_failure_test_CFLAGS = $(CLIENT_TEST_CFLAGS)
testsuite_unit_client_failure_test_LDADD = $(CLIENT_TEST_LIBS)

testsuite_unit_client_group_test_SOURCES = \
	testsuite/unit/client-group-test.c $(CLIENT_TEST_SERVER)
testsuite_unit_client_group_test_CPPFLAGS = $(UNIT_CPPFLAGS)
testsuite_unit_client_group_test_CFLAGS = $(CLIENT_TEST_CFLAGS)
testsuite_unit_client_group_test_LDADD = $(CLIENT_TEST_LIBS)

testsuite_unit_client_text_test_SOURCES = testsuite/unit/client-text-test.c
testsuite_unit_client_text_test_CPPFLAGS = $(UNIT_CPPFLAGS)
testsuite_unit_client_text_test_LDADD = $(CLIENT_TEST_LIBS)

testsuite_unit_client_thread_test_SOURCES = \
	testsuite/unit/client-thread-test.c $(CLIENT_TEST_SERVER)
testsuite_unit_client_thread_test_CPPFLAGS = $(UNIT_CPPFLAGS)
testsuite_unit_client_thread_test_CFLAGS = $(CLIENT_TEST_CFLAGS)
testsuite_unit_client_thread_test_LDADD = $(CLIENT_TEST_LIBS)

unit_tests += testsuite/unit/client-stall-test
testsuite_unit_client_stall_test_SOURCES = testsuite/unit/client-stall-test.c
testsuite_unit_client_stall_test_CPPFLAGS = $(UNIT_CPPFLAGS) \
	-I$(top_srcdir)/contrib/libpmi2x
testsuite_unit_client_stall_test_CFLAGS = $(CLIENT_TEST_CFLAGS)
testsuite_unit_client_stall_test_LDADD = $(CLIENT_TEST_LIBS)

unit_tests += testsuite/unit/print-error-test
testsuite_unit_print_error_test_SOURCES = testsuite/unit/print-error-test.c
testsuite_unit_print_error_test_CPPFLAGS = $(UNIT_CPPFLAGS)
testsuite_unit_print_error_test_CFLAGS = $(CLIENT_TEST_CFLAGS)
testsuite_unit_print_error_test_LDADD = $(CLIENT_TEST_LIBS)

unit_tests += testsuite/unit/client-refusal-test
testsuite_unit_client_refusal_test_SOURCES = \
	testsuite/unit/client-refusal-test.c $(CLIENT_TEST_SERVER) \
	$(unit_refusal)
testsuite_unit_client_refusal_test_CPPFLAGS = $(UNIT_CPPFLAGS) -D_GNU_SOURCE
testsuite_unit_client_refusal_test_CFLAGS = $(CLIENT_TEST_CFLAGS)
testsuite_unit_client_refusal_test_LDFLAGS = $(AM_LDFLAGS) $(REFUSAL_WRAP)
testsuite_unit_client_refusal_test_LDADD = $(CLIENT_TEST_LIBS)

unit_tests += testsuite/unit/client-engine-test
testsuite_unit_client_engine_test_SOURCES = testsuite/unit/client-engine-test.c
testsuite_unit_client_engine_test_CPPFLAGS = $(UNIT_CPPFLAGS)
testsuite_unit_client_engine_test_LDADD = contrib/libpmi2x/libpmi2x.la \
	libpmi.la libshm.la libcoll.la libutil.la $(CMOCKA_LIBS)

EXTRA_DIST += testsuite/abi/libpmi2x-0.1.0.abi
dist_check_SCRIPTS += testsuite/unit/client-abi-test.sh \
	testsuite/unit/client-exports.sh
TESTS += testsuite/unit/client-abi-test.sh testsuite/unit/client-exports.sh

unit_tests += testsuite/unit/stock-client-test
testsuite_unit_stock_client_test_SOURCES = testsuite/unit/stock-client-test.c
testsuite_unit_stock_client_test_CPPFLAGS = $(UNIT_CPPFLAGS) -D_GNU_SOURCE
testsuite_unit_stock_client_test_LDADD = libpmi.la libshm.la libcoll.la \
	libutil.la $(XXHASH_LIBS) $(CMOCKA_LIBS) -ldl
