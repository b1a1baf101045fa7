# SPDX-License-Identifier: BSD-3-Clause
# What serves PMIx clients with libpmix, which it opens itself: only its headers are
# needed here. Started by slurmstepd's plugin.
if HAVE_PMIXD
pkglibexec_PROGRAMS += src/pmixd/pmi2x-pmixd
noinst_LTLIBRARIES += libpmixd.la

# Its home, and where hwloc looks for plugins: nobody but root may put something there.
pmixd_home = $(pkglibexecdir)/empty
install-exec-local:
	$(MKDIR_P) -m 755 "$(DESTDIR)$(pmixd_home)"
uninstall-local:
	-rmdir "$(DESTDIR)$(pmixd_home)"
endif
libpmixd_la_SOURCES = \
	src/pmixd/client_hello.c src/pmixd/client_hello.h \
	src/pmixd/collect.c src/pmixd/collect.h \
	src/pmixd/events.c src/pmixd/events.h \
	src/pmixd/info.c src/pmixd/info.h \
	src/pmixd/job_info.c src/pmixd/job_info.h \
	src/pmixd/library.c src/pmixd/library.h \
	src/pmixd/link.c src/pmixd/link.h \
	src/pmixd/names.c src/pmixd/names.h \
	src/pmixd/notify.c src/pmixd/notify.h \
	src/pmixd/server.c src/pmixd/server.h \
	src/pmixd/server_call.c \
	src/pmixd/server_cross.c \
	src/pmixd/server_fetch.c \
	src/pmixd/server_group.c \
	src/pmixd/server_internal.h \
	src/pmixd/server_session.c \
	src/pmixd/server_job.c \
	src/pmixd/spawn.c src/pmixd/spawn.h \
	src/pmixd/store.c src/pmixd/store.h \
	src/pmixd/upcalls.c src/pmixd/upcalls.h
libpmixd_la_CPPFLAGS = $(libagent_la_CPPFLAGS) $(PMIX_CFLAGS) \
	-DPMIXD_HOME='"$(pmixd_home)"'
libpmixd_la_CFLAGS = $(AM_CFLAGS) -fvisibility=hidden

src_pmixd_pmi2x_pmixd_SOURCES = \
	src/pmixd/clients.c src/pmixd/clients.h \
	src/pmixd/door.c src/pmixd/door.h \
	src/pmixd/main.c src/pmixd/pmixd.h \
	src/pmixd/program.c src/pmixd/program.h
src_pmixd_pmi2x_pmixd_CPPFLAGS = $(libpmixd_la_CPPFLAGS)
src_pmixd_pmi2x_pmixd_CFLAGS = $(libpmixd_la_CFLAGS)
src_pmixd_pmi2x_pmixd_LDADD = libpmixd.la libagent.la libio_plain.la libpmi.la libcoll.la libutil.la \
	$(XXHASH_LIBS) $(DL_LIBS) -lpthread
# libpmix calls the functions of door.c.
src_pmixd_pmi2x_pmixd_LDFLAGS = $(AM_LDFLAGS) -rdynamic
