# SPDX-License-Identifier: BSD-3-Clause
UNIT_LIBS_COLL = libcoll.la $(UNIT_LIBS_UTIL)
unit_coll_net = testsuite/unit/coll-net.c testsuite/unit/coll-net.h \
	testsuite/unit/coll-net-fetches.c testsuite/unit/coll-net-groups.c \
	testsuite/unit/coll-net-links.c

unit_tests += testsuite/unit/layout-test testsuite/unit/tree-test \
	testsuite/unit/coll-msg-test testsuite/unit/coll-test \
	testsuite/unit/coll-fault-test testsuite/unit/coll-nomem-test \
	testsuite/unit/coll-room-test testsuite/unit/coll-subset-test \
	testsuite/unit/coll-fetch-test testsuite/unit/coll-flood-test

testsuite_unit_coll_flood_test_SOURCES = testsuite/unit/coll-flood-test.c \
	$(unit_coll_net)
testsuite_unit_coll_flood_test_CPPFLAGS = $(UNIT_CPPFLAGS)
testsuite_unit_coll_flood_test_LDADD = $(UNIT_LIBS_COLL)

testsuite_unit_coll_fetch_test_SOURCES = testsuite/unit/coll-fetch-test.c \
	$(unit_coll_net)
testsuite_unit_coll_fetch_test_CPPFLAGS = $(UNIT_CPPFLAGS)
testsuite_unit_coll_fetch_test_LDADD = $(UNIT_LIBS_COLL)

testsuite_unit_coll_subset_test_SOURCES = testsuite/unit/coll-subset-test.c \
	$(unit_coll_net)
testsuite_unit_coll_subset_test_CPPFLAGS = $(UNIT_CPPFLAGS)
testsuite_unit_coll_subset_test_LDADD = $(UNIT_LIBS_COLL)

testsuite_unit_coll_room_test_SOURCES = testsuite/unit/coll-room-test.c
testsuite_unit_coll_room_test_CPPFLAGS = $(UNIT_CPPFLAGS)
testsuite_unit_coll_room_test_LDADD = $(UNIT_LIBS_COLL)

testsuite_unit_layout_test_SOURCES = testsuite/unit/layout-test.c
testsuite_unit_layout_test_CPPFLAGS = $(UNIT_CPPFLAGS)
testsuite_unit_layout_test_LDADD = $(UNIT_LIBS_COLL)

testsuite_unit_tree_test_SOURCES = testsuite/unit/tree-test.c
testsuite_unit_tree_test_CPPFLAGS = $(UNIT_CPPFLAGS)
testsuite_unit_tree_test_LDADD = $(UNIT_LIBS_COLL)

testsuite_unit_coll_msg_test_SOURCES = testsuite/unit/coll-msg-test.c
testsuite_unit_coll_msg_test_CPPFLAGS = $(UNIT_CPPFLAGS)
testsuite_unit_coll_msg_test_LDADD = $(UNIT_LIBS_COLL)

testsuite_unit_coll_test_SOURCES = testsuite/unit/coll-test.c $(unit_coll_net)
testsuite_unit_coll_test_CPPFLAGS = $(UNIT_CPPFLAGS)
testsuite_unit_coll_test_LDADD = $(UNIT_LIBS_COLL)

testsuite_unit_coll_fault_test_SOURCES = testsuite/unit/coll-fault-test.c \
	$(unit_coll_net)
testsuite_unit_coll_fault_test_CPPFLAGS = $(UNIT_CPPFLAGS)
testsuite_unit_coll_fault_test_LDADD = $(UNIT_LIBS_COLL)

testsuite_unit_coll_nomem_test_SOURCES = testsuite/unit/coll-nomem-test.c \
	testsuite/unit/wrap-memory.h \
	$(unit_coll_net)
testsuite_unit_coll_nomem_test_CPPFLAGS = $(UNIT_CPPFLAGS)
testsuite_unit_coll_nomem_test_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=malloc \
	-Wl,--wrap=calloc -Wl,--wrap=realloc
testsuite_unit_coll_nomem_test_LDADD = $(UNIT_LIBS_COLL)
