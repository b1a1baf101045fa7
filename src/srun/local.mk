# SPDX-License-Identifier: BSD-3-Clause
# srun's end: its server, and the sruns that it starts.
noinst_LTLIBRARIES += libsrun.la
libsrun_la_SOURCES = $(files_src_srun)
libsrun_la_CPPFLAGS = $(AM_CPPFLAGS) -D_GNU_SOURCE
libsrun_la_CFLAGS = $(libio_la_CFLAGS)

# The same for the plugin, which opens it in srun.
libpmi2x_srun_la_SOURCES = src/srun/library.c src/srun/library.h
libpmi2x_srun_la_CFLAGS = $(libsrun_la_CFLAGS)
libpmi2x_srun_la_LIBADD = libsrun.la libio.la libpmi.la \
	libcoll.la libutil.la $(LIBUV_LIBS) $(SODIUM_LIBS)
# nodelete: libuv leaves handlers of fork.
libpmi2x_srun_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version -shared \
	-Wl,--no-undefined -Wl,-z,nodelete
