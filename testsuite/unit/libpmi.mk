# SPDX-License-Identifier: BSD-3-Clause
UNIT_LIBS_PMI = libpmi.la libutil.la $(CMOCKA_LIBS)
UNIT_LIBS_SERVER = libpmi.la libshm.la libcoll.la libutil.la \
	$(XXHASH_LIBS) $(CMOCKA_LIBS)

unit_tests += testsuite/unit/wire1-test testsuite/unit/wire2-test \
	testsuite/unit/server-pmi1-test testsuite/unit/server-pmi2-test \
	testsuite/unit/server-ext-test testsuite/unit/server-srun-test \
	testsuite/unit/server-hostile-test testsuite/unit/server-nomem-test \
	testsuite/unit/server-slots-test testsuite/unit/status-test \
	testsuite/unit/cause-test

unit_tests += testsuite/unit/pmix-msg-test testsuite/unit/server-pmix-test \
	testsuite/unit/server-pmix-end-test \
	testsuite/unit/server-pmix-request-test
testsuite_unit_pmix_msg_test_SOURCES = testsuite/unit/pmix-msg-test.c \
	testsuite/unit/scarce-memory.h \
	testsuite/unit/wrap-memory.h
testsuite_unit_pmix_msg_test_CPPFLAGS = $(UNIT_CPPFLAGS)
testsuite_unit_pmix_msg_test_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=malloc \
	-Wl,--wrap=calloc -Wl,--wrap=realloc
testsuite_unit_pmix_msg_test_LDADD = libpmi_nodeps.la libcoll.la libutil.la \
	$(CMOCKA_LIBS)
PMIX_BED = testsuite/unit/pmix-bed.c testsuite/unit/pmix-bed.h \
	testsuite/unit/server-net.c testsuite/unit/server-net.h
testsuite_unit_server_pmix_test_SOURCES = testsuite/unit/server-pmix-test.c $(PMIX_BED) \
	testsuite/unit/scarce-memory.h \
	testsuite/unit/wrap-memory.h
testsuite_unit_server_pmix_test_CPPFLAGS = $(UNIT_CPPFLAGS)
testsuite_unit_server_pmix_test_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=malloc \
	-Wl,--wrap=calloc -Wl,--wrap=realloc
testsuite_unit_server_pmix_test_LDADD = $(UNIT_LIBS_SERVER)
unit_tests += testsuite/unit/server-admission-test
testsuite_unit_server_admission_test_SOURCES = testsuite/unit/server-admission-test.c $(PMIX_BED)
testsuite_unit_server_admission_test_CPPFLAGS = $(UNIT_CPPFLAGS)
testsuite_unit_server_admission_test_LDADD = $(UNIT_LIBS_SERVER)
testsuite_unit_server_pmix_end_test_SOURCES = testsuite/unit/server-pmix-end-test.c $(PMIX_BED)
testsuite_unit_server_pmix_end_test_CPPFLAGS = $(UNIT_CPPFLAGS)
testsuite_unit_server_pmix_end_test_LDADD = $(UNIT_LIBS_SERVER)
testsuite_unit_server_pmix_request_test_SOURCES = testsuite/unit/server-pmix-request-test.c $(PMIX_BED)
testsuite_unit_server_pmix_request_test_CPPFLAGS = $(UNIT_CPPFLAGS)
testsuite_unit_server_pmix_request_test_LDADD = $(UNIT_LIBS_SERVER)

unit_tests += testsuite/unit/server-topology-test
testsuite_unit_server_topology_test_SOURCES = \
	testsuite/unit/server-topology-test.c \
	testsuite/unit/server-net.c testsuite/unit/server-net.h
testsuite_unit_server_topology_test_CPPFLAGS = $(UNIT_CPPFLAGS)
testsuite_unit_server_topology_test_LDADD = $(UNIT_LIBS_SERVER)
unit_tests += testsuite/unit/pmi-group-test testsuite/unit/early-test \
	testsuite/unit/server-group-test testsuite/unit/server-fetch-test

testsuite_unit_pmi_group_test_SOURCES = testsuite/unit/pmi-group-test.c
testsuite_unit_pmi_group_test_CPPFLAGS = $(UNIT_CPPFLAGS)
testsuite_unit_pmi_group_test_LDADD = $(UNIT_LIBS_PMI)

testsuite_unit_early_test_SOURCES = testsuite/unit/early-test.c
testsuite_unit_early_test_CPPFLAGS = $(UNIT_CPPFLAGS)
testsuite_unit_early_test_LDADD = $(UNIT_LIBS_PMI)

testsuite_unit_server_fetch_test_SOURCES = testsuite/unit/server-fetch-test.c \
	testsuite/unit/server-net.c testsuite/unit/server-net.h
testsuite_unit_server_fetch_test_CPPFLAGS = $(UNIT_CPPFLAGS)
testsuite_unit_server_fetch_test_LDADD = $(UNIT_LIBS_SERVER)

testsuite_unit_server_group_test_SOURCES = testsuite/unit/server-group-test.c \
	testsuite/unit/server-net.c testsuite/unit/server-net.h
testsuite_unit_server_group_test_CPPFLAGS = $(UNIT_CPPFLAGS)
testsuite_unit_server_group_test_LDADD = $(UNIT_LIBS_SERVER)

testsuite_unit_cause_test_SOURCES = testsuite/unit/cause-test.c
testsuite_unit_cause_test_CPPFLAGS = $(UNIT_CPPFLAGS)
testsuite_unit_cause_test_LDADD = $(UNIT_LIBS_PMI)


testsuite_unit_status_test_SOURCES = testsuite/unit/status-test.c
testsuite_unit_status_test_CPPFLAGS = $(UNIT_CPPFLAGS)
testsuite_unit_status_test_LDADD = $(UNIT_LIBS_SERVER)

testsuite_unit_wire1_test_SOURCES = testsuite/unit/wire1-test.c
testsuite_unit_wire1_test_CPPFLAGS = $(UNIT_CPPFLAGS)
testsuite_unit_wire1_test_LDADD = $(UNIT_LIBS_PMI)

testsuite_unit_wire2_test_SOURCES = testsuite/unit/wire2-test.c
testsuite_unit_wire2_test_CPPFLAGS = $(UNIT_CPPFLAGS)
testsuite_unit_wire2_test_LDADD = $(UNIT_LIBS_PMI)

unit_tests += testsuite/unit/server-end-test
testsuite_unit_server_end_test_SOURCES = testsuite/unit/server-end-test.c \
	testsuite/unit/server-net.c testsuite/unit/server-net.h
testsuite_unit_server_end_test_CPPFLAGS = $(UNIT_CPPFLAGS)
testsuite_unit_server_end_test_LDADD = $(UNIT_LIBS_SERVER)

testsuite_unit_server_pmi1_test_SOURCES = testsuite/unit/server-pmi1-test.c \
	testsuite/unit/server-net.c testsuite/unit/server-net.h
testsuite_unit_server_pmi1_test_CPPFLAGS = $(UNIT_CPPFLAGS)
testsuite_unit_server_pmi1_test_LDADD = $(UNIT_LIBS_SERVER)

testsuite_unit_server_pmi2_test_SOURCES = testsuite/unit/server-pmi2-test.c \
	testsuite/unit/server-net.c testsuite/unit/server-net.h
testsuite_unit_server_pmi2_test_CPPFLAGS = $(UNIT_CPPFLAGS)
testsuite_unit_server_pmi2_test_LDADD = $(UNIT_LIBS_SERVER)

testsuite_unit_server_ext_test_SOURCES = testsuite/unit/server-ext-test.c \
	testsuite/unit/server-net.c testsuite/unit/server-net.h
testsuite_unit_server_ext_test_CPPFLAGS = $(UNIT_CPPFLAGS)
testsuite_unit_server_ext_test_LDADD = $(UNIT_LIBS_SERVER)

testsuite_unit_server_srun_test_SOURCES = testsuite/unit/server-srun-test.c \
	testsuite/unit/server-net.c testsuite/unit/server-net.h
testsuite_unit_server_srun_test_CPPFLAGS = $(UNIT_CPPFLAGS)
testsuite_unit_server_srun_test_LDADD = $(UNIT_LIBS_SERVER)

testsuite_unit_server_hostile_test_SOURCES = testsuite/unit/server-hostile-test.c \
	testsuite/unit/server-net.c testsuite/unit/server-net.h
testsuite_unit_server_hostile_test_CPPFLAGS = $(UNIT_CPPFLAGS)
testsuite_unit_server_hostile_test_LDADD = $(UNIT_LIBS_SERVER)

testsuite_unit_server_nomem_test_SOURCES = testsuite/unit/server-nomem-test.c \
	testsuite/unit/wrap-memory.h \
	testsuite/unit/server-net.c testsuite/unit/server-net.h
testsuite_unit_server_nomem_test_CPPFLAGS = $(UNIT_CPPFLAGS)
testsuite_unit_server_nomem_test_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=malloc \
	-Wl,--wrap=calloc -Wl,--wrap=realloc
testsuite_unit_server_nomem_test_LDADD = $(UNIT_LIBS_SERVER)

testsuite_unit_server_slots_test_SOURCES = testsuite/unit/server-slots-test.c \
	testsuite/unit/server-net.c testsuite/unit/server-net.h
testsuite_unit_server_slots_test_CPPFLAGS = $(UNIT_CPPFLAGS)
testsuite_unit_server_slots_test_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=malloc
testsuite_unit_server_slots_test_LDADD = $(UNIT_LIBS_SERVER)

unit_tests += testsuite/unit/server-refusal-test
testsuite_unit_server_refusal_test_SOURCES = \
	testsuite/unit/server-refusal-test.c $(unit_refusal)
testsuite_unit_server_refusal_test_CPPFLAGS = $(UNIT_CPPFLAGS) -D_GNU_SOURCE
testsuite_unit_server_refusal_test_LDFLAGS = $(AM_LDFLAGS) $(REFUSAL_WRAP)
testsuite_unit_server_refusal_test_LDADD = $(UNIT_LIBS_SERVER)
