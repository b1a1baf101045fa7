# SPDX-License-Identifier: BSD-3-Clause
# Tests of libpmi2x. libclient.la has its own copies of what it needs; the
# server in the test needs the writing half of libshm as well.
CLIENT_TEST_LIBS = contrib/libpmi2x/libclient.la libshm.la libutil.la \
	$(CMOCKA_LIBS)
CLIENT_TEST_SERVER = testsuite/unit/client-server.c \
	testsuite/unit/client-server.h

unit_tests += testsuite/unit/client-test

testsuite_unit_client_test_SOURCES = testsuite/unit/client-test.c \
	$(CLIENT_TEST_SERVER)
testsuite_unit_client_test_CPPFLAGS = $(UNIT_CPPFLAGS)
testsuite_unit_client_test_CFLAGS = $(AM_CFLAGS) -pthread
testsuite_unit_client_test_LDADD = $(CLIENT_TEST_LIBS)
