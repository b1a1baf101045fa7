# SPDX-License-Identifier: BSD-3-Clause
include src/common/libpmi/nodeps.mk
noinst_LTLIBRARIES += libpmi.la
libpmi_la_SOURCES = \
	src/common/libpmi/answer.c \
	src/common/libpmi/attrs.c \
	src/common/libpmi/cause.c src/common/libpmi/cause.h \
	src/common/libpmi/group_kvs.c src/common/libpmi/group_kvs.h \
	src/common/libpmi/extension.h \
	src/common/libpmi/group.c src/common/libpmi/group.h \
	src/common/libpmi/results.c \
	src/common/libpmi/message.c src/common/libpmi/message.h \
	src/common/libpmi/message_private.h \
	src/common/libpmi/requests.c \
	src/common/libpmi/server.c src/common/libpmi/server.h \
	src/common/libpmi/step.h \
	src/common/libpmi/server_coll.c \
	src/common/libpmi/server_fetch.c \
	src/common/libpmi/server_group.c \
	src/common/libpmi/server_pmix.c \
	src/common/libpmi/server_pmix_enter.c \
	src/common/libpmi/server_pmix_fetch.c \
	src/common/libpmi/server_pmix_names.c \
	src/common/libpmi/server_private.h \
	src/common/libpmi/server_slots.c \
	src/common/libpmi/server_status.c \
	src/common/libpmi/rank_session.c \
	src/common/libpmi/rank_pmi1.c src/common/libpmi/rank_pmi2.c \
	src/common/libpmi/rank_extension.c \
	src/common/libpmi/rank_admission.c \
	src/common/libpmi/rank_owner.c \
	src/common/libpmi/wire1.c src/common/libpmi/wire2.c \
	src/common/libpmi/topology.c \
	src/common/libpmi/writer.c
libpmi_la_CFLAGS = $(AM_CFLAGS) -fvisibility=hidden
libpmi_la_LIBADD = libpmi_nodeps.la
