/* SPDX-License-Identifier: BSD-3-Clause */
/* Spawn requests as the callers of PMI-1 and PMI-2 describe them, and their results. */
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

/*
 * Have the server carry it out. Hands out the name of the new job, unless `jobid` is
 * NULL or has no room, and one code per process, 0 where the server is silent, unless
 * `errors` is NULL. 0; -EINVAL: beyond the limits of spawn.h; -ENOBUFS: the name was
 * cut; or an error of the connection.
 */
int spawn_run(struct session *s, const struct spawn_request *r, char jobid[],
	      int jobid_size, int errors[]);

#endif
