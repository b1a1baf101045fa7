/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Decides whether tasks of a node get PMIx, and says so in their environment. */
#include "slurm_compat.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "launch_env.h"
#include "pmix_offer.h"
#include "pmixd/pmixd.h"
#include "slurm_log.h"
#include "spool.h"

#define LIBRARY_HINT \
	"install libpmix2 (Debian, Ubuntu) or pmix (RPM) there, or set Pmi2xPmixLibrary in mpi.conf"

/* ---- whether ---- */

/* NULL, or why this node has no PMIx server. */
static char *what_lacks(struct pmix_offer *o, const struct conf *conf,
			const struct pmix_step *step)
{
	char *why = NULL;
	int n = 0;

	switch (pmix_library_find(&o->library, conf->pmix_library)) {
	case 0:
		if (access(PMIXD_PROGRAM, X_OK))
			n = asprintf(&why, "node %s has no %s: install pmi2x there with PMIx",
				     step->node, PMIXD_PROGRAM);
		break;
	case -ENOENT:
		n = asprintf(&why, "node %s has no libpmix.so.2%s%s: " LIBRARY_HINT,
			     step->node, conf->pmix_library[0] ? " at " : "",
			     conf->pmix_library);
		break;
	default:
		n = asprintf(&why, "%s of node %s is older than 4.2: " LIBRARY_HINT,
			     o->library.path, step->node);
	}
	return n < 0 ? NULL : why;
}

/* Who has asked for it by name hears that it is not there; others go on without. */
static void refuse(struct pmix_offer *o, const struct conf *conf, char *why)
{
	if (conf->pmix == CONF_PMIX_EARLY) {
		o->failure = why;
		return;
	}
	log_debug(&slurm_log, "PMIx is not offered: %s", why);
	free(why);
}

static const char *const collect_words[] = {
	[PMIXD_COLLECT_AUTO] = "auto",
	[PMIXD_COLLECT_DEMAND] = "demand",
	[PMIXD_COLLECT_STORE] = "store",
};

/*
 * What pmi2x-pmixd is told. In shared memory, where a client can find it after it has
 * connected: with 5. With 4 it looks for files before; what 6 and later have differs.
 */
static const char *gds_word(const struct pmix_offer *o, const struct conf *conf)
{
	if (conf->pmix_gds == CONF_PMIX_GDS_HASH)
		return "none";
	return o->library.release == 5 ? "auto" : "hash";
}

void pmix_offer_make(struct pmix_offer *o, const struct conf *conf,
		     const struct pmix_step *step)
{
	char *why;

	*o = (struct pmix_offer){ .when = STARTER_PMIX_NEVER };
	if (conf->pmix == CONF_PMIX_NO)
		return;
	why = what_lacks(o, conf, step);
	if (why) {
		refuse(o, conf, why);
		return;
	}
	o->dir = spool_path(STARTER_PMIX_DIR_PREFIX, step->node, step->node_id,
			    step->jobid, "");
	if (!o->dir)
		return;
	o->gds = gds_word(o, conf);
	o->collect = collect_words[conf->pmix_collect];
	o->tasks_wait = conf->pmix == CONF_PMIX_EARLY;
	o->when = o->tasks_wait || (conf->pmix == CONF_PMIX_AUTO &&
				    step->program == LAUNCH_PROGRAM_PMIX) ?
			  STARTER_PMIX_EARLY : STARTER_PMIX_ASKED;
}

void pmix_offer_describe(const struct pmix_offer *o,
			 struct starter_pmix_options *out)
{
	*out = (struct starter_pmix_options){
		.when = o->when,
		.program = PMIXD_PROGRAM,
		.dir = o->dir,
		.library = o->library.path,
		.gds = o->gds,
		.collect = o->collect,
	};
}

void pmix_offer_free(struct pmix_offer *o)
{
	free(o->dir);
	free(o->failure);
}

/* ---- the variables ---- */

/* One for each release of the protocol, all of the same form. */
static const struct {
	const char *name;
	bool old; /* of PMIx 3 and older */
} addresses[] = {
	{ "PMIX_SERVER_URI41", false }, { "PMIX_SERVER_URI4", false },
	{ "PMIX_SERVER_URI3", true }, { "PMIX_SERVER_URI21", true },
	{ "PMIX_SERVER_URI2", true },
};

static void set_addresses(const struct starter *starter, uint32_t position,
			  char ***env)
{
	for (size_t i = 0; i < sizeof(addresses) / sizeof(addresses[0]); i++)
		env_array_overwrite_fmt(
			env, addresses[i].name,
			PMIXD_SERVER_NSPACE ".%u;tcp4://127.0.0.1:%u", position,
			starter_pmix_port(starter, addresses[i].old));
}

static void set_unless_set(char ***env, const char *name, const char *value)
{
	if (!getenvp(*env, name))
		env_array_overwrite(env, name, value);
}

void pmix_offer_set_env(const struct pmix_offer *o, const struct starter *starter,
			const struct pmix_step *step, uint32_t position,
			char ***env)
{
	if (!o->dir)
		return;
	env_array_overwrite_fmt(env, "PMIX_NAMESPACE", "pmi2x.%s", step->jobid);
	set_addresses(starter, position, env);
	env_array_overwrite(env, "PMIX_SECURITY_MODE", "native");
	env_array_overwrite(env, "PMIX_BFROP_BUFFER_TYPE",
			    "PMIX_BFROP_BUFFER_NON_DESC");
	/* Without it a client takes shared memory where it can. One of PMIx 3 complains
	   of each module in it that it does not have. */
	if (strcmp(o->gds, "auto"))
		env_array_overwrite(env, "PMIX_GDS_MODULE", "hash");
	env_array_overwrite(env, "PMIX_SERVER_TMPDIR", o->dir);
	env_array_overwrite(env, "PMIX_HOSTNAME", step->node);
	/* MPICH from 5 on does not start when it finds two kinds of PMI, unless told
	   which; where it has no PMI-1 it takes what it has. */
	set_unless_set(env, "MPIR_CVAR_PMI_VERSION", "1");
	/* Open MPI 4.1 names files of shared memory by machine, job and local rank, so
	   that ranks of several nodes there would take the same. */
	if (step->shares_machine)
		set_unless_set(env, "OMPI_MCA_btl_vader_backing_directory", o->dir);
}
