# SPDX-License-Identifier: BSD-3-Clause
# Libraries in the order in which the linker needs them.
UNIT_LIBS_UTIL = libutil.la $(CMOCKA_LIBS)

unit_tests = testsuite/unit/buf-test testsuite/unit/pack-test \
	testsuite/unit/payload-test testsuite/unit/rankset-test

testsuite_unit_buf_test_SOURCES = testsuite/unit/buf-test.c
testsuite_unit_buf_test_CPPFLAGS = $(UNIT_CPPFLAGS)
testsuite_unit_buf_test_LDADD = $(UNIT_LIBS_UTIL)

testsuite_unit_pack_test_SOURCES = testsuite/unit/pack-test.c
testsuite_unit_pack_test_CPPFLAGS = $(UNIT_CPPFLAGS)
testsuite_unit_pack_test_LDADD = $(UNIT_LIBS_UTIL)

testsuite_unit_payload_test_SOURCES = testsuite/unit/payload-test.c
testsuite_unit_payload_test_CPPFLAGS = $(UNIT_CPPFLAGS)
testsuite_unit_payload_test_LDADD = $(UNIT_LIBS_UTIL)

testsuite_unit_rankset_test_SOURCES = testsuite/unit/rankset-test.c
testsuite_unit_rankset_test_CPPFLAGS = $(UNIT_CPPFLAGS)
testsuite_unit_rankset_test_LDADD = $(UNIT_LIBS_UTIL)

include testsuite/unit/libcoll.mk
include testsuite/unit/libshm.mk
include testsuite/unit/libpmi.mk
include testsuite/unit/libpmi-launcher.mk
include testsuite/unit/libio.mk
include testsuite/unit/client.mk
include testsuite/unit/allgather.mk
include testsuite/unit/plugin.mk
