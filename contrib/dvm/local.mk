# SPDX-License-Identifier: BSD-3-Clause
# Many tasks inside one allocation: pmi2x-dvm and its daemons.
if HAVE_JANSSON
bin_PROGRAMS += contrib/dvm/pmi2x-dvm
pkglibexec_PROGRAMS += contrib/dvm/pmi2x-dvm-head contrib/dvm/pmi2x-dvmd \
	contrib/dvm/pmi2x-dvm-zygote
endif
DVM_CPPFLAGS = $(AM_CPPFLAGS) -D_GNU_SOURCE -I$(srcdir)/contrib/dvm \
	-DPKGLIBEXECDIR='"$(pkglibexecdir)"'

contrib_dvm_pmi2x_dvm_SOURCES = \
	contrib/dvm/client.c contrib/dvm/client.h \
	contrib/dvm/cmd_cancel.c \
	contrib/dvm/cmd_nodes.c \
	contrib/dvm/cmd_report.c \
	contrib/dvm/cmd_show.c contrib/dvm/cmd_submit.c contrib/dvm/cmd_up.c \
	contrib/dvm/cmd_why.c \
	contrib/dvm/dvm.c contrib/dvm/dvm.h \
	contrib/dvm/find.c contrib/dvm/find.h \
	contrib/dvm/group.c contrib/dvm/group.h \
	contrib/dvm/journal_file.c contrib/dvm/journal_file.h \
	contrib/dvm/own.c contrib/dvm/own.h \
	contrib/dvm/place.c contrib/dvm/place.h \
	contrib/dvm/remote.c contrib/dvm/remote.h \
	contrib/dvm/results.c contrib/dvm/results.h \
	contrib/dvm/welcome.c contrib/dvm/welcome.h
contrib_dvm_pmi2x_dvm_CPPFLAGS = $(DVM_CPPFLAGS)
contrib_dvm_pmi2x_dvm_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS)
contrib_dvm_pmi2x_dvm_LDADD = libdvm.la libio.la libpmi.la libcoll.la libutil.la $(JANSSON_LIBS) \
	$(SODIUM_LIBS) $(XXHASH_LIBS)

contrib_dvm_pmi2x_dvm_head_SOURCES = \
	contrib/dvm/core_file.h \
	contrib/dvm/headd.c contrib/dvm/headd.h \
	contrib/dvm/headd_address.c \
	contrib/dvm/headd_clients.c \
	contrib/dvm/headd_ends.c \
	contrib/dvm/headd_journal.c contrib/dvm/headd_journal.h \
	contrib/dvm/headd_launch.c contrib/dvm/headd_names.c \
	contrib/dvm/headd_nodes.c contrib/dvm/headd_orphans.c \
	contrib/dvm/headd_owner.c \
	contrib/dvm/headd_stop.c \
	contrib/dvm/journal_file.c contrib/dvm/journal_file.h \
	contrib/dvm/own.c contrib/dvm/own.h \
	contrib/dvm/place.c contrib/dvm/place.h \
	contrib/dvm/welcome.c contrib/dvm/welcome.h
contrib_dvm_pmi2x_dvm_head_CPPFLAGS = $(DVM_CPPFLAGS)
contrib_dvm_pmi2x_dvm_head_CFLAGS = $(libio_la_CFLAGS) $(JANSSON_CFLAGS)
contrib_dvm_pmi2x_dvm_head_LDADD = libdvm.la libio.la libpmi_plain.la libcoll.la libutil.la \
	$(JANSSON_LIBS) $(LIBUV_LIBS) $(SODIUM_LIBS) $(XXHASH_LIBS) -lpthread

contrib_dvm_pmi2x_dvmd_SOURCES = \
	contrib/dvm/claim.c contrib/dvm/claim.h \
	contrib/dvm/core_file.h \
	contrib/dvm/dvmd.c \
	contrib/dvm/lease_timer.c contrib/dvm/lease_timer.h \
	contrib/dvm/own.c contrib/dvm/own.h \
	contrib/dvm/pool.c contrib/dvm/pool.h \
	contrib/dvm/pmix_hub.c contrib/dvm/pmix_hub.h contrib/dvm/pmix_offer.h \
	contrib/dvm/silent.c contrib/dvm/silent.h \
	contrib/dvm/spawn.c contrib/dvm/spawn.h \
	contrib/dvm/strays.c contrib/dvm/strays.h \
	contrib/dvm/task.c contrib/dvm/task.h \
	contrib/dvm/tasks.c contrib/dvm/tasks.h \
	contrib/dvm/welcome.c contrib/dvm/welcome.h
contrib_dvm_pmi2x_dvmd_CPPFLAGS = $(DVM_CPPFLAGS)
contrib_dvm_pmi2x_dvmd_CFLAGS = $(libio_la_CFLAGS)
contrib_dvm_pmi2x_dvmd_LDADD = libdvm.la libsupervisor.la libagent.la libio.la libpmi.la \
	libshm.la libcoll.la libutil.la $(LIBUV_LIBS) $(SODIUM_LIBS) $(XXHASH_LIBS) -lpthread

contrib_dvm_pmi2x_dvm_zygote_SOURCES = \
	contrib/dvm/resources.c contrib/dvm/resources.h \
	contrib/dvm/strays.c contrib/dvm/strays.h \
	contrib/dvm/zygote.c contrib/dvm/zygote.h \
	contrib/dvm/zygote_exec.c contrib/dvm/zygote_output.c \
	contrib/dvm/zygote_pmi.c
contrib_dvm_pmi2x_dvm_zygote_CPPFLAGS = $(DVM_CPPFLAGS)
contrib_dvm_pmi2x_dvm_zygote_CFLAGS = $(AM_CFLAGS)
contrib_dvm_pmi2x_dvm_zygote_LDADD = libdvm.la libsupervisor.la libio.la libutil.la

if HAVE_JANSSON
dvm_pythondir = $(pkgdatadir)/python
dist_dvm_python_DATA = contrib/dvm/pmi2x_dvm.py
dist_man_MANS += contrib/dvm/pmi2x-dvm.1
endif
