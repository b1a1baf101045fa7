/* SPDX-License-Identifier: BSD-3-Clause */
/* The ranks of a part, one after another, each with its share of the part's resources. */
#include <signal.h>
#include <string.h>

#include "dvm/zygote/zygote.h"

/* Take a rank's resources from those of the part. */
static void share(struct node_rank *r, struct dvm_cores *cores, uint64_t *gpus,
		  uint32_t each_cores, uint32_t each_gpus)
{
	memset(&r->cores, 0, sizeof(r->cores));
	cores_move(&r->cores, cores, each_cores);
	r->gpus = 0;
	for (; each_gpus; each_gpus--) {
		r->gpus |= *gpus & -*gpus;
		*gpus &= *gpus - 1;
	}
}

/* Start one rank. 0 or a negative errno. */
static int start_rank(struct parts *parts, const struct node_rank *rank,
		      const struct resources *has, const struct rank_fds *fds,
		      uint64_t *process)
{
	const pid_t pid = zygote_exec(rank, has, fds);
	int rc;

	if (pid < 0)
		return (int)pid;
	rc = parts_started(parts, rank->part, rank->local, pid);
	if (rc)
		kill(pid, SIGKILL); /* nobody would notice its end */
	*process = (uint64_t)pid;
	return rc;
}

int zygote_start(struct parts *parts, const struct node_start *what,
		 const struct resources *has, const struct rank_fds *fds,
		 uint64_t *processes, uint32_t *count)
{
	const struct dvm_launch *l = what->launch;
	struct node_rank rank = {
		.launch = l, .profile = what->profile, .part = what->part,
	};
	struct dvm_cores cores = l->cores;
	uint64_t gpus = l->gpus;
	uint32_t each_cores = cores_count(&cores) / l->ranks_here;
	uint32_t each_gpus = (uint32_t)__builtin_popcountll(gpus) / l->ranks_here;
	int rc = parts_open(parts, what->part, l->task, l->instance, l->ranks_here);

	*count = 0;
	for (uint32_t i = 0; !rc && i < l->ranks_here; i++) {
		rank.local = i;
		share(&rank, &cores, &gpus, each_cores, each_gpus);
		if (i < what->first)
			continue;
		rc = start_rank(parts, &rank, has, fds, &processes[*count]);
		*count += !rc;
	}
	return rc;
}
