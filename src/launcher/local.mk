# SPDX-License-Identifier: BSD-3-Clause
# srun's end: its server, and the sruns that it starts.
noinst_LTLIBRARIES += liblauncher.la
liblauncher_la_SOURCES = \
	src/launcher/spawned.c src/launcher/spawned.h \
	src/launcher/srun_server.c src/launcher/srun_server.h \
	src/launcher/srun_server_internal.h \
	src/launcher/srun_server_spawn.c \
	src/launcher/srun_server_status.c
liblauncher_la_CPPFLAGS = $(AM_CPPFLAGS) -D_GNU_SOURCE
liblauncher_la_CFLAGS = $(libio_la_CFLAGS)

# The same for the plugin, which opens it in srun.
libpmi2x_launcher_la_SOURCES = src/launcher/library.c src/launcher/library.h
libpmi2x_launcher_la_CFLAGS = $(liblauncher_la_CFLAGS)
libpmi2x_launcher_la_LIBADD = liblauncher.la libio.la libpmi_plain.la \
	libcoll.la libutil.la $(LIBUV_LIBS) $(SODIUM_LIBS)
# nodelete: libuv leaves handlers of fork.
libpmi2x_launcher_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version -shared \
	-Wl,--no-undefined -Wl,-z,nodelete
