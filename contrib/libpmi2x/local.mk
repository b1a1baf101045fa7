# SPDX-License-Identifier: BSD-3-Clause
# The client library. Its objects make three shared libraries that differ in
# what they export, and the unit tests link them as they are.
noinst_LTLIBRARIES += contrib/libpmi2x/libclient.la

# What it needs of libpmi, libshm and libutil is compiled in (xxHash inlined): a
# library inside a container should need nothing but libc.
contrib_libpmi2x_libclient_la_SOURCES = \
	contrib/libpmi2x/api.c contrib/libpmi2x/api.h \
	contrib/libpmi2x/barrier_group.c contrib/libpmi2x/barrier_group.h \
	contrib/libpmi2x/clique.c contrib/libpmi2x/clique.h \
	contrib/libpmi2x/print_error.c contrib/libpmi2x/print_error.h \
	contrib/libpmi2x/conn.c contrib/libpmi2x/conn.h \
	contrib/libpmi2x/conn_private.h contrib/libpmi2x/conn_responses.c \
	contrib/libpmi2x/fetch.c contrib/libpmi2x/fetch.h \
	contrib/libpmi2x/gather.c contrib/libpmi2x/gather.h \
	contrib/libpmi2x/handshake.c contrib/libpmi2x/handshake.h \
	contrib/libpmi2x/job.c contrib/libpmi2x/job.h \
	contrib/libpmi2x/call.c contrib/libpmi2x/call.h \
	contrib/libpmi2x/collective.c contrib/libpmi2x/collective.h \
	contrib/libpmi2x/entry.c contrib/libpmi2x/entry.h \
	contrib/libpmi2x/kvs.c contrib/libpmi2x/kvs.h \
	contrib/libpmi2x/mvapich.c contrib/libpmi2x/mvapich.h \
	contrib/libpmi2x/mvapich_api.c \
	contrib/libpmi2x/pmi1_api.c \
	contrib/libpmi2x/pmi2_api.c \
	contrib/libpmi2x/extensions_api.c \
	contrib/libpmi2x/requests.c contrib/libpmi2x/requests.h \
	contrib/libpmi2x/ring.c contrib/libpmi2x/ring.h \
	contrib/libpmi2x/session.c contrib/libpmi2x/session.h \
	contrib/libpmi2x/singleton.c contrib/libpmi2x/singleton.h \
	contrib/libpmi2x/rank_trace.c contrib/libpmi2x/rank_trace.h \
	contrib/libpmi2x/spawn_draft.c contrib/libpmi2x/spawn_draft.h \
	contrib/libpmi2x/slots_client.c contrib/libpmi2x/slots_client.h \
	contrib/libpmi2x/text.c contrib/libpmi2x/text.h \
	contrib/libpmi2x/pmi_fd.c contrib/libpmi2x/pmi_fd.h \
	contrib/libpmi2x/value.c contrib/libpmi2x/value.h \
	contrib/libpmi2x/views.c contrib/libpmi2x/views.h \
	contrib/libpmi2x/wire.c contrib/libpmi2x/wire.h \
	contrib/libpmi2x/wire_pmi1.c \
	contrib/libpmi2x/wire_pmi2.c \
	src/common/libpmi/message.c \
	src/common/libpmi/wire1.c \
	src/common/libpmi/wire2.c \
	src/common/libpmi/writer.c \
	src/common/libshm/image.c \
	src/common/libshm/image_hash.c \
	src/common/libshm/index.c \
	src/common/libshm/records.c \
	src/common/libshm/region_map.c \
	src/common/libshm/region_reader.c \
	src/common/libutil/array.c \
	src/common/libutil/budget.c \
	src/common/libutil/buf.c \
	src/common/libutil/decimal.c \
	src/common/libutil/log.c
contrib_libpmi2x_libclient_la_CFLAGS = $(AM_CFLAGS) $(XXHASH_CFLAGS) -pthread

pmi2x_link = -version-info 0:0:0 -pthread -Wl,--no-undefined
pmi2x_maps = contrib/libpmi2x/libpmi2x.map contrib/libpmi2x/libpmi2.map \
	contrib/libpmi2x/libpmi.map
EXTRA_DIST += $(pmi2x_maps)

lib_LTLIBRARIES += contrib/libpmi2x/libpmi2x.la
contrib_libpmi2x_libpmi2x_la_SOURCES =
contrib_libpmi2x_libpmi2x_la_LIBADD = contrib/libpmi2x/libclient.la
contrib_libpmi2x_libpmi2x_la_LDFLAGS = $(AM_LDFLAGS) $(pmi2x_link) \
	-Wl,--version-script=$(srcdir)/contrib/libpmi2x/libpmi2x.map
EXTRA_contrib_libpmi2x_libpmi2x_la_DEPENDENCIES = $(pmi2x_maps)

# Drop-ins for programs and MPI libraries that look for Slurm's libraries.
pkglib_LTLIBRARIES += contrib/libpmi2x/libpmi2.la contrib/libpmi2x/libpmi.la
contrib_libpmi2x_libpmi2_la_SOURCES =
contrib_libpmi2x_libpmi2_la_LIBADD = contrib/libpmi2x/libclient.la
contrib_libpmi2x_libpmi2_la_LDFLAGS = $(AM_LDFLAGS) $(pmi2x_link) \
	-Wl,--version-script=$(srcdir)/contrib/libpmi2x/libpmi2.map
EXTRA_contrib_libpmi2x_libpmi2_la_DEPENDENCIES = $(pmi2x_maps)

contrib_libpmi2x_libpmi_la_SOURCES =
contrib_libpmi2x_libpmi_la_LIBADD = contrib/libpmi2x/libclient.la
contrib_libpmi2x_libpmi_la_LDFLAGS = $(AM_LDFLAGS) $(pmi2x_link) \
	-Wl,--version-script=$(srcdir)/contrib/libpmi2x/libpmi.map
EXTRA_contrib_libpmi2x_libpmi_la_DEPENDENCIES = $(pmi2x_maps)

pkginclude_HEADERS = contrib/libpmi2x/include/pmi.h \
	contrib/libpmi2x/include/pmi2.h \
	contrib/libpmi2x/include/pmi2x.h

pkgconfigdir = $(libdir)/pkgconfig
pkgconfig_DATA = contrib/libpmi2x/pmi2x.pc

dist_man_MANS += \
	contrib/libpmi2x/man/PMIX_Allgather.3 \
	contrib/libpmi2x/man/PMIX_Allgather_n.3 \
	contrib/libpmi2x/man/PMIX_Capabilities.3 \
	contrib/libpmi2x/man/PMIX_Iallgather.3 \
	contrib/libpmi2x/man/PMIX_Iallgather_n.3 \
	contrib/libpmi2x/man/PMIX_Iallgather_view.3 \
	contrib/libpmi2x/man/PMIX_KVS_Fetch.3 \
	contrib/libpmi2x/man/PMIX_KVS_Get_n.3 \
	contrib/libpmi2x/man/PMIX_KVS_Ifence.3 \
	contrib/libpmi2x/man/PMIX_KVS_Ifetch.3 \
	contrib/libpmi2x/man/PMIX_KVS_Put_n.3 \
	contrib/libpmi2x/man/PMIX_Ring.3 \
	contrib/libpmi2x/man/PMIX_Test.3 \
	contrib/libpmi2x/man/PMIX_Version.3 \
	contrib/libpmi2x/man/PMIX_View_free.3 \
	contrib/libpmi2x/man/PMIX_View_value.3 \
	contrib/libpmi2x/man/PMIX_Wait.3 \
	contrib/libpmi2x/man/pmi2x.7 contrib/libpmi2x/man/pmi2x-messages.7
