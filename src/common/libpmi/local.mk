# SPDX-License-Identifier: BSD-3-Clause
include src/common/libpmi/launcher.mk
noinst_LTLIBRARIES += libpmi.la
libpmi_la_SOURCES = \
	src/common/libpmi/extension.h \
	src/common/libpmi/message.c src/common/libpmi/message.h \
	src/common/libpmi/message_private.h \
	src/common/libpmi/wire1.c src/common/libpmi/wire2.c \
	src/common/libpmi/writer.c \
	$(libpmi_launcher_sources)
libpmi_la_CFLAGS = $(AM_CFLAGS) -fvisibility=hidden
