# SPDX-License-Identifier: BSD-3-Clause
# The ring allgather. Its objects make the library and the preloadable form, and
# the unit tests link them as they are.
noinst_LTLIBRARIES += contrib/allgather/libring.la
contrib_allgather_libring_la_SOURCES = $(files_contrib_allgather) \
	contrib/libpmi2x/clique.c contrib/libpmi2x/clique.h \
	contrib/libpmi2x/print_error.c contrib/libpmi2x/print_error.h \
	src/common/libutil/budget.c \
	src/common/libutil/buf.c \
	src/common/libutil/decimal.c \
	src/common/libutil/hex.c \
	src/common/libutil/log.c
contrib_allgather_libring_la_CPPFLAGS = -D_GNU_SOURCE $(AM_CPPFLAGS) \
	-I$(srcdir)/contrib/allgather/include
contrib_allgather_libring_la_CFLAGS = $(AM_CFLAGS) -pthread
contrib_allgather_libring_la_LIBADD =

# libibverbs is looked for at run time; the build needs its header only.
if HAVE_VERBS
contrib_allgather_libring_la_SOURCES += \
	contrib/allgather/verbs.c contrib/allgather/verbs.h \
	contrib/allgather/verbs_address.c contrib/allgather/verbs_address.h \
	contrib/allgather/verbs_calls.c contrib/allgather/verbs_calls.h \
	contrib/allgather/verbs_device.c contrib/allgather/verbs_device.h \
	contrib/allgather/verbs_listener.c contrib/allgather/verbs_listener.h \
	contrib/allgather/verbs_link.c contrib/allgather/verbs_link.h \
	contrib/allgather/verbs_port.c contrib/allgather/verbs_port.h \
	contrib/allgather/verbs_settings.c
contrib_allgather_libring_la_CPPFLAGS += -DHAVE_VERBS
contrib_allgather_libring_la_LIBADD += $(DL_LIBS)
endif

allgather_maps = contrib/allgather/allgather.map contrib/allgather/preload.map
EXTRA_DIST += $(allgather_maps)

lib_LTLIBRARIES += contrib/allgather/libpmi2x-allgather.la
contrib_allgather_libpmi2x_allgather_la_SOURCES =
contrib_allgather_libpmi2x_allgather_la_LIBADD = contrib/allgather/libring.la $(DL_LIBS)
contrib_allgather_libpmi2x_allgather_la_LDFLAGS = $(AM_LDFLAGS) $(pmi2x_link) \
	-Wl,--version-script=$(srcdir)/contrib/allgather/allgather.map
EXTRA_contrib_allgather_libpmi2x_allgather_la_DEPENDENCIES = $(allgather_maps)

# For LD_PRELOAD. It has the ring of its own.
pkglib_LTLIBRARIES += contrib/allgather/libpmi2x-allgather-preload.la
contrib_allgather_libpmi2x_allgather_preload_la_SOURCES = \
	contrib/allgather/preload.c
contrib_allgather_libpmi2x_allgather_preload_la_CPPFLAGS = \
	$(contrib_allgather_libring_la_CPPFLAGS)
contrib_allgather_libpmi2x_allgather_preload_la_CFLAGS = $(AM_CFLAGS) -pthread
contrib_allgather_libpmi2x_allgather_preload_la_LIBADD = \
	contrib/allgather/libring.la $(DL_LIBS)
contrib_allgather_libpmi2x_allgather_preload_la_LDFLAGS = $(AM_LDFLAGS) \
	-module -avoid-version -pthread -Wl,--no-undefined \
	-Wl,--version-script=$(srcdir)/contrib/allgather/preload.map
EXTRA_contrib_allgather_libpmi2x_allgather_preload_la_DEPENDENCIES = \
	$(allgather_maps)

pkginclude_HEADERS += contrib/allgather/include/pmi2x_allgather.h
pkgconfig_DATA += contrib/allgather/pmi2x-allgather.pc

# Compiled here so that it stays right; for readers, not installed.
noinst_PROGRAMS += contrib/allgather/examples/ring-hello
contrib_allgather_examples_ring_hello_SOURCES = \
	contrib/allgather/examples/ring-hello.c
contrib_allgather_examples_ring_hello_CPPFLAGS = $(AM_CPPFLAGS) \
	-I$(srcdir)/contrib/allgather/include
contrib_allgather_examples_ring_hello_LDADD = \
	contrib/allgather/libpmi2x-allgather.la contrib/libpmi2x/libpmi2x.la
contrib_allgather_examples_ring_hello_LDFLAGS = $(AM_LDFLAGS) -no-install

dist_man_MANS += $(files_contrib_allgather_man)
if HAVE_VERBS
noinst_PROGRAMS += contrib/allgather/examples/rc-bootstrap
contrib_allgather_examples_rc_bootstrap_SOURCES = \
	contrib/allgather/examples/rc-bootstrap.c
contrib_allgather_examples_rc_bootstrap_CPPFLAGS = \
	$(contrib_allgather_examples_ring_hello_CPPFLAGS)
contrib_allgather_examples_rc_bootstrap_LDADD = \
	$(contrib_allgather_examples_ring_hello_LDADD) -libverbs
contrib_allgather_examples_rc_bootstrap_LDFLAGS = $(AM_LDFLAGS) -no-install
endif
