/* SPDX-License-Identifier: BSD-3-Clause */
/* Spawn requests as the callers of PMI-1 and PMI-2 describe them, and their results. */
#pragma once

#include <stdbool.h>

#include "libpmi/spawn.h"

struct job;

/* The `i`-th pair of an array of the caller's. */
typedef struct spawn_pair spawn_pair_reader(const void *from, int i);

/* The arguments of PMI_Spawn_multiple and PMI2_Job_Spawn. */
struct spawn_source {
	int count;            /* of all arrays but those of pairs */
	const char **cmds;
	bool counts_args;     /* argvs end with NULL each */
	const int *argcs;     /* with more than that; NULL: 0 */
	const char ***argvs;  /* NULL: no arguments */
	const int *maxprocs;
	const int *info_sizes;   /* NULL: no info */
	const void *const *infos; /* arrays that read_info reads; or NULL */
	spawn_pair_reader *read_info;
	int npreput;
	const void *preput;   /* an array that read_preput reads */
	spawn_pair_reader *read_preput;
};

/* Are the arguments there that must be? */
bool spawn_source_ok(const struct spawn_source *from);
/*
 * A request of them. The strings stay the caller's. 0, -EINVAL (an array is missing
 * or too long) or -ENOMEM, and then it is incomplete; free it in any case.
 */
int spawn_draft(const struct spawn_source *from, struct spawn_request **out);
void spawn_draft_free(struct spawn_request *r); /* NULL is allowed */

/*
 * Make the server carry the request out. `jobid` gets the name of the new job, unless it is
 * NULL or has no room; `errors`, unless NULL, gets one code for each process, 0 where the
 * server gives none. 0; -EINVAL: beyond the limits of spawn.h; -ENOBUFS: the name was cut;
 * or an error of the connection.
 */
int spawn_run(struct job *job, const struct spawn_request *r, char jobid[],
	      int jobid_size, int errors[]);
