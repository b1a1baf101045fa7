/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The cgroups of a program that slurmstepd has started beside a step: none of those
 * whose processes Slurm counts, signals, freezes and waits for as the step's, and one of
 * its own by which it can be ended.
 *
 * Only a program whose code is ours, and filtered, is exempt from what confines the step:
 * the agent. A program that loads libraries which read the user's files, pmi2x-pmixd,
 * stays on the step's processors and devices.
 *
 *                     LEAF_EXEMPT           LEAF_CONFINED
 * version 2           job_J/step_N/pmi2x    job_J/step_N/pmi2x-pmixd, with the cpuset
 *                                           of Slurm's `user` beside it
 * version 1
 *   freezer, memory,
 *   cpuacct           job_J/pmi2x_N         job_J/pmi2x_N
 *   cpuset, devices   the root              job_J/step_N, where slurmstepd is
 *
 * In version 2 the job's limits hold, for the step's lie on `user`. In version 1 only
 * hierarchies count in which slurmstepd is in the job, and cpuacct, in which only its
 * tasks are. Where slurmstepd is in no such group (proctrack/linuxproc or pgid without
 * task/cgroup): none.
 *
 * While a leaf is there Slurm cannot remove the job's directory, nor the step's
 * in version 2. It removes them after mpi_fini, or, what task/cgroup alone has
 * made, before it, and then does not come back. So the end of a leaf also removes what
 * is left empty above it, and those of the step in which the program was, under the lock
 * that Slurm takes for it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define LEAF_MOUNT "/sys/fs/cgroup" /* as in Slurm's cgroup.conf */
#define LEAF_DIRS_MAX 5             /* Slurm uses that many controllers */
#define LEAF_OWN_MAX 3
#define LEAF_SLURMS_MAX 4 /* Slurm comes back to the freezer */
#define LEAF_REMOVE_MS 2000

enum leaf_kind { LEAF_EXEMPT, LEAF_CONFINED };

/* A directory, and how many bytes of its path Slurm locks while it makes some there. */
struct leaf_dir {
	char *path;
	size_t locked;
};

struct leaf {
	char *dirs[LEAF_DIRS_MAX + 1]; /* to write cgroup.procs of; NULL ends */
	unsigned int own;              /* how many, from the first on, are made by us */
	size_t locked[LEAF_OWN_MAX];   /* bytes of dirs[i]: what Slurm locks */
	/*
	 * Directories of the step, which Slurm tries once to remove; a NULL path ends.
	 */
	struct leaf_dir slurms[LEAF_SLURMS_MAX + 1];
	bool copies_cpuset; /* dirs[0] gets the cpuset of `user`, which is beside it */
};

/*
 * Find out which. `groups` is the text of slurmstepd's /proc/self/cgroup, which
 * must be read while its step runs: at the end it leaves. `step` names the step
 * within its job ("0", "1+2"), without a slash. 0 or -ENOMEM, -ENAMETOOLONG;
 * release with leaf_free in any case.
 */
int leaf_find(struct leaf *leaf, enum leaf_kind kind, const char *groups,
	      const char *mount, const char *step);

/*
 * Make the directories of its own, with their cpuset; one that is left of an earlier
 * slurmstepd is as good. 0, or negative errno and nothing made.
 */
int leaf_make(const struct leaf *leaf);

/*
 * Kill what is in its own directories and remove them, and those of Slurm that
 * are empty. Call it when the program has ended, or must. Waits for the
 * kernel for up to `limit_ms`. 0, also when there is nothing; -EBUSY: not in
 * time; other negative errno. May be repeated.
 */
int leaf_remove(const struct leaf *leaf, unsigned int limit_ms);

void leaf_free(struct leaf *leaf);
