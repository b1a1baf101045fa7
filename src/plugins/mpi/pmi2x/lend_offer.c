/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The library of PMI2X_LEND in the environment of tasks, and the memory that they share. */
#include "slurm_compat.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include "lend/table.h"
#include "lend_offer.h"
#include "preload_list.h"
#include "srun_options.h"

#define PRELOAD_ENV "LD_PRELOAD"
#define DLB_ENV "DLB_ARGS"
#define TABLE_FD 61 /* the lowest number in a task: above PMI_FD */

/* A job's words. False: one of them is wrong, and `why` names it. */
static bool read_words(const char *text, const char *factor, const char *dlb,
		       struct lend_offer *o, char why[LEND_TEXT_MAX])
{
	if (!lend_request_parse(text, &o->request)) {
		lend_request_explain(text, why);
		return false;
	}
	if (!lend_factor_parse(factor, &o->factor)) {
		lend_factor_explain(factor, why);
		return false;
	}
	if (o->request == LEND_ON && dlb && *dlb) {
		snprintf(why, LEND_TEXT_MAX, LEND_ENV "=on and " DLB_ENV " are both set, and both lend cores: unset one of them");
		return false;
	}
	return true;
}

static void note_program(const struct log_hook *log)
{
	enum preload why = PRELOAD_LOADS;
	const char *program = srun_program_without_preload(&why);

	if (program && why == PRELOAD_STATIC)
		log_error(log, LEND_ENV " has no effect on %s: the program is statically linked",
			  program);
	else if (program)
		log_error(log, LEND_ENV " has no effect on %s: the program runs as another user or group (setuid, setgid)",
			  program);
}

bool lend_offer_check(const struct log_hook *log)
{
	struct lend_offer o;
	char why[LEND_TEXT_MAX];

	if (!read_words(getenv(LEND_ENV), getenv(LEND_FACTOR_ENV), getenv(DLB_ENV), &o, why)) {
		log_error(log, "%s", why);
		return false;
	}
	if (o.request != LEND_OFF)
		note_program(log);
	return true;
}

/* The size is sealed, so that no rank can take the memory from under another one. */
static int make_table(uint32_t ranks, uint32_t cores)
{
	int rc, fd = memfd_create("pmi2x-lend", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0)
		return -errno;
	if (ftruncate(fd, (off_t)lend_memory_size(ranks, cores)) ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)) {
		rc = -errno;
		close(fd);
		return rc;
	}
	return fd;
}

/* 0, or -EINVAL about a wrong word. A site that forbids it leaves LEND_OFF. */
static int read_request(struct lend_offer *o, bool allowed, char **env,
			const struct log_hook *notes, char *why, size_t size)
{
	char explained[LEND_TEXT_MAX];

	if (!read_words(getenvp(env, LEND_ENV), getenvp(env, LEND_FACTOR_ENV),
			getenvp(env, DLB_ENV), o, explained)) {
		o->request = LEND_OFF;
		snprintf(why, size, "%s", explained);
		return -EINVAL;
	}
	if (o->request == LEND_OFF || allowed)
		return 0;
	o->request = LEND_OFF;
	log_error(notes, LEND_ENV " has no effect: Pmi2xLend=no in mpi.conf forbids it");
	return 0;
}

/* Cores of the node that can be lent. */
static uint32_t count_cores(const struct lend_offer *o, const struct log_hook *notes)
{
	int cores = get_nprocs_conf();

	if (o->request != LEND_ON)
		return 0;
	if (o->ranks <= LEDGER_RANKS_MAX && cores > 0 && cores <= LEDGER_CORES_MAX)
		return (uint32_t)cores;
	log_error(notes, LEND_ENV " has no effect: the step has more than %d ranks on a node",
		  LEDGER_RANKS_MAX);
	return 0;
}

int lend_offer_make(struct lend_offer *o, bool allowed, char **env, uint32_t ranks,
		    const struct log_hook *notes, char *why, size_t size)
{
	int rc;

	o->ranks = ranks;
	rc = read_request(o, allowed, env, notes, why, size);
	if (rc || o->request == LEND_OFF)
		return rc;
	if (access(LEND_LIBRARY, R_OK)) {
		rc = -errno;
		snprintf(why, size, "%s, which " LEND_ENV " needs: %s: install pmi2x there with the plugin, or unset " LEND_ENV,
			 LEND_LIBRARY, strerror(-rc));
	} else {
		o->cores = count_cores(o, notes);
		o->table = make_table(ranks, o->cores);
		rc = o->table < 0 ? o->table : 0;
		if (rc)
			snprintf(why, size, "no shared memory for " LEND_ENV ": %s: unset it",
				 strerror(-rc));
	}
	if (rc)
		o->request = LEND_OFF;
	return rc;
}

/* ---- in a task ---- */

static int set_preload(char ***env, char *list)
{
	if (!list)
		return -ENOMEM;
	if (*list)
		env_array_overwrite(env, PRELOAD_ENV, list);
	else
		unsetenvp(*env, PRELOAD_ENV);
	free(list);
	return 0;
}

/* A step that does not ask gets nothing, also not by a rank of another step that starts it. */
static int remove_outer(char ***env)
{
	const char *list = getenvp(*env, PRELOAD_ENV);

	unsetenvp(*env, LEND_TABLE_ENV);
	if (!list || !strstr(list, LEND_LIBRARY))
		return 0;
	return set_preload(env, preload_list_without(list, LEND_LIBRARY));
}

/* Threads of OpenMP that wait must leave their cores. */
static void set_waits(char ***env)
{
	if (!getenvp(*env, "OMP_WAIT_POLICY"))
		env_array_overwrite(env, "OMP_WAIT_POLICY", "passive");
	if (!getenvp(*env, "KMP_BLOCKTIME"))
		env_array_overwrite(env, "KMP_BLOCKTIME", "0");
}

int lend_offer_set_env(const struct lend_offer *o, uint32_t rank, uint32_t slot,
		       uint32_t position, char ***env)
{
	struct lend_place place = {
		.slot = slot, .ranks = o->ranks, .rank = rank,
		.cores = o->cores, .factor = o->factor,
		.mode = o->cores ? LEND_CORES : LEND_NOTHING,
		.reports = !slot && (!position || o->request == LEND_REPORT_ALL) &&
			   (o->cores || o->request != LEND_ON),
		.explains = !position && o->cores,
	};
	char text[LEND_TEXT_MAX];

	if (o->request == LEND_OFF)
		return remove_outer(env);
	if (o->cores)
		set_waits(env);
	place.fd = fcntl(o->table, F_DUPFD, TABLE_FD);
	if (place.fd < 0)
		return -errno;
	lend_place_write(&place, text);
	env_array_overwrite(env, LEND_TABLE_ENV, text);
	return set_preload(env, preload_list_with(getenvp(*env, PRELOAD_ENV), LEND_LIBRARY));
}

void lend_offer_free(struct lend_offer *o)
{
	if (o->request != LEND_OFF)
		close(o->table);
	o->request = LEND_OFF;
}
