# SPDX-License-Identifier: BSD-3-Clause
# What starts the agent of a node, and answers it. The C library only.
noinst_LTLIBRARIES += libstarter.la
libstarter_la_SOURCES = \
	src/starter/child.c src/starter/child.h \
	src/starter/idle.c \
	src/starter/knock.c src/starter/knock.h \
	src/starter/launch.c \
	src/starter/leaf.c src/starter/leaf.h \
	src/starter/mpi_program.c src/starter/mpi_program.h \
	src/starter/pmix.c \
	src/starter/pmix_env.c src/starter/pmix_env.h \
	src/starter/pmix_library.c src/starter/pmix_library.h \
	src/starter/process_time.c src/starter/process_time.h \
	src/starter/service.c \
	src/starter/starter.c src/starter/starter.h \
	src/starter/starter_internal.h \
	src/starter/topology.c \
	src/starter/user_dir.c src/starter/user_dir.h
libstarter_la_CPPFLAGS = $(AM_CPPFLAGS) -D_GNU_SOURCE \
	-DPMIX_MULTIARCH='"$(shell $(CC) -print-multiarch)"'
libstarter_la_CFLAGS = $(AM_CFLAGS) -fvisibility=hidden -pthread
