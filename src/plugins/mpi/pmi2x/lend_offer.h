/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * PMI2X_LEND: which steps get libpmi2x-lend.so and the table of their ranks. The library is
 * in LD_PRELOAD of tasks only, so that no process that Slurm runs as root loads it.
 */
#ifndef PMI2X_LEND_OFFER_H
#define PMI2X_LEND_OFFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lend/request.h"
#include "libutil/log.h"

struct lend_offer {
	enum lend_request request; /* LEND_OFF: the step gets nothing */
	int table;      /* shared memory; slurmstepd never maps it. Unless LEND_OFF. */
	uint32_t ranks; /* of this node */
	uint32_t cores; /* of this node, with LEND_ON; otherwise 0 */
	uint32_t factor;
};

/*
 * srun's half: false, with an error, if PMI2X_LEND or its factor is wrong. A program that
 * loads no library is named, and runs.
 */
bool lend_offer_check(const struct log_hook *log);

/*
 * slurmstepd's half. `allowed` is Pmi2xLend of the site; a job that asks without being
 * allowed runs, and a note says so. 0, or a negative errno and why the step cannot run,
 * in `why` of `size` bytes.
 */
int lend_offer_make(struct lend_offer *o, bool allowed, char **env, uint32_t ranks,
		    const struct log_hook *notes, char *why, size_t size);
/* In a task: give it the library and its place; remove those of an outer step. 0 or an errno
   that is negative. `position` is the node's. */
int lend_offer_set_env(const struct lend_offer *o, uint32_t rank, uint32_t slot,
		       uint32_t position, char ***env);
void lend_offer_free(struct lend_offer *o);

#endif
