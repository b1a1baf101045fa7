# SPDX-License-Identifier: BSD-3-Clause
# srun's end: its server, and the sruns that it starts.
noinst_LTLIBRARIES += liblauncher.la
liblauncher_la_SOURCES = \
	src/launcher/live.c src/launcher/live.h \
	src/launcher/spawned.c src/launcher/spawned.h \
	src/launcher/srun_server.c src/launcher/srun_server.h \
	src/launcher/srun_server_internal.h \
	src/launcher/srun_server_live.c \
	src/launcher/srun_server_spawn.c
liblauncher_la_CPPFLAGS = $(AM_CPPFLAGS) -D_GNU_SOURCE
liblauncher_la_CFLAGS = $(libio_la_CFLAGS)
