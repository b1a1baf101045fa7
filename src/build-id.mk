# SPDX-License-Identifier: BSD-3-Clause
# What a build is known by: the version, and a hash over the names and bytes of the
# sources of all that speaks one of pmi2x's protocols. It is the same for every
# compiler, distribution and architecture, in a clone and from a tarball.
build_id_sources = $(libutil_la_SOURCES) $(libcoll_la_SOURCES) $(libstore_la_SOURCES) \
	$(libshm_nodeps_la_SOURCES) $(libshm_la_SOURCES) \
	$(libpmi_la_SOURCES) $(libengine_la_SOURCES) \
	$(libio_nodeps_la_SOURCES) $(libio_la_SOURCES) \
	$(libconfine_nodeps_la_SOURCES) $(libconfine_la_SOURCES) \
	$(libagent_nodeps_la_SOURCES) $(libagent_la_SOURCES) \
	$(src_agent_pmi2x_agent_SOURCES) $(libsupervisor_la_SOURCES) \
	$(src_helpers_topology_pmi2x_topology_SOURCES) $(src_helpers_pmixd_pmi2x_pmixd_SOURCES) \
	$(libdvm_la_SOURCES) $(libdvmjson_la_SOURCES) $(libsrun_la_SOURCES) \
	$(libpmi2x_srun_la_SOURCES) $(liblend_la_SOURCES) $(libpmi2x_lend_la_SOURCES) \
	$(mpi_pmi2x_la_SOURCES) $(contrib_libpmi2x_libclient_la_SOURCES)

# The hash of the sources below a directory.
build_id_of = cd "$(1)" && printf '%s\n' $(build_id_sources) | LC_ALL=C sort -u | \
	xargs sha256sum | sha256sum | cut -c1-12

BUILT_SOURCES += pmi2x-build.h
CLEANFILES += pmi2x-build.h
# Left alone when it would be the same, and so is what includes it.
pmi2x-build.h: $(build_id_sources) Makefile
	$(AM_V_GEN)hash=`$(call build_id_of,$(srcdir))` && \
	printf '#define PMI2X_BUILD "%s"\n' "$(PACKAGE_VERSION)-$$hash" >$@.new && \
	if cmp -s $@.new $@; then rm $@.new; else mv $@.new $@; fi

.PHONY: build-id build-id-sources
build-id:
	@$(call build_id_of,$(FROM))
build-id-sources:
	@printf '%s\n' $(build_id_sources)


# In recipes, a command that prints it.
BUILD_ID = cut -d '"' -f 2 pmi2x-build.h
