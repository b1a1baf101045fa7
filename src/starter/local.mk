# SPDX-License-Identifier: BSD-3-Clause
# What starts the agent of a node, and answers it. The C library only.
noinst_LTLIBRARIES += libstarter.la
libstarter_la_SOURCES = \
	src/starter/helper.c \
	src/starter/idle.c \
	src/starter/launch.c \
	src/starter/leaf.c src/starter/leaf.h \
	src/starter/process_time.c src/starter/process_time.h \
	src/starter/service.c \
	src/starter/starter.c src/starter/starter.h \
	src/starter/starter_internal.h
libstarter_la_CPPFLAGS = $(AM_CPPFLAGS) -D_GNU_SOURCE
libstarter_la_CFLAGS = $(AM_CFLAGS) -fvisibility=hidden -pthread
