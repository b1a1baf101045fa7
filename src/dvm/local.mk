# SPDX-License-Identifier: BSD-3-Clause
# Many tasks inside one allocation: pmi2x-dvm and its daemons.
if HAVE_JANSSON
bin_PROGRAMS += src/dvm/pmi2x-dvm
pkglibexec_PROGRAMS += src/dvm/pmi2x-dvm-head src/dvm/pmi2x-dvmd \
	src/dvm/pmi2x-dvm-zygote
dist_pkglibexec_SCRIPTS += src/dvm/zygote/pmi2x-dvm-warm
endif
DVM_CPPFLAGS = $(AM_CPPFLAGS) -D_GNU_SOURCE \
	-DPKGLIBEXECDIR='"$(pkglibexecdir)"'

src_dvm_pmi2x_dvm_SOURCES = \
	src/dvm/cli/batch_dir.c src/dvm/cli/batch_dir.h \
	src/dvm/cli/batch_lines.c src/dvm/cli/batch_lines.h \
	src/dvm/cli/client.c src/dvm/cli/client.h \
	src/dvm/cli/complete_output.c src/dvm/cli/complete_output.h \
	src/dvm/cli/cmd_batch.c \
	src/dvm/cli/cmd_cancel.c \
	src/dvm/cli/cmd_down.c src/dvm/cli/cmd_nodes.c \
	src/dvm/cli/cmd_output.c \
	src/dvm/cli/output_results.c src/dvm/cli/output_results.h \
	src/dvm/cli/cmd_report.c src/dvm/cli/cmd_run.c \
	src/dvm/cli/report.h src/dvm/cli/report_csv.c \
	src/dvm/cli/report_read.c src/dvm/cli/report_tables.c \
	src/dvm/cli/cmd_show.c src/dvm/cli/cmd_submit.c src/dvm/cli/cmd_up.c \
	src/dvm/cli/cmd_why.c \
	src/dvm/cli/die.c src/dvm/cli/die.h \
	src/dvm/cli/dvm.c src/dvm/cli/dvm.h \
	src/dvm/cli/duration.c src/dvm/cli/duration.h \
	src/dvm/cli/find.c src/dvm/cli/find.h \
	src/dvm/cli/group.c src/dvm/cli/group.h \
	src/dvm/common/journal_file.c src/dvm/common/journal_file.h \
	src/dvm/common/self_path.c src/dvm/common/self_path.h \
	src/dvm/common/rundir.c src/dvm/common/rundir.h \
	src/dvm/cli/interrupt.c src/dvm/cli/interrupt.h \
	src/dvm/cli/json_values.c src/dvm/cli/json_values.h \
	src/dvm/cli/last_client.c src/dvm/cli/last_client.h \
	src/dvm/cli/lines.c src/dvm/cli/lines.h \
	src/dvm/cli/max_fails.c src/dvm/cli/max_fails.h \
	src/dvm/cli/number_list.c src/dvm/cli/number_list.h \
	src/dvm/cli/help.c src/dvm/cli/help.h \
	src/dvm/cli/options.c src/dvm/cli/options.h \
	src/dvm/cli/output_options.c \
	src/dvm/cli/profile.c \
	src/dvm/cli/progress.c src/dvm/cli/progress.h \
	src/dvm/common/inherited_fds.c src/dvm/common/inherited_fds.h \
	src/dvm/common/rlimits.c src/dvm/common/rlimits.h \
	src/dvm/cli/remote.c src/dvm/cli/remote.h \
	src/dvm/cli/results.c src/dvm/cli/results.h \
	src/dvm/cli/results_file.c src/dvm/cli/results_file.h \
	src/dvm/cli/signal_name.c src/dvm/cli/signal_name.h \
	src/dvm/cli/standard_input.c src/dvm/cli/standard_input.h \
	src/dvm/cli/start_heads.c src/dvm/cli/up.h \
	src/dvm/cli/submission.c src/dvm/cli/submission.h \
	src/dvm/cli/task_options.c \
	src/dvm/cli/template.c src/dvm/cli/template.h \
	src/dvm/cli/up_options.c \
	src/dvm/cli/value_lists.c src/dvm/cli/value_lists.h \
	src/dvm/cli/task_text.c src/dvm/cli/task_text.h \
	src/dvm/common/environ.c src/dvm/common/environ.h \
	src/dvm/common/bootstrap.c src/dvm/common/bootstrap.h
src_dvm_pmi2x_dvm_CPPFLAGS = $(DVM_CPPFLAGS)
src_dvm_pmi2x_dvm_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS)
src_dvm_pmi2x_dvm_LDADD = libdvmjson.la libdvm.la libio.la libpmi.la libcoll.la libutil.la $(JANSSON_LIBS) \
	$(SODIUM_LIBS) $(XXHASH_LIBS)

src_dvm_pmi2x_dvm_head_SOURCES = \
	src/dvm/common/core_file.h \
	src/dvm/head/head_main.c src/dvm/head/head_main.h \
	src/dvm/head/address.c \
	src/dvm/head/clients.c \
	src/dvm/head/ends.c \
	src/dvm/head/durable_journal.c src/dvm/head/durable_journal.h \
	src/dvm/head/head_tree.c \
	src/dvm/head/launch.c src/dvm/head/names.c \
	src/dvm/head/former_nodes.c \
	src/dvm/head/nodes.c src/dvm/head/orphans.c \
	src/dvm/head/identity.c \
	src/dvm/head/job_end.c \
	src/dvm/head/say.c \
	src/dvm/head/stop.c \
	src/dvm/head/welcome.c \
	src/dvm/common/rlimits.c src/dvm/common/rlimits.h \
	src/dvm/common/journal_file.c src/dvm/common/journal_file.h \
	src/dvm/common/self_path.c src/dvm/common/self_path.h \
	src/dvm/common/rundir.c src/dvm/common/rundir.h \
	src/dvm/common/environ.c src/dvm/common/environ.h \
	src/dvm/common/bootstrap.c src/dvm/common/bootstrap.h
src_dvm_pmi2x_dvm_head_CPPFLAGS = $(DVM_CPPFLAGS)
src_dvm_pmi2x_dvm_head_CFLAGS = $(libio_la_CFLAGS) $(JANSSON_CFLAGS)
src_dvm_pmi2x_dvm_head_LDADD = libdvmjson.la libdvm.la libio.la libpmi.la libcoll.la libutil.la \
	$(JANSSON_LIBS) $(LIBUV_LIBS) $(SODIUM_LIBS) $(XXHASH_LIBS) -lpthread

src_dvm_pmi2x_dvmd_SOURCES = \
	src/dvm/node/claim.c src/dvm/node/claim.h \
	src/dvm/common/core_file.h \
	src/dvm/node/node_main.c src/dvm/node/dvmd.h \
	src/dvm/node/head_link.c src/dvm/node/zygote_process.c \
	src/dvm/node/lease_timer.c src/dvm/node/lease_timer.h \
	src/dvm/common/self_path.c src/dvm/common/self_path.h \
	src/dvm/node/mesh.c src/dvm/node/mesh.h \
	src/dvm/node/direct_kill.c src/dvm/node/node_host.c \
	src/dvm/node/outputs.c src/dvm/node/outputs.h \
	src/dvm/node/output_file.c src/dvm/node/output_file.h \
	src/dvm/node/output_writer.c src/dvm/node/output_writer.h \
	src/dvm/common/inherited_fds.c src/dvm/common/inherited_fds.h \
	src/dvm/node/pmix_hub.c src/dvm/node/pmix_hub.h src/dvm/common/pmix_offer.h \
	src/dvm/node/silent.c src/dvm/node/silent.h \
	src/dvm/node/spawn.c src/dvm/node/spawn.h \
	src/dvm/node/step_signals.c \
	src/dvm/common/strays.c src/dvm/common/strays.h \
	src/dvm/node/task.c src/dvm/node/task.h \
	src/dvm/common/rlimits.c src/dvm/common/rlimits.h \
	src/dvm/node/task_nodes.c src/dvm/node/task_nodes.h \
	src/dvm/node/tasks.c src/dvm/node/tasks.h \
	src/dvm/node/tree_link.c src/dvm/node/tree_link.h \
	src/dvm/common/bootstrap.c src/dvm/common/bootstrap.h
src_dvm_pmi2x_dvmd_CPPFLAGS = $(DVM_CPPFLAGS)
src_dvm_pmi2x_dvmd_CFLAGS = $(libio_la_CFLAGS)
src_dvm_pmi2x_dvmd_LDADD = libdvm.la libsupervisor.la libagent.la libio.la libengine.la libpmi.la \
	libshm.la libcoll.la libutil.la $(LIBUV_LIBS) $(SODIUM_LIBS) $(XXHASH_LIBS) -lpthread

src_dvm_pmi2x_dvm_zygote_SOURCES = \
	src/dvm/zygote/gpus.c src/dvm/zygote/gpus.h \
	src/dvm/zygote/orders.c src/dvm/zygote/orders.h \
	src/dvm/zygote/parts.c src/dvm/zygote/parts.h \
	src/dvm/zygote/profiles.c src/dvm/zygote/profiles.h \
	src/dvm/zygote/rank_files.c src/dvm/zygote/rank_files.h \
	src/dvm/zygote/rank_program.c src/dvm/zygote/rank_program.h \
	src/dvm/zygote/resources.c src/dvm/zygote/resources.h \
	src/dvm/common/strays.c src/dvm/common/strays.h \
	src/dvm/zygote/zygote.c src/dvm/zygote/zygote.h \
	src/dvm/zygote/zygote_exec.c src/dvm/zygote/zygote_limits.c \
	src/dvm/zygote/zygote_start.c \
	src/dvm/zygote/warm.c src/dvm/zygote/warm.h \
	src/dvm/common/rlimits.c src/dvm/common/rlimits.h \
	src/dvm/common/self_path.c src/dvm/common/self_path.h
src_dvm_pmi2x_dvm_zygote_CPPFLAGS = $(DVM_CPPFLAGS)
src_dvm_pmi2x_dvm_zygote_CFLAGS = $(AM_CFLAGS)
src_dvm_pmi2x_dvm_zygote_LDADD = libdvm.la libsupervisor.la libio.la libcoll.la libutil.la

if HAVE_JANSSON
dvm_pythondir = $(pkgdatadir)/python/pmi2x_dvm
dist_dvm_python_DATA = src/dvm/python/pmi2x_dvm/__init__.py \
	src/dvm/python/pmi2x_dvm/_connection.py src/dvm/python/pmi2x_dvm/_encoding.py \
	src/dvm/python/pmi2x_dvm/_executor.py src/dvm/python/pmi2x_dvm/_results.py \
	src/dvm/python/pmi2x_dvm/_several.py
EXTRA_DIST += src/dvm/python/pyproject.toml
dist_man_MANS += src/dvm/cli/pmi2x-dvm.1

# Its four programs without shared libraries, as a tree to unpack anywhere: a user without
# rights on the machine builds it once, and copies it to machines with an older C library.
# PMIx clients are not served: pmi2x-pmixd loads libpmix, and is not in it.
DVM_TREE = pmi2x-dvm-$(PACKAGE_VERSION)
DVM_STATIC_UV = $$(pkg-config --static --libs libuv-static 2>/dev/null || \
	pkg-config --static --libs libuv)
DVM_STATIC_LINK = $(AM_V_CCLD)$(LIBTOOL) $(AM_V_lt) --tag=CC --mode=link \
	$(CCLD) $(AX_CFLAGS) $(CFLAGS) $(LDFLAGS) -all-static

dvm: $(BUILT_SOURCES)
	@$(MAKE) $(AM_MAKEFLAGS) $(DVM_TREE).tar.xz
	@echo "$(DVM_TREE).tar.xz: unpack it anywhere, and run $(DVM_TREE)/bin/pmi2x-dvm"

$(DVM_TREE).tar.xz: Makefile $(src_dvm_pmi2x_dvm_OBJECTS) $(src_dvm_pmi2x_dvm_DEPENDENCIES) \
		$(src_dvm_pmi2x_dvm_head_OBJECTS) $(src_dvm_pmi2x_dvm_head_DEPENDENCIES) \
		$(src_dvm_pmi2x_dvmd_OBJECTS) $(src_dvm_pmi2x_dvmd_DEPENDENCIES) \
		$(src_dvm_pmi2x_dvm_zygote_OBJECTS) $(src_dvm_pmi2x_dvm_zygote_DEPENDENCIES)
	$(AM_V_at)rm -rf $(DVM_TREE)
	$(AM_V_at)$(MKDIR_P) $(DVM_TREE)/bin $(DVM_TREE)/libexec/pmi2x \
		$(DVM_TREE)/share/pmi2x/python/pmi2x_dvm $(DVM_TREE)/share/man/man1
	$(DVM_STATIC_LINK) -o $(DVM_TREE)/bin/pmi2x-dvm \
		$(src_dvm_pmi2x_dvm_OBJECTS) $(src_dvm_pmi2x_dvm_LDADD)
	$(DVM_STATIC_LINK) -o $(DVM_TREE)/libexec/pmi2x/pmi2x-dvm-head \
		$(src_dvm_pmi2x_dvm_head_OBJECTS) $(src_dvm_pmi2x_dvm_head_LDADD:-luv=$(DVM_STATIC_UV))
	$(DVM_STATIC_LINK) -o $(DVM_TREE)/libexec/pmi2x/pmi2x-dvmd \
		$(src_dvm_pmi2x_dvmd_OBJECTS) $(src_dvm_pmi2x_dvmd_LDADD:-luv=$(DVM_STATIC_UV))
	$(DVM_STATIC_LINK) -o $(DVM_TREE)/libexec/pmi2x/pmi2x-dvm-zygote \
		$(src_dvm_pmi2x_dvm_zygote_OBJECTS) $(src_dvm_pmi2x_dvm_zygote_LDADD)
	$(AM_V_at)rm -rf $(DVM_TREE)/bin/.libs $(DVM_TREE)/libexec/pmi2x/.libs
	$(AM_V_at)strip $(DVM_TREE)/bin/* $(DVM_TREE)/libexec/pmi2x/*
	$(AM_V_at)cp $(srcdir)/src/dvm/zygote/pmi2x-dvm-warm $(DVM_TREE)/libexec/pmi2x
	$(AM_V_at)cp -R $(addprefix $(srcdir)/,$(dist_dvm_python_DATA)) $(DVM_TREE)/share/pmi2x/python/pmi2x_dvm
	$(AM_V_at)cp $(srcdir)/src/dvm/cli/pmi2x-dvm.1 $(DVM_TREE)/share/man/man1
	$(AM_V_at)cp $(srcdir)/LICENSES/BSD-3-Clause.txt $(DVM_TREE)/COPYING
	$(AM_V_at)tar -cJf $@.part $(DVM_TREE)
	$(AM_V_at)mv $@.part $@
	$(AM_V_at)rm -rf $(DVM_TREE)

CLEANFILES += $(DVM_TREE).tar.xz
.PHONY: dvm
else
dvm:
	@echo "make dvm needs libjansson; on Debian: apt-get install libjansson-dev" >&2; exit 1
.PHONY: dvm
endif
