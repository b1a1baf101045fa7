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

src_dvm_pmi2x_dvm_SOURCES = $(files_src_dvm_cli) \
	src/dvm/common/bootstrap.c src/dvm/common/bootstrap.h \
	src/dvm/common/environ.c src/dvm/common/environ.h \
	src/dvm/common/inherited_fds.c src/dvm/common/inherited_fds.h \
	src/dvm/common/journal_file.c src/dvm/common/journal_file.h \
	src/dvm/common/rlimits.c src/dvm/common/rlimits.h \
	src/dvm/common/rundir.c src/dvm/common/rundir.h \
	src/dvm/common/self_path.c src/dvm/common/self_path.h
src_dvm_pmi2x_dvm_CPPFLAGS = $(DVM_CPPFLAGS)
src_dvm_pmi2x_dvm_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS)
src_dvm_pmi2x_dvm_LDADD = libdvmjson.la libdvm.la libio.la libpmi.la libcoll.la libutil.la $(JANSSON_LIBS) \
	$(SODIUM_LIBS) $(XXHASH_LIBS)

src_dvm_pmi2x_dvm_head_SOURCES = $(files_src_dvm_head) \
	src/dvm/common/bootstrap.c src/dvm/common/bootstrap.h \
	src/dvm/common/core_file.h \
	src/dvm/common/environ.c src/dvm/common/environ.h \
	src/dvm/common/journal_file.c src/dvm/common/journal_file.h \
	src/dvm/common/rlimits.c src/dvm/common/rlimits.h \
	src/dvm/common/rundir.c src/dvm/common/rundir.h \
	src/dvm/common/self_path.c src/dvm/common/self_path.h
src_dvm_pmi2x_dvm_head_CPPFLAGS = $(DVM_CPPFLAGS)
src_dvm_pmi2x_dvm_head_CFLAGS = $(libio_la_CFLAGS) $(JANSSON_CFLAGS)
src_dvm_pmi2x_dvm_head_LDADD = libdvmjson.la libdvm.la libio.la libpmi.la libcoll.la libutil.la \
	$(JANSSON_LIBS) $(LIBUV_LIBS) $(SODIUM_LIBS) $(XXHASH_LIBS) -lpthread

src_dvm_pmi2x_dvmd_SOURCES = $(files_src_dvm_node) \
	src/dvm/common/bootstrap.c src/dvm/common/bootstrap.h \
	src/dvm/common/core_file.h \
	src/dvm/common/inherited_fds.c src/dvm/common/inherited_fds.h \
	src/dvm/common/pmix_offer.h \
	src/dvm/common/rlimits.c src/dvm/common/rlimits.h \
	src/dvm/common/self_path.c src/dvm/common/self_path.h \
	src/dvm/common/strays.c src/dvm/common/strays.h
src_dvm_pmi2x_dvmd_CPPFLAGS = $(DVM_CPPFLAGS)
src_dvm_pmi2x_dvmd_CFLAGS = $(libio_la_CFLAGS)
src_dvm_pmi2x_dvmd_LDADD = libdvm.la libsupervisor.la libagent.la libio.la libengine.la libpmi.la \
	libshm.la libcoll.la libutil.la $(LIBUV_LIBS) $(SODIUM_LIBS) $(XXHASH_LIBS) -lpthread

src_dvm_pmi2x_dvm_zygote_SOURCES = $(files_src_dvm_zygote) \
	src/dvm/common/rlimits.c src/dvm/common/rlimits.h \
	src/dvm/common/self_path.c src/dvm/common/self_path.h \
	src/dvm/common/strays.c src/dvm/common/strays.h
src_dvm_pmi2x_dvm_zygote_CPPFLAGS = $(DVM_CPPFLAGS)
src_dvm_pmi2x_dvm_zygote_CFLAGS = $(AM_CFLAGS)
src_dvm_pmi2x_dvm_zygote_LDADD = libdvm.la libsupervisor.la libio.la libcoll.la libutil.la

if HAVE_JANSSON
# pmi2x-dvm by other names, in a directory that engines put first in PATH.
DVM_ENGINES = srun prte prun pterm prte_info
install-exec-hook: install-engines
.PHONY: install-engines
install-engines:
	$(MKDIR_P) "$(DESTDIR)$(pkglibexecdir)/pmi2x-dvm-engines"
	for name in $(DVM_ENGINES); do \
		ln -srf "$(DESTDIR)$(bindir)/pmi2x-dvm" \
			"$(DESTDIR)$(pkglibexecdir)/pmi2x-dvm-engines/$$name" || exit; \
	done
uninstall-hook:
	for name in $(DVM_ENGINES); do \
		rm -f "$(DESTDIR)$(pkglibexecdir)/pmi2x-dvm-engines/$$name"; \
	done

dvm_pythondir = $(pkgdatadir)/python/pmi2x_dvm
dist_dvm_python_DATA = $(files_src_dvm_python_pmi2x_dvm)
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
	$(AM_V_at)$(MKDIR_P) $(DVM_TREE)/libexec/pmi2x/pmi2x-dvm-engines
	$(AM_V_at)cd $(DVM_TREE)/libexec/pmi2x/pmi2x-dvm-engines && \
		for name in $(DVM_ENGINES); do ln -s ../../../bin/pmi2x-dvm $$name; done
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
