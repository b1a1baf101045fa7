/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The cgroups of an agent that slurmstepd has started: none of those whose
 * processes Slurm counts, signals, freezes and waits for as the step's, and one
 * of its own by which it can be ended.
 *
 * Version 2: job_J/step_N/pmi2x, beside Slurm's `slurm` and `user`. The job's
 * limits hold, the step's lie on `user`.
 *
 * Version 1: job_J/pmi2x_N of freezer and memory, beside Slurm's step_N. In each
 * other hierarchy in which slurmstepd is in the job, the root: Slurm removes
 * those of the step while the agent still runs.
 *
 * Where slurmstepd is in no such group (proctrack/linuxproc or pgid): none.
 *
 * While a leaf is there Slurm cannot remove the job's directory, nor the step's
 * in version 2. It removes them after mpi_fini, or, what task/cgroup alone has
 * made, before it, and then does not come back: so who removes a leaf removes
 * what is left empty above it, too, under the lock that Slurm takes for it.
 */
#ifndef PMI2X_LEAF_H
#define PMI2X_LEAF_H

#include <stddef.h>

#define LEAF_MOUNT "/sys/fs/cgroup" /* as in Slurm's cgroup.conf */
#define LEAF_DIRS_MAX 5             /* Slurm uses that many controllers */
#define LEAF_OWN_MAX 2
#define LEAF_REMOVE_MS 2000

struct leaf {
	char *dirs[LEAF_DIRS_MAX + 1]; /* to write cgroup.procs of; NULL ends */
	unsigned int own;              /* the first so many are made by us */
	size_t locked[LEAF_OWN_MAX];   /* bytes of dirs[i]: what Slurm locks */
};

/*
 * Find out which. `groups` is the text of slurmstepd's /proc/self/cgroup, which
 * must be read while its step runs: at the end it leaves. `step` names the step
 * within its job ("0", "1+2"), without a slash. 0 or -ENOMEM, -ENAMETOOLONG;
 * release with leaf_free in any case.
 */
int leaf_find(struct leaf *leaf, const char *groups, const char *mount,
	      const char *step);

/*
 * Make the directories of its own; one that is left of an earlier slurmstepd
 * is as good. 0, or negative errno and nothing made.
 */
int leaf_make(const struct leaf *leaf);

/*
 * Kill what is in its own directories and remove them, and those of Slurm
 * above that are empty. Call it when the agent has ended, or must. Waits for the
 * kernel for up to `limit_ms`. 0, also when there is nothing; -EBUSY: not in
 * time; other negative errno. May be repeated.
 */
int leaf_remove(const struct leaf *leaf, unsigned int limit_ms);

void leaf_free(struct leaf *leaf);

#endif
