/* SPDX-License-Identifier: BSD-3-Clause */
/* pmi2x-dvm up. */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "dvm/cli/client.h"
#include "dvm/cli/dvm.h"
#include "dvm/cli/find.h"
#include "dvm/cli/interrupt.h"
#include "dvm/cli/up.h"
#include "dvm/common/journal_file.h"
#include "dvm/common/self_path.h"
#include "dvm/core/ledger.h"
#include "libutil/decimal.h"

/* All nodes of the allocation, unless told otherwise. */
static void find_nodes(struct up *u)
{
	const char *job = getenv("SLURM_JOB_ID");
	const char *nodes = getenv("SLURM_JOB_NUM_NODES");
	uint32_t named = (uint32_t)json_array_size(u->names);

	if (u->local)
		return;
	if (!job)
		die("not in a Slurm allocation: run this inside salloc or sbatch, or give --local");
	if (named && u->nodes && named != u->nodes)
		die_usage("--nodelist names %u nodes, and -N says %u", named, u->nodes);
	u->nodes = named ? named : u->nodes;
	if (!u->nodes && (!nodes || !decimal_u32(nodes, 1, LEDGER_NODES_MAX,
						 &u->nodes)))
		die("SLURM_JOB_NUM_NODES does not say how many nodes the job has: give -N");
}

/* ---- several ---- */

/* How many there are to be; 0: one that has the name itself. */
static void count_dvms(struct up *u)
{
	if (u->dvms && u->dvm_nodes)
		die_usage("--dvms is the number of DVMs, --dvm-nodes the nodes of each: give one of the two");
	if (u->dvm_nodes)
		u->dvms = (u->nodes + u->dvm_nodes - 1) / u->dvm_nodes;
	if (u->dvms > u->nodes)
		die("%u DVMs need at least %u nodes, and there are %u", u->dvms,
		    u->dvms, u->nodes);
	if (u->dvms > DVM_MEMBERS_MAX)
		die("%u DVMs are too many: at most %d can be started", u->dvms, DVM_MEMBERS_MAX);
}

/* Each has a journal of its own, DIR/1 and so on; those of another number do not fit. */
static void check_journals(const struct up *u)
{
	char path[DVM_PATH_MAX];
	int rc;

	snprintf(path, sizeof(path), "%s/journal", u->journal);
	if (!access(path, F_OK))
		die("%s is the journal of one DVM, not of %u", u->journal, u->dvms);
	snprintf(path, sizeof(path), "%s/%u", u->journal, u->dvms + 1);
	if (!access(path, F_OK))
		die("%s has journals of more than %u DVMs: give as many as there were",
		    u->journal, u->dvms);
	rc = journal_dir_make(u->journal);
	if (rc && rc != -EEXIST)
		die("cannot make %s: %s", u->journal, strerror(-rc));
}

/* ---- starting ---- */

void up_find_own(char out[DVM_PATH_MAX])
{
	const char *given = getenv("PMI2X_DVM_LIBEXEC");
	char dir[DVM_PATH_MAX];

	if (given) {
		snprintf(out, DVM_PATH_MAX, "%s", given);
		return;
	}
	if ((size_t)snprintf(out, DVM_PATH_MAX, "%s/../libexec/pmi2x",
			     own_dir(dir, sizeof(dir)) ? dir : "") >= DVM_PATH_MAX ||
	    access(out, X_OK) < 0)
		snprintf(out, DVM_PATH_MAX, "%s", PKGLIBEXECDIR);
}

static void default_name(struct up *u)
{
	static char name[DVM_PATH_MAX];

	if (u->name)
		return;
	dvm_default_name(name);
	json_decref(user_text("the name of the DVM", name));
	u->name = name;
}

static bool start(struct up *u)
{
	find_nodes(u);
	count_dvms(u);
	default_name(u);
	if (dvm_is_up(u->name) && u->ends)
		return false;
	if (dvm_is_up(u->name))
		die("the DVM %s is up already: stop that DVM with pmi2x-dvm down, or give --name another name",
		    u->name);
	if (u->journal && u->dvms)
		check_journals(u);
	up_find_own(u->own);
	if (!start_heads(u))
		return false;
	printf("DVM %s is up: %u node%s", u->name, u->nodes, u->nodes == 1 ? "" : "s");
	printf(u->dvms ? ", %u DVMs\n" : "\n", u->dvms);
	fflush(stdout); /* before what batch says of its tasks, to standard error */
	if (u->local && u->nodes > 1)
		fprintf(stderr, "pmi2x-dvm: the %u nodes are all this machine and share its cores\n",
			u->nodes);
	return true;
}

/* As in the tree of `make dvm`: that program loads libpmix, and cannot be static. */
static void warn_no_pmix(const struct up *u)
{
	char path[DVM_PATH_MAX + 32];

	snprintf(path, sizeof(path), "%s/pmi2x-pmixd", u->own);
	if (access(path, X_OK) < 0)
		fprintf(stderr, "pmi2x-dvm: there is no %s: tasks of Open MPI and other PMIx programs run as singletons; MPICH and other PMI programs work\n",
			path);
}

int cmd_up(int argc, char **argv)
{
	static struct up u = { .nargs = 1 };

	up_take_options(&u, argc, argv);
	(void)start(&u);
	warn_no_pmix(&u);
	return 0;
}

bool up_for_batch(int argc, char **argv, bool paused)
{
	struct up u = { .nargs = 1, .ends = true };
	int file = optind;
	bool started;

	optind = 1;
	up_take_options(&u, argc, argv);
	optind = file;
	up_add(&u, "-E", NULL);
	if (paused)
		up_add(&u, "-P", NULL);
	started = start(&u);
	interrupt_catch();
	return started;
}
