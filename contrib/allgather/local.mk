# SPDX-License-Identifier: BSD-3-Clause
# The ring allgather. Its objects make the library and the preloadable form, and
# the unit tests link them as they are.
noinst_LTLIBRARIES += contrib/allgather/libring.la
contrib_allgather_libring_la_SOURCES = \
	contrib/allgather/api.c \
	contrib/allgather/bundle.c contrib/allgather/bundle.h \
	contrib/allgather/clock.h \
	contrib/allgather/create.c \
	contrib/allgather/delivery.c contrib/allgather/delivery.h \
	contrib/allgather/flow.c contrib/allgather/flow.h \
	contrib/allgather/frame.c contrib/allgather/frame.h \
	contrib/allgather/group.c contrib/allgather/group.h \
	contrib/allgather/group_layout.h \
	contrib/allgather/group_ops.c \
	contrib/allgather/join.c contrib/allgather/join.h \
	contrib/allgather/join_meet.c \
	contrib/allgather/join_round.c \
	contrib/allgather/join_settings.c \
	contrib/allgather/links.c \
	contrib/allgather/neighbours.c \
	contrib/allgather/ops.c \
	contrib/allgather/pmi_library.c contrib/allgather/pmi_library.h \
	contrib/allgather/pmi_gather.c contrib/allgather/pmi_gather.h \
	contrib/allgather/pmi_keys.c contrib/allgather/pmi_keys.h \
	contrib/allgather/ring.h \
	contrib/allgather/schedule.c contrib/allgather/schedule.h \
	contrib/allgather/settings.c contrib/allgather/settings.h \
	contrib/allgather/store.c contrib/allgather/store.h \
	contrib/allgather/tcp.c \
	contrib/allgather/tcp_address.c contrib/allgather/tcp_address.h \
	contrib/allgather/tcp_greet.c contrib/allgather/tcp_greet.h \
	contrib/allgather/tcp_link.c contrib/allgather/tcp_link.h \
	contrib/allgather/transport.h \
	contrib/allgather/transports.c \
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

dist_man_MANS += \
	contrib/allgather/man/pmi2x-allgather.7 \
	contrib/allgather/man/pmi2x_ring_allgather.3 \
	contrib/allgather/man/pmi2x_ring_allgather_v.3 \
	contrib/allgather/man/pmi2x_ring_create.3 \
	contrib/allgather/man/pmi2x_ring_destroy.3 \
	contrib/allgather/man/pmi2x_ring_error.3 \
	contrib/allgather/man/pmi2x_ring_get_counters.3 \
	contrib/allgather/man/pmi2x_ring_iallgather.3 \
	contrib/allgather/man/pmi2x_ring_iallgather_v.3 \
	contrib/allgather/man/pmi2x_ring_test.3 \
	contrib/allgather/man/pmi2x_ring_transport.3 \
	contrib/allgather/man/pmi2x_ring_wait.3
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
