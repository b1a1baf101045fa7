# SPDX-License-Identifier: BSD-3-Clause
# JSON of the head of a DVM: requests of clients, and tasks in the journal.
if HAVE_JANSSON
noinst_LTLIBRARIES += libdvmjson.la
endif
libdvmjson_la_SOURCES = \
	src/dvm/json/answers.c src/dvm/json/dvm_json.h \
	src/dvm/json/events.c \
	src/dvm/json/json_private.h \
	src/dvm/json/requests.c \
	src/dvm/json/results.c \
	src/dvm/json/select.c \
	src/dvm/json/spec.c \
	src/dvm/json/submit.c \
	src/dvm/json/text.c src/dvm/json/text.h

libdvmjson_la_CPPFLAGS = $(AM_CPPFLAGS) -D_GNU_SOURCE
libdvmjson_la_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS) -fvisibility=hidden
