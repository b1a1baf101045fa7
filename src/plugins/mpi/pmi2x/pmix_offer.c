/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Decides whether tasks of a node get PMIx, and says so in their environment. */
#include "slurm_compat.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "launch_env.h"
#include "pmix_offer.h"
#include "supervisor/pmix_env.h"
#include "slurm_log.h"
#include "spool.h"

#define GDS_DS21 "ds21"
#define PSEC "PMIX_MCA_psec"
#define SECURITY "native"
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

/*
 * Jobs that have asked for PMIx by name hear that it is not there; others go on
 * without.
 */
static void refuse(struct pmix_offer *o, const struct conf *conf, char *why)
{
	if (conf->pmix == CONF_PMIX_EARLY)
		o->failure = why;
	else
		o->lacks = why;
}

static bool wants_early(const struct conf *conf, const struct pmix_step *step)
{
	return conf->pmix == CONF_PMIX_EARLY ||
	       (conf->pmix == CONF_PMIX_AUTO && step->program == LAUNCH_PROGRAM_PMIX);
}

/*
 * The option for pmi2x-pmixd. With PMIx 5 data is in shared memory, where a client can
 * find it after it has connected. With 4 it looks for files before: where the server is
 * started early, and tasks wait for it; but not where others go on when a rank dies: if
 * it did so while it got something, it would keep a lock that the server waits for.
 * Releases from 6 on differ.
 */
static const char *gds_word(const struct pmix_offer *o, const struct conf *conf,
			    bool early)
{
	if (conf->pmix_gds == CONF_PMIX_GDS_HASH)
		return "none";
	if (o->library.release == 4 && early && conf->kill_on_failure)
		return GDS_DS21;
	return o->library.release == 5 ? "auto" : "hash";
}

void pmix_offer_make(struct pmix_offer *o, const struct conf *conf,
		     const struct pmix_step *step)
{
	bool early = wants_early(conf, step);
	char *why;

	*o = (struct pmix_offer){ .when = PMIX_START_NEVER };
	if (conf->pmix == CONF_PMIX_NO)
		return;
	why = what_lacks(o, conf, step);
	if (why) {
		refuse(o, conf, why);
		return;
	}
	o->dir = spool_path(SUPERVISOR_PMIX_DIR_PREFIX, step->node, step->node_id,
			    step->jobid, "");
	if (!o->dir)
		return;
	o->gds = gds_word(o, conf, early);
	o->collect = options_collect_words[conf->pmix_collect];
	o->tasks_wait = conf->pmix == CONF_PMIX_EARLY || !strcmp(o->gds, GDS_DS21);
	o->when = early ? PMIX_START_EARLY : PMIX_START_ASKED;
}

/* The variables of the MCA have comma-separated lists; ^ before one excludes its names. */
static bool allows_native(const char *list)
{
	bool excludes = *list == '^';

	return !*list || (strstr(list, SECURITY) != NULL) != excludes;
}

void pmix_offer_note_hindrance(bool terminal, char **env, const struct log_hook *notes)
{
	const char *security = getenvp(env, PSEC);

	if (terminal)
		log_error(notes, "a step with --pty gets no PMIx, which the program needs: run it by an srun without --pty");
	else if (security && !allows_native(security))
		log_error(notes, PSEC "=%.64s excludes " SECURITY ", by which pmi2x authenticates PMIx clients: unset " PSEC,
			  security);
}

void pmix_offer_describe(const struct pmix_offer *o,
			 struct supervisor_pmix_options *out)
{
	*out = (struct supervisor_pmix_options){
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
	free(o->lacks);
	free(o->failure);
}

/* ---- the variables ---- */

static void set_variable(void *arg, const char *name, const char *value, bool weak)
{
	char ***env = arg;

	if (!weak || !getenvp(*env, name))
		env_array_overwrite(env, name, value);
}

void pmix_offer_set_env(const struct pmix_offer *o, const struct supervisor *supervisor,
			const struct pmix_step *step, uint32_t position,
			char ***env)
{
	const struct pmix_env e = {
		.jobid = step->jobid, .node = step->node, .server = position,
		.address = { INADDR_LOOPBACK, INADDR_LOOPBACK },
		.port = { supervisor_pmix_port(supervisor, false),
			  supervisor_pmix_port(supervisor, true) },
		.gds = o->gds, .dir = o->dir, .shares_machine = step->shares_machine,
	};

	if (o->dir)
		pmix_env_each(&e, set_variable, env);
}

void pmix_offer_set_late(const struct pmix_offer *o, char ***env)
{
	if (strcmp(o->gds, GDS_DS21))
		return;
	unsetenvp(*env, PMIX_ENV_DS21);
	env_array_overwrite(env, "PMIX_GDS_MODULE", "hash");
}
