# SPDX-License-Identifier: BSD-3-Clause
# The library that a step with PMI2X_LEND preloads: the C library only.
noinst_LTLIBRARIES += liblend.la
liblend_la_SOURCES = $(files_src_lend)
liblend_la_CPPFLAGS = $(AM_CPPFLAGS) -D_GNU_SOURCE
liblend_la_CFLAGS = $(AM_CFLAGS) -fvisibility=hidden
liblend_la_LIBADD = liblendcore.la
# A file that has left the library would stay in an archive that was made before.
EXTRA_liblend_la_DEPENDENCIES = $(srcdir)/src/lend/local.mk

if BUILD_FOR_SLURM
pkglib_LTLIBRARIES += libpmi2x-lend.la
endif
libpmi2x_lend_la_SOURCES = src/lend/preload.c \
	src/lend/abi.c src/lend/abi.h \
	src/lend/calls.c src/lend/calls.h \
	src/lend/collectives.c \
	src/lend/comms.c src/lend/comms.h \
	src/lend/errors.c src/lend/errors.h \
	src/lend/hooks.c src/lend/hooks.h \
	src/lend/lender.c src/lend/lender.h \
	src/lend/real.c src/lend/real.h \
	src/lend/team.c src/lend/team.h
libpmi2x_lend_la_CPPFLAGS = $(liblend_la_CPPFLAGS)
libpmi2x_lend_la_CFLAGS = $(liblend_la_CFLAGS)
libpmi2x_lend_la_LIBADD = liblend.la $(DL_LIBS)
libpmi2x_lend_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version -shared \
	-Wl,--no-undefined

# Pure: the ledger of lent cores, which the library uses.
noinst_LTLIBRARIES += liblendcore.la
liblendcore_la_SOURCES = $(files_src_lend_core)
liblendcore_la_CPPFLAGS = $(AM_CPPFLAGS)
liblendcore_la_CFLAGS = $(AM_CFLAGS) -fvisibility=hidden
