# SPDX-License-Identifier: BSD-3-Clause
unit_tests += testsuite/unit/mapping-test testsuite/unit/spawn-test \
	testsuite/unit/control-test testsuite/unit/launcher-test \
	testsuite/unit/srun-server-test testsuite/unit/srun-spawn-test \
	testsuite/unit/name-store-test

testsuite_unit_mapping_test_SOURCES = testsuite/unit/mapping-test.c
testsuite_unit_mapping_test_CPPFLAGS = $(UNIT_CPPFLAGS)
testsuite_unit_mapping_test_LDADD = libpmi.la libcoll.la libutil.la $(CMOCKA_LIBS)

testsuite_unit_spawn_test_SOURCES = testsuite/unit/spawn-test.c
testsuite_unit_spawn_test_CPPFLAGS = $(UNIT_CPPFLAGS)
testsuite_unit_spawn_test_LDADD = libpmi.la libutil.la $(CMOCKA_LIBS)

testsuite_unit_control_test_SOURCES = testsuite/unit/control-test.c
testsuite_unit_control_test_CPPFLAGS = $(UNIT_CPPFLAGS)
testsuite_unit_control_test_LDADD = libpmi.la libutil.la $(CMOCKA_LIBS)

testsuite_unit_launcher_test_SOURCES = testsuite/unit/launcher-test.c
testsuite_unit_launcher_test_CPPFLAGS = $(UNIT_CPPFLAGS)
testsuite_unit_launcher_test_LDADD = libpmi.la libutil.la $(CMOCKA_LIBS)

testsuite_unit_name_store_test_SOURCES = testsuite/unit/name-store-test.c
testsuite_unit_name_store_test_CPPFLAGS = $(UNIT_CPPFLAGS)
testsuite_unit_name_store_test_LDADD = libpmi.la libutil.la $(CMOCKA_LIBS)

SRUN_BED = testsuite/unit/srun-bed.c testsuite/unit/srun-bed.h testsuite/unit/loopback.h
UNIT_CPPFLAGS_SRUN = $(UNIT_CPPFLAGS) $(LIBUV_CFLAGS) -D_GNU_SOURCE
UNIT_LDFLAGS_SRUN = $(AM_LDFLAGS) -Wl,--wrap=payload_copy_in
UNIT_LIBS_SRUN = libsrun.la libio.la libpmi.la libcoll.la libutil.la \
	$(SODIUM_LIBS) $(LIBUV_LIBS) $(CMOCKA_LIBS)

testsuite_unit_srun_server_test_SOURCES = testsuite/unit/srun-server-test.c $(SRUN_BED)
testsuite_unit_srun_server_test_CPPFLAGS = $(UNIT_CPPFLAGS_SRUN)
testsuite_unit_srun_server_test_LDFLAGS = $(UNIT_LDFLAGS_SRUN)
testsuite_unit_srun_server_test_LDADD = $(UNIT_LIBS_SRUN)

testsuite_unit_srun_spawn_test_SOURCES = testsuite/unit/srun-spawn-test.c $(SRUN_BED)
testsuite_unit_srun_spawn_test_CPPFLAGS = $(UNIT_CPPFLAGS_SRUN)
testsuite_unit_srun_spawn_test_LDFLAGS = $(UNIT_LDFLAGS_SRUN)
testsuite_unit_srun_spawn_test_LDADD = $(UNIT_LIBS_SRUN)
