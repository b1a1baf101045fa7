# SPDX-License-Identifier: BSD-3-Clause
# Texts and messages, and srun's half of PMI: needs libcoll, libutil and the C library only.
noinst_LTLIBRARIES += libpmi.la
libpmi_la_SOURCES = \
	src/common/libpmi/cause.c src/common/libpmi/cause.h \
	src/common/libpmi/control.c src/common/libpmi/control.h \
	src/common/libpmi/extension.h \
	src/common/libpmi/group.c src/common/libpmi/group.h \
	src/common/libpmi/mapping.c src/common/libpmi/mapping.h \
	src/common/libpmi/message.c src/common/libpmi/message.h \
	src/common/libpmi/message_private.h \
	src/common/libpmi/name_store.c src/common/libpmi/name_store.h \
	src/common/libpmi/name_things.c src/common/libpmi/name_things.h \
	src/common/libpmi/names.c src/common/libpmi/names.h \
	src/common/libpmi/pmix_frame.c src/common/libpmi/pmix_frame.h \
	src/common/libpmi/pmix_msg.c src/common/libpmi/pmix_msg.h \
	src/common/libpmi/pmix_nspace.c src/common/libpmi/pmix_nspace.h \
	src/common/libpmi/port_names.c src/common/libpmi/port_names.h \
	src/common/libpmi/rc.h \
	src/common/libpmi/spawn.c src/common/libpmi/spawn.h \
	src/common/libpmi/spawn_parse.c \
	src/common/libpmi/spawn_script.c src/common/libpmi/spawn_script.h \
	src/common/libpmi/status.c src/common/libpmi/status.h \
	src/common/libpmi/step.h \
	src/common/libpmi/step_services.c src/common/libpmi/step_services.h \
	src/common/libpmi/tcpstore.c src/common/libpmi/tcpstore.h \
	src/common/libpmi/wire1.c src/common/libpmi/wire2.c \
	src/common/libpmi/writer.c
libpmi_la_CFLAGS = $(AM_CFLAGS) -fvisibility=hidden
