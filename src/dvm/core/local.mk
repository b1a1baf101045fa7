# SPDX-License-Identifier: BSD-3-Clause
# Tasks inside an allocation: head and node of a DVM as state machines.
if HAVE_JANSSON
noinst_LTLIBRARIES += libdvm.la
endif
libdvm_la_SOURCES = \
	src/dvm/core/bundle.c src/dvm/core/bundle.h \
	src/dvm/core/cores.c src/dvm/core/cores.h \
	src/dvm/core/disk.h \
	src/dvm/core/durable.c src/dvm/core/durable.h \
	src/dvm/core/durable_copy.c \
	src/dvm/core/durable_private.h \
	src/dvm/core/dvm_msg.c src/dvm/core/dvm_msg.h src/dvm/core/dvm_time.h \
	src/dvm/core/dvm_places.c src/dvm/core/dvm_places.h \
	src/dvm/core/head.c src/dvm/core/head.h \
	src/dvm/core/head_adopt.c \
	src/dvm/core/head_asks.c \
	src/dvm/core/head_client.c \
	src/dvm/core/head_done.c \
	src/dvm/core/head_format.h \
	src/dvm/core/head_growth.c \
	src/dvm/core/head_journal.c \
	src/dvm/core/head_launch.c \
	src/dvm/core/head_lines.c \
	src/dvm/core/head_lookup.c \
	src/dvm/core/head_node_names.c \
	src/dvm/core/head_nodes.c \
	src/dvm/core/head_output.c \
	src/dvm/core/head_parts.c \
	src/dvm/core/head_private.h \
	src/dvm/core/head_profile.c \
	src/dvm/core/head_report.c \
	src/dvm/core/head_requests.h \
	src/dvm/core/head_resume.c \
	src/dvm/core/head_spawned.c \
	src/dvm/core/head_state.h \
	src/dvm/core/head_submit.c \
	src/dvm/core/head_task.c \
	src/dvm/core/head_unreached.c \
	src/dvm/core/head_wait.c \
	src/dvm/core/head_why.c \
	src/dvm/core/history.c src/dvm/core/history.h \
	src/dvm/core/history_count.c \
	src/dvm/core/history_most.c \
	src/dvm/core/journal.c src/dvm/core/journal.h \
	src/dvm/core/unacked_ends.c src/dvm/core/unacked_ends.h \
	src/dvm/core/lease.c src/dvm/core/lease.h \
	src/dvm/core/ledger.c src/dvm/core/ledger.h src/dvm/core/ledger_private.h \
	src/dvm/core/ledger_index.c src/dvm/core/ledger_kinds.c src/dvm/core/ledger_tally.c \
	src/dvm/core/limits.c src/dvm/core/limits.h \
	src/dvm/core/node.c src/dvm/core/node.h \
	src/dvm/core/node_adopt.c \
	src/dvm/core/node_doubt.c \
	src/dvm/core/node_lack.c \
	src/dvm/core/node_keep.c \
	src/dvm/core/node_names.c \
	src/dvm/core/node_output.c \
	src/dvm/core/node_private.h \
	src/dvm/core/node_profile.c \
	src/dvm/core/node_start.c \
	src/dvm/core/output_path.c src/dvm/core/output_path.h \
	src/dvm/core/node_report.c \
	src/dvm/core/owner.c src/dvm/core/owner.h \
	src/dvm/core/order.c src/dvm/core/order.h \
	src/dvm/core/queue.c src/dvm/core/queue.h \
	src/dvm/core/relay.c src/dvm/core/relay.h \
	src/dvm/core/session.c src/dvm/core/session.h \
	src/dvm/core/share.c src/dvm/core/share.h \
	src/dvm/core/tail.c src/dvm/core/tail.h \
	src/dvm/core/tree_head.c src/dvm/core/tree_head.h \
	src/dvm/core/tree_layout.h \
	src/dvm/core/tree_node.c src/dvm/core/tree_node.h

libdvm_la_CPPFLAGS = $(AM_CPPFLAGS) -D_GNU_SOURCE
libdvm_la_CFLAGS = $(AM_CFLAGS) -fvisibility=hidden
