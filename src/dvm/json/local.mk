# SPDX-License-Identifier: BSD-3-Clause
# JSON of the head of a DVM: requests of clients, and tasks in the journal.
if HAVE_JANSSON
noinst_LTLIBRARIES += libdvmjson.la
endif
libdvmjson_la_SOURCES = $(files_src_dvm_json)

libdvmjson_la_CPPFLAGS = $(AM_CPPFLAGS) -D_GNU_SOURCE
libdvmjson_la_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS) -fvisibility=hidden
