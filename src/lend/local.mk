# SPDX-License-Identifier: BSD-3-Clause
# The library that a step with PMI2X_LEND preloads: the C library only.
noinst_LTLIBRARIES += liblend.la
liblend_la_SOURCES = $(files_src_lend)
liblend_la_CPPFLAGS = $(AM_CPPFLAGS) -D_GNU_SOURCE
liblend_la_CFLAGS = $(AM_CFLAGS) -fvisibility=hidden

if BUILD_FOR_SLURM
pkglib_LTLIBRARIES += libpmi2x-lend.la
endif
libpmi2x_lend_la_SOURCES = src/lend/preload.c
libpmi2x_lend_la_CPPFLAGS = $(liblend_la_CPPFLAGS)
libpmi2x_lend_la_CFLAGS = $(liblend_la_CFLAGS)
libpmi2x_lend_la_LIBADD = liblend.la $(DL_LIBS)
libpmi2x_lend_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version -shared \
	-Wl,--no-undefined

# Pure: the ledger of lent cores, which no program uses yet.
noinst_LTLIBRARIES += liblendcore.la
liblendcore_la_SOURCES = $(files_src_lend_core)
liblendcore_la_CPPFLAGS = $(AM_CPPFLAGS)
