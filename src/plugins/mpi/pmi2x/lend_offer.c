/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The library of PMI2X_LEND in the environment of tasks, and the memory that they share. */
#include "slurm_compat.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lend/table.h"
#include "lend_offer.h"
#include "preload_list.h"

#define PRELOAD_ENV "LD_PRELOAD"
#define TABLE_FD 61 /* the lowest number in a task: above PMI_FD */

bool lend_offer_check(const struct log_hook *log)
{
	const char *text = getenv(LEND_ENV);
	enum lend_request request;
	char why[LEND_TEXT_MAX];

	if (lend_request_parse(text, &request))
		return true;
	lend_request_explain(text, why);
	log_error(log, "%s", why);
	return false;
}

/* The size is sealed, so that no rank can take the memory from under another one. */
static int make_table(uint32_t ranks)
{
	int rc, fd = memfd_create("pmi2x-lend", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0)
		return -errno;
	if (ftruncate(fd, (off_t)lend_table_size(ranks)) ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)) {
		rc = -errno;
		close(fd);
		return rc;
	}
	return fd;
}

/* 0, or -EINVAL about an unknown word. A site that forbids it leaves LEND_OFF. */
static int read_request(struct lend_offer *o, bool allowed, const char *text,
			const struct log_hook *notes, char *why, size_t size)
{
	char explained[LEND_TEXT_MAX];

	if (!lend_request_parse(text, &o->request)) {
		lend_request_explain(text, explained);
		snprintf(why, size, "%s", explained);
		return -EINVAL;
	}
	if (o->request == LEND_OFF || allowed)
		return 0;
	o->request = LEND_OFF;
	log_error(notes, LEND_ENV " has no effect: Pmi2xLend=no in mpi.conf forbids it");
	return 0;
}

int lend_offer_make(struct lend_offer *o, bool allowed, char **env, uint32_t ranks,
		    const struct log_hook *notes, char *why, size_t size)
{
	int rc;

	o->ranks = ranks;
	rc = read_request(o, allowed, getenvp(env, LEND_ENV), notes, why, size);
	if (rc || o->request == LEND_OFF)
		return rc;
	if (access(LEND_LIBRARY, R_OK)) {
		rc = -errno;
		snprintf(why, size, "%s, which " LEND_ENV " needs: %s: install pmi2x there with the plugin, or unset " LEND_ENV,
			 LEND_LIBRARY, strerror(-rc));
	} else {
		o->table = make_table(ranks);
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

int lend_offer_set_env(const struct lend_offer *o, uint32_t rank, uint32_t slot,
		       uint32_t position, char ***env)
{
	struct lend_place place = {
		.slot = slot, .ranks = o->ranks, .rank = rank,
		.reports = !slot && (!position || o->request == LEND_REPORT_ALL),
	};
	char text[LEND_TEXT_MAX];

	if (o->request == LEND_OFF)
		return remove_outer(env);
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
