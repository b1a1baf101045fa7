# SPDX-License-Identifier: BSD-3-Clause
# The ring allgather. Its objects make the library and the preloadable form, and
# the unit tests link them as they are.
noinst_LTLIBRARIES += contrib/allgather/libring.la
contrib_allgather_libring_la_SOURCES = \
	contrib/allgather/transport.h \
	contrib/allgather/transports.c
contrib_allgather_libring_la_CPPFLAGS = -D_GNU_SOURCE $(AM_CPPFLAGS) \
	-I$(srcdir)/contrib/allgather/include
contrib_allgather_libring_la_LIBADD =
