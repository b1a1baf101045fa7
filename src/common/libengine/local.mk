# SPDX-License-Identifier: BSD-3-Clause
# The PMI server engine of a node: needs libpmi, libshm, libcoll and libutil.
noinst_LTLIBRARIES += libengine.la
libengine_la_SOURCES = \
	src/common/libengine/answer.c \
	src/common/libengine/attrs.c \
	src/common/libengine/engine.c src/common/libengine/engine.h \
	src/common/libengine/group_kvs.c src/common/libengine/group_kvs.h \
	src/common/libengine/pending.h \
	src/common/libengine/pmix_bridge.h \
	src/common/libengine/rank.c src/common/libengine/rank.h \
	src/common/libengine/rank_admission.c \
	src/common/libengine/rank_args.c \
	src/common/libengine/rank_commands.c \
	src/common/libengine/rank_end.c \
	src/common/libengine/rank_extension.c \
	src/common/libengine/rank_owner.c \
	src/common/libengine/rank_pmi1.c src/common/libengine/rank_pmi2.c \
	src/common/libengine/rank_records.c \
	src/common/libengine/rank_session.c \
	src/common/libengine/request.h \
	src/common/libengine/requests.c \
	src/common/libengine/results.c src/common/libengine/results.h \
	src/common/libengine/pmi_server.c src/common/libengine/pmi_server.h \
	src/common/libengine/engine_coll.c \
	src/common/libengine/engine_coll_ops.c \
	src/common/libengine/engine_fetch.c \
	src/common/libengine/engine_group.c \
	src/common/libengine/engine_pmix.c \
	src/common/libengine/engine_pmix_enter.c \
	src/common/libengine/engine_pmix_fetch.c \
	src/common/libengine/engine_pmix_names.c \
	src/common/libengine/engine_pmix_ranks.c \
	src/common/libengine/engine_pmix_asks.c \
	src/common/libengine/engine_pmix_send.c \
	src/common/libengine/engine_slots.c \
	src/common/libengine/engine_status.c \
	src/common/libengine/spawner.c \
	src/common/libengine/topology.c
libengine_la_CFLAGS = $(AM_CFLAGS) -fvisibility=hidden
