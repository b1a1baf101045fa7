# SPDX-License-Identifier: BSD-3-Clause
# A step of libcoll in memory, for unit tests, the explorer and a fuzz target.
check_LTLIBRARIES += testsuite/bed/libbed.la
testsuite_bed_libbed_la_SOURCES = $(files_testsuite_bed)
testsuite_bed_libbed_la_CPPFLAGS = $(AM_CPPFLAGS) -D_GNU_SOURCE -I$(srcdir)/testsuite
