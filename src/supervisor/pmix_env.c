/* SPDX-License-Identifier: BSD-3-Clause */
/* Variables that a PMIx client of each release reads. */
#include "supervisor/pmix_env.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "helpers/pmixd/pmixd.h"

#define VALUE_MAX 512

/* A row for each release of the protocol; all have the same form. */
static const struct {
	const char *name;
	bool old; /* of PMIx 3 and older */
} addresses[] = {
	{ "PMIX_SERVER_URI41", false }, { "PMIX_SERVER_URI4", false },
	{ "PMIX_SERVER_URI3", true }, { "PMIX_SERVER_URI21", true },
	{ "PMIX_SERVER_URI2", true },
};

static void format_address(char out[VALUE_MAX], const struct pmix_env *e, bool old)
{
	uint32_t a = e->address[old];

	snprintf(out, VALUE_MAX, PMIXD_SERVER_NSPACE ".%u;tcp4://%u.%u.%u.%u:%u",
		 e->server, a >> 24, a >> 16 & 255, a >> 8 & 255, a & 255, e->port[old]);
}

/*
 * Without a module named a client takes shared memory where it can. One of PMIx 3
 * complains of each that it does not have.
 */
static void set_gds(const struct pmix_env *e,
		    void (*set)(void *arg, const char *name, const char *value, bool weak),
		    void *arg)
{
	char path[VALUE_MAX];

	if (!strcmp(e->gds, "auto"))
		return;
	if (strcmp(e->gds, "ds21")) {
		set(arg, "PMIX_GDS_MODULE", "hash", false);
		return;
	}
	snprintf(path, sizeof(path), "%s/" PMIXD_DS21, e->dir);
	set(arg, "PMIX_GDS_MODULE", "ds21,hash", false);
	set(arg, PMIX_ENV_DS21, path, false);
}

void pmix_env_each(const struct pmix_env *e,
		   void (*set)(void *arg, const char *name, const char *value, bool weak),
		   void *arg)
{
	char value[VALUE_MAX];

	snprintf(value, sizeof(value), "pmi2x.%.256s", e->jobid);
	set(arg, "PMIX_NAMESPACE", value, false);
	for (size_t i = 0; i < sizeof(addresses) / sizeof(addresses[0]); i++) {
		format_address(value, e, addresses[i].old);
		set(arg, addresses[i].name, value, false);
	}
	set(arg, "PMIX_SECURITY_MODE", "native", false);
	set(arg, "PMIX_BFROP_BUFFER_TYPE", "PMIX_BFROP_BUFFER_NON_DESC", false);
	set_gds(e, set, arg);
	set(arg, "PMIX_SERVER_TMPDIR", e->dir, false);
	set(arg, "PMIX_HOSTNAME", e->node, false);
	/* MPICH from 5 on does not start when it finds two kinds of PMI, unless told
	   which; where it has no PMI-1 it takes what it has. */
	set(arg, "MPIR_CVAR_PMI_VERSION", "1", true);
	if (!e->shares_machine)
		return;
	set(arg, "OMPI_MCA_btl_vader_backing_directory", e->dir, true);
	/*
	 * Debian's Open MPI asks the kernel (netlink) for routes, and takes the route of a
	 * machine to itself for none.
	 */
	set(arg, "OMPI_MCA_reachable", "weighted", true);
}
