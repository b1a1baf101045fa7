# SPDX-License-Identifier: BSD-3-Clause
# Libraries in the order in which the linker needs them.
UNIT_LIBS_UTIL = libutil.la $(CMOCKA_LIBS)

unit_tests = testsuite/unit/buf-test testsuite/unit/decimal-test \
	testsuite/unit/pack-test testsuite/unit/payload-test \
	testsuite/unit/rankset-test

testsuite_unit_buf_test_SOURCES = testsuite/unit/buf-test.c
testsuite_unit_buf_test_CPPFLAGS = $(UNIT_CPPFLAGS)
testsuite_unit_buf_test_LDADD = $(UNIT_LIBS_UTIL)

unit_tests += testsuite/unit/hash-test
testsuite_unit_hash_test_SOURCES = testsuite/unit/hash-test.c
testsuite_unit_hash_test_CPPFLAGS = $(UNIT_CPPFLAGS)
testsuite_unit_hash_test_LDADD = $(UNIT_LIBS_UTIL)

unit_tests += testsuite/unit/elf-needs-test
testsuite_unit_elf_needs_test_SOURCES = testsuite/unit/elf-needs-test.c
testsuite_unit_elf_needs_test_CPPFLAGS = $(UNIT_CPPFLAGS)
testsuite_unit_elf_needs_test_LDADD = $(UNIT_LIBS_UTIL)

testsuite_unit_decimal_test_SOURCES = testsuite/unit/decimal-test.c
testsuite_unit_decimal_test_CPPFLAGS = $(UNIT_CPPFLAGS)
testsuite_unit_decimal_test_LDADD = $(UNIT_LIBS_UTIL)

testsuite_unit_pack_test_SOURCES = testsuite/unit/pack-test.c
testsuite_unit_pack_test_CPPFLAGS = $(UNIT_CPPFLAGS)
testsuite_unit_pack_test_LDADD = $(UNIT_LIBS_UTIL)

testsuite_unit_payload_test_SOURCES = testsuite/unit/payload-test.c
testsuite_unit_payload_test_CPPFLAGS = $(UNIT_CPPFLAGS)
testsuite_unit_payload_test_LDADD = $(UNIT_LIBS_UTIL)

testsuite_unit_rankset_test_SOURCES = testsuite/unit/rankset-test.c
testsuite_unit_rankset_test_CPPFLAGS = $(UNIT_CPPFLAGS)
testsuite_unit_rankset_test_LDADD = $(UNIT_LIBS_UTIL)

# For programs with refusal.c.
REFUSAL_WRAP = -Wl,--wrap=malloc -Wl,--wrap=calloc -Wl,--wrap=realloc \
	-Wl,--wrap=memfd_create -Wl,--wrap=ftruncate -Wl,--wrap=fchmod \
	-Wl,--wrap=fstat -Wl,--wrap=madvise -Wl,--wrap=fallocate \
	-Wl,--wrap=poll -Wl,--wrap=send -Wl,--wrap=recvmsg -Wl,--wrap=mmap \
	-Wl,--wrap=fcntl -Wl,--wrap=open
unit_refusal = testsuite/unit/refusal.c testsuite/unit/refusal.h

include testsuite/unit/libcoll.mk
include testsuite/unit/libshm.mk
include testsuite/unit/libpmi.mk
include testsuite/unit/libpmi-launcher.mk
include testsuite/unit/libio.mk
include testsuite/unit/client.mk
include testsuite/unit/allgather.mk
include testsuite/unit/plugin.mk

if HAVE_JANSSON
unit_tests += testsuite/unit/dvm-asks-test \
	testsuite/unit/dvm-durable-test \
	testsuite/unit/dvm-fail-test \
	testsuite/unit/dvm-head-test testsuite/unit/dvm-history-test \
	testsuite/unit/dvm-journal-test \
	testsuite/unit/dvm-lease-test \
	testsuite/unit/dvm-ledger-test testsuite/unit/dvm-nodes-test \
	testsuite/unit/dvm-nomem-test \
	testsuite/unit/dvm-orphan-test testsuite/unit/dvm-place-test \
	testsuite/unit/dvm-queue-test testsuite/unit/dvm-resume-test \
	testsuite/unit/dvm-safe-test \
	testsuite/unit/dvm-why-test
endif
UNIT_LIBS_DVM = libdvm.la libutil.la $(JANSSON_LIBS) $(CMOCKA_LIBS)
testsuite_unit_dvm_asks_test_SOURCES = testsuite/unit/dvm-asks-test.c \
	testsuite/unit/dvm-idle.h testsuite/unit/dvm-requests.h testsuite/unit/dvm-sealed.h
testsuite_unit_dvm_asks_test_CPPFLAGS = $(UNIT_CPPFLAGS) -D_GNU_SOURCE $(JANSSON_CFLAGS)
testsuite_unit_dvm_asks_test_LDADD = $(UNIT_LIBS_DVM)
DVM_BED = testsuite/unit/dvm-bed.c testsuite/unit/dvm-bed.h testsuite/unit/dvm-idle.h \
	testsuite/unit/dvm-requests.h
testsuite_unit_dvm_durable_test_SOURCES = testsuite/unit/dvm-durable-test.c \
	testsuite/unit/dvm-disk.c testsuite/unit/dvm-disk.h
testsuite_unit_dvm_durable_test_CPPFLAGS = $(UNIT_CPPFLAGS) -D_GNU_SOURCE
testsuite_unit_dvm_durable_test_LDADD = $(UNIT_LIBS_DVM)
testsuite_unit_dvm_fail_test_SOURCES = testsuite/unit/dvm-fail-test.c $(DVM_BED)
testsuite_unit_dvm_fail_test_CPPFLAGS = $(UNIT_CPPFLAGS) -D_GNU_SOURCE $(JANSSON_CFLAGS)
testsuite_unit_dvm_fail_test_LDADD = $(UNIT_LIBS_DVM)
testsuite_unit_dvm_head_test_SOURCES = testsuite/unit/dvm-head-test.c $(DVM_BED)
testsuite_unit_dvm_head_test_CPPFLAGS = $(UNIT_CPPFLAGS) -D_GNU_SOURCE $(JANSSON_CFLAGS)
testsuite_unit_dvm_head_test_LDADD = $(UNIT_LIBS_DVM)
testsuite_unit_dvm_history_test_SOURCES = testsuite/unit/dvm-history-test.c \
	testsuite/unit/dvm-sealed.h testsuite/unit/wrap-memory.h
testsuite_unit_dvm_history_test_CPPFLAGS = $(UNIT_CPPFLAGS)
testsuite_unit_dvm_history_test_LDADD = $(UNIT_LIBS_DVM)
testsuite_unit_dvm_history_test_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=malloc \
	-Wl,--wrap=calloc -Wl,--wrap=realloc
testsuite_unit_dvm_journal_test_SOURCES = testsuite/unit/dvm-journal-test.c \
	testsuite/unit/dvm-sealed.h testsuite/unit/wrap-memory.h
testsuite_unit_dvm_journal_test_CPPFLAGS = $(UNIT_CPPFLAGS)
testsuite_unit_dvm_journal_test_LDADD = $(UNIT_LIBS_DVM)
testsuite_unit_dvm_journal_test_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=malloc \
	-Wl,--wrap=calloc -Wl,--wrap=realloc
testsuite_unit_dvm_lease_test_SOURCES = testsuite/unit/dvm-lease-test.c \
	testsuite/unit/dvm-idle.h testsuite/unit/dvm-requests.h
testsuite_unit_dvm_lease_test_CPPFLAGS = $(UNIT_CPPFLAGS) -D_GNU_SOURCE $(JANSSON_CFLAGS)
testsuite_unit_dvm_lease_test_LDADD = $(UNIT_LIBS_DVM)
testsuite_unit_dvm_ledger_test_SOURCES = testsuite/unit/dvm-ledger-test.c
testsuite_unit_dvm_ledger_test_CPPFLAGS = $(UNIT_CPPFLAGS)
testsuite_unit_dvm_ledger_test_LDADD = $(UNIT_LIBS_DVM)
testsuite_unit_dvm_nodes_test_SOURCES = testsuite/unit/dvm-nodes-test.c \
	testsuite/unit/dvm-idle.h testsuite/unit/dvm-requests.h testsuite/unit/dvm-sealed.h
testsuite_unit_dvm_nodes_test_CPPFLAGS = $(UNIT_CPPFLAGS) -D_GNU_SOURCE $(JANSSON_CFLAGS)
testsuite_unit_dvm_nodes_test_LDADD = $(UNIT_LIBS_DVM)
testsuite_unit_dvm_nomem_test_SOURCES = testsuite/unit/dvm-nomem-test.c \
	testsuite/unit/dvm-idle.h testsuite/unit/wrap-memory.h
testsuite_unit_dvm_nomem_test_CPPFLAGS = $(UNIT_CPPFLAGS) -D_GNU_SOURCE $(JANSSON_CFLAGS)
testsuite_unit_dvm_nomem_test_LDADD = $(UNIT_LIBS_DVM)
testsuite_unit_dvm_nomem_test_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=malloc \
	-Wl,--wrap=calloc -Wl,--wrap=realloc
testsuite_unit_dvm_orphan_test_SOURCES = testsuite/unit/dvm-orphan-test.c \
	testsuite/unit/dvm-orphan-bed.c testsuite/unit/dvm-orphan-bed.h \
	testsuite/unit/dvm-idle.h testsuite/unit/dvm-requests.h testsuite/unit/dvm-sealed.h
testsuite_unit_dvm_orphan_test_CPPFLAGS = $(UNIT_CPPFLAGS) -D_GNU_SOURCE $(JANSSON_CFLAGS)
testsuite_unit_dvm_orphan_test_LDADD = $(UNIT_LIBS_DVM)
testsuite_unit_dvm_place_test_SOURCES = testsuite/unit/dvm-place-test.c \
	src/dvm/common/rundir.c src/dvm/common/rundir.h
testsuite_unit_dvm_place_test_CPPFLAGS = $(UNIT_CPPFLAGS) $(DVM_CPPFLAGS) $(JANSSON_CFLAGS)
testsuite_unit_dvm_place_test_CFLAGS = $(libio_la_CFLAGS)
testsuite_unit_dvm_place_test_LDADD = $(CMOCKA_LIBS)
testsuite_unit_dvm_queue_test_SOURCES = testsuite/unit/dvm-queue-test.c
testsuite_unit_dvm_queue_test_CPPFLAGS = $(UNIT_CPPFLAGS)
testsuite_unit_dvm_queue_test_LDADD = $(UNIT_LIBS_DVM)
testsuite_unit_dvm_resume_test_SOURCES = testsuite/unit/dvm-resume-test.c \
	testsuite/unit/dvm-idle.h testsuite/unit/dvm-requests.h testsuite/unit/dvm-sealed.h
testsuite_unit_dvm_resume_test_CPPFLAGS = $(UNIT_CPPFLAGS) -D_GNU_SOURCE $(JANSSON_CFLAGS)
testsuite_unit_dvm_resume_test_LDADD = $(UNIT_LIBS_DVM)
testsuite_unit_dvm_safe_test_SOURCES = testsuite/unit/dvm-safe-test.c \
	testsuite/unit/dvm-idle.h testsuite/unit/dvm-requests.h testsuite/unit/dvm-sealed.h \
	testsuite/unit/wrap-memory.h
testsuite_unit_dvm_safe_test_CPPFLAGS = $(UNIT_CPPFLAGS) -D_GNU_SOURCE $(JANSSON_CFLAGS)
testsuite_unit_dvm_safe_test_LDADD = $(UNIT_LIBS_DVM)
testsuite_unit_dvm_safe_test_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=malloc \
	-Wl,--wrap=calloc -Wl,--wrap=realloc
testsuite_unit_dvm_why_test_SOURCES = testsuite/unit/dvm-why-test.c \
	testsuite/unit/dvm-idle.h testsuite/unit/dvm-requests.h testsuite/unit/dvm-sealed.h
testsuite_unit_dvm_why_test_CPPFLAGS = $(UNIT_CPPFLAGS) -D_GNU_SOURCE $(JANSSON_CFLAGS)
testsuite_unit_dvm_why_test_LDADD = $(UNIT_LIBS_DVM)
