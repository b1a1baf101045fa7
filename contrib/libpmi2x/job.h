/* SPDX-License-Identifier: BSD-3-Clause */
/* Spawn requests as the callers of PMI-1 and PMI-2 describe them. */
#ifndef PMI2X_JOB_H
#define PMI2X_JOB_H

#include "libpmi/spawn.h"
#include "wire.h"

/*
 * A request for `count` commands whose infos and preputs are still empty. The
 * strings stay the caller's. NULL: no memory. Free with spawn_draft_free.
 */
struct spawn_request *spawn_draft(int count);
/* Make room for `n` pairs of a command, or of the preput values (c NULL). */
struct spawn_pair *spawn_draft_pairs(struct spawn_request *r,
				     struct spawn_command *c, int n);
void spawn_draft_free(struct spawn_request *r);

/* Fill in one code per process from the server's list; 0 where it is silent. */
void spawn_errors(const struct spawn_request *r, const struct value *errcodes,
		  int errors[]);

/* Check the limits of spawn.h. 0 or -EINVAL. */
int spawn_check(const struct spawn_request *r);

#endif
