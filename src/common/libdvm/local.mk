# SPDX-License-Identifier: BSD-3-Clause
# Tasks inside an allocation: head and node of a DVM as state machines.
if HAVE_JANSSON
noinst_LTLIBRARIES += libdvm.la
endif
libdvm_la_SOURCES = \
	src/common/libdvm/cores.c src/common/libdvm/cores.h \
	src/common/libdvm/disk.h \
	src/common/libdvm/durable.c src/common/libdvm/durable.h \
	src/common/libdvm/durable_copy.c \
	src/common/libdvm/durable_private.h \
	src/common/libdvm/dvm_msg.c src/common/libdvm/dvm_msg.h \
	src/common/libdvm/head.c src/common/libdvm/head.h \
	src/common/libdvm/head_adopt.c \
	src/common/libdvm/head_asks.c \
	src/common/libdvm/head_client.c \
	src/common/libdvm/head_journal.c \
	src/common/libdvm/head_nodes.c \
	src/common/libdvm/head_private.h \
	src/common/libdvm/head_profile.c \
	src/common/libdvm/head_report.c \
	src/common/libdvm/head_submit.c \
	src/common/libdvm/head_task.c \
	src/common/libdvm/head_unreached.c \
	src/common/libdvm/head_why.c \
	src/common/libdvm/history.c src/common/libdvm/history.h \
	src/common/libdvm/history_count.c \
	src/common/libdvm/journal.c src/common/libdvm/journal.h \
	src/common/libdvm/kept.c src/common/libdvm/kept.h \
	src/common/libdvm/lease.c src/common/libdvm/lease.h \
	src/common/libdvm/ledger.c src/common/libdvm/ledger.h \
	src/common/libdvm/node.c src/common/libdvm/node.h \
	src/common/libdvm/node_adopt.c \
	src/common/libdvm/node_doubt.c \
	src/common/libdvm/node_private.h \
	src/common/libdvm/node_profile.c \
	src/common/libdvm/node_start.c \
	src/common/libdvm/node_tell.c \
	src/common/libdvm/owner.c src/common/libdvm/owner.h \
	src/common/libdvm/queue.c src/common/libdvm/queue.h \
	src/common/libdvm/tail.c src/common/libdvm/tail.h
libdvm_la_CPPFLAGS = $(AM_CPPFLAGS) -D_GNU_SOURCE
libdvm_la_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS) -fvisibility=hidden
