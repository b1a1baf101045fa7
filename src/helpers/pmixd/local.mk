# SPDX-License-Identifier: BSD-3-Clause
# What serves PMIx clients with libpmix, which it opens itself: only its headers are
# needed here. Started by slurmstepd's plugin.
if HAVE_PMIXD
pkglibexec_PROGRAMS += src/helpers/pmixd/pmi2x-pmixd
noinst_LTLIBRARIES += libpmixd.la

# Its home, and where hwloc looks for plugins: nobody but root may put something there.
pmixd_home = $(pkglibexecdir)/empty
install-exec-local:
	$(MKDIR_P) -m 755 "$(DESTDIR)$(pmixd_home)"
uninstall-local:
	-rmdir "$(DESTDIR)$(pmixd_home)"
endif
libpmixd_la_SOURCES = $(files_src_helpers_pmixd)
libpmixd_la_CPPFLAGS = $(libconfine_la_CPPFLAGS) $(PMIX_CFLAGS) \
	-DPMIXD_HOME='"$(pmixd_home)"'
libpmixd_la_CFLAGS = $(AM_CFLAGS) -fvisibility=hidden

src_helpers_pmixd_pmi2x_pmixd_SOURCES = \
	src/helpers/pmixd/clients.c src/helpers/pmixd/clients.h \
	src/helpers/pmixd/accept_hook.c src/helpers/pmixd/accept_hook.h \
	src/helpers/pmixd/main.c src/helpers/pmixd/pmixd.h \
	src/helpers/pmixd/program.c src/helpers/pmixd/program.h
src_helpers_pmixd_pmi2x_pmixd_CPPFLAGS = $(libpmixd_la_CPPFLAGS)
src_helpers_pmixd_pmi2x_pmixd_CFLAGS = $(libpmixd_la_CFLAGS)
src_helpers_pmixd_pmi2x_pmixd_LDADD = libpmixd.la libconfine.la libio_nodeps.la libpmi.la libcoll.la libutil.la \
	$(XXHASH_LIBS) $(DL_LIBS) -lpthread
# libpmix calls the functions of accept_hook.c.
src_helpers_pmixd_pmi2x_pmixd_LDFLAGS = $(AM_LDFLAGS) -rdynamic
