# SPDX-License-Identifier: BSD-3-Clause
UNIT_LIBS_SHM = libshm.la libutil.la $(CMOCKA_LIBS)

unit_tests += testsuite/unit/records-test testsuite/unit/image-test \
	testsuite/unit/region-test testsuite/unit/region-merge-test \
	testsuite/unit/region-prefault-test \
	testsuite/unit/region-processes-test testsuite/unit/slots-test

testsuite_unit_records_test_SOURCES = testsuite/unit/records-test.c
testsuite_unit_records_test_CPPFLAGS = $(UNIT_CPPFLAGS)
testsuite_unit_records_test_LDADD = $(UNIT_LIBS_SHM)

testsuite_unit_image_test_SOURCES = testsuite/unit/image-test.c
testsuite_unit_image_test_CPPFLAGS = $(UNIT_CPPFLAGS)
testsuite_unit_image_test_LDADD = $(UNIT_LIBS_SHM)

UNIT_REGION_FIXTURE = testsuite/unit/region-fixture.c \
	testsuite/unit/region-fixture.h

testsuite_unit_region_test_SOURCES = testsuite/unit/region-test.c \
	$(UNIT_REGION_FIXTURE)
testsuite_unit_region_test_CPPFLAGS = $(UNIT_CPPFLAGS)
testsuite_unit_region_test_LDADD = $(UNIT_LIBS_SHM)

testsuite_unit_region_merge_test_SOURCES = \
	testsuite/unit/region-merge-test.c $(UNIT_REGION_FIXTURE)
testsuite_unit_region_merge_test_CPPFLAGS = $(UNIT_CPPFLAGS)
testsuite_unit_region_merge_test_LDADD = $(UNIT_LIBS_SHM)

testsuite_unit_region_prefault_test_SOURCES = \
	testsuite/unit/region-prefault-test.c $(UNIT_REGION_FIXTURE)
testsuite_unit_region_prefault_test_CPPFLAGS = $(UNIT_CPPFLAGS)
testsuite_unit_region_prefault_test_LDADD = $(UNIT_LIBS_SHM)

testsuite_unit_region_processes_test_SOURCES = \
	testsuite/unit/region-processes-test.c $(UNIT_REGION_FIXTURE)
testsuite_unit_region_processes_test_CPPFLAGS = $(UNIT_CPPFLAGS)
testsuite_unit_region_processes_test_LDADD = $(UNIT_LIBS_SHM)

testsuite_unit_slots_test_SOURCES = testsuite/unit/slots-test.c
testsuite_unit_slots_test_CPPFLAGS = $(UNIT_CPPFLAGS) -D_GNU_SOURCE
testsuite_unit_slots_test_LDADD = $(UNIT_LIBS_SHM)

unit_tests += testsuite/unit/shm-refusal-test
testsuite_unit_shm_refusal_test_SOURCES = testsuite/unit/shm-refusal-test.c \
	$(unit_refusal)
testsuite_unit_shm_refusal_test_CPPFLAGS = $(UNIT_CPPFLAGS) -D_GNU_SOURCE
testsuite_unit_shm_refusal_test_LDFLAGS = $(AM_LDFLAGS) $(REFUSAL_WRAP)
testsuite_unit_shm_refusal_test_LDADD = $(UNIT_LIBS_SHM)
