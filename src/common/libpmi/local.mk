# SPDX-License-Identifier: BSD-3-Clause
include src/common/libpmi/launcher.mk
noinst_LTLIBRARIES += libpmi.la
libpmi_la_SOURCES = \
	src/common/libpmi/answer.c \
	src/common/libpmi/attrs.c \
	src/common/libpmi/cause.c src/common/libpmi/cause.h \
	src/common/libpmi/compress.c src/common/libpmi/compress.h \
	src/common/libpmi/extension.h \
	src/common/libpmi/kvs.c \
	src/common/libpmi/message.c src/common/libpmi/message.h \
	src/common/libpmi/message_private.h \
	src/common/libpmi/requests.c \
	src/common/libpmi/server.c src/common/libpmi/server.h \
	src/common/libpmi/server_coll.c \
	src/common/libpmi/server_private.h \
	src/common/libpmi/server_slots.c \
	src/common/libpmi/server_state.c \
	src/common/libpmi/session.c \
	src/common/libpmi/session1.c src/common/libpmi/session2.c \
	src/common/libpmi/session_ext.c \
	src/common/libpmi/state.c src/common/libpmi/state.h \
	src/common/libpmi/survey.c src/common/libpmi/survey.h \
	src/common/libpmi/wire1.c src/common/libpmi/wire2.c \
	src/common/libpmi/writer.c \
	$(libpmi_launcher_sources)
libpmi_la_CFLAGS = $(AM_CFLAGS) $(LZ4_CFLAGS) -fvisibility=hidden
libpmi_la_LIBADD = $(LZ4_LIBS)
