# SPDX-License-Identifier: BSD-3-Clause
# The exhaustive explorer of libcoll.
check_PROGRAMS += testsuite/explore/explore
dist_check_SCRIPTS += testsuite/explore/explore-test.sh
TESTS += testsuite/explore/explore-test.sh

testsuite_explore_explore_SOURCES = $(files_testsuite_explore)
testsuite_explore_explore_CPPFLAGS = $(AM_CPPFLAGS) -D_GNU_SOURCE -I$(srcdir)/testsuite
testsuite_explore_explore_CFLAGS = $(AM_CFLAGS) $(XXHASH_CFLAGS)
testsuite_explore_explore_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=malloc \
	-Wl,--wrap=calloc -Wl,--wrap=realloc -Wl,--wrap=free
testsuite_explore_explore_LDADD = $(UNIT_LIBS_BED)

explore: testsuite/explore/explore testsuite/unit/store/history-test
	$(AM_V_at)testsuite/explore/explore --all
	$(AM_V_at)HISTORY_DEEP=1 testsuite/unit/store/history-test
.PHONY: explore
