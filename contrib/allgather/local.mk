# SPDX-License-Identifier: BSD-3-Clause
# The ring allgather. Its objects make the library and the preloadable form, and
# the unit tests link them as they are.
noinst_LTLIBRARIES += contrib/allgather/libring.la
contrib_allgather_libring_la_SOURCES = \
	contrib/allgather/bundle.c contrib/allgather/bundle.h \
	contrib/allgather/clock.h \
	contrib/allgather/flow.c contrib/allgather/flow.h \
	contrib/allgather/frame.c contrib/allgather/frame.h \
	contrib/allgather/schedule.c contrib/allgather/schedule.h \
	contrib/allgather/tcp.c \
	contrib/allgather/tcp_address.c contrib/allgather/tcp_address.h \
	contrib/allgather/tcp_greet.c contrib/allgather/tcp_greet.h \
	contrib/allgather/tcp_link.c contrib/allgather/tcp_link.h \
	contrib/allgather/transport.h \
	contrib/allgather/transports.c \
	src/common/libutil/buf.c
contrib_allgather_libring_la_CPPFLAGS = -D_GNU_SOURCE $(AM_CPPFLAGS) \
	-I$(srcdir)/contrib/allgather/include
contrib_allgather_libring_la_CFLAGS = $(AM_CFLAGS) -pthread
contrib_allgather_libring_la_LIBADD =

# libibverbs is looked for at run time; the build needs its header only.
if HAVE_VERBS
contrib_allgather_libring_la_SOURCES += \
	contrib/allgather/verbs.c \
	contrib/allgather/verbs_address.c contrib/allgather/verbs_address.h \
	contrib/allgather/verbs_calls.c contrib/allgather/verbs_calls.h \
	contrib/allgather/verbs_device.c contrib/allgather/verbs_device.h \
	contrib/allgather/verbs_knock.c contrib/allgather/verbs_knock.h \
	contrib/allgather/verbs_link.c contrib/allgather/verbs_link.h \
	contrib/allgather/verbs_port.c contrib/allgather/verbs_port.h \
	contrib/allgather/verbs_settings.c
contrib_allgather_libring_la_CPPFLAGS += -DHAVE_VERBS
contrib_allgather_libring_la_LIBADD += $(DL_LIBS)
endif
