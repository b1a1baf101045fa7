/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * srun's side of the plugin: one object for all het components of a step. It
 * makes the secret, runs srun's server, and carries out spawns and aborts. The caller
 * holds a lock around srun_enter and srun_leave.
 */
#pragma once

#include "slurm_compat.h"

struct srun;

/*
 * A component of the step is about to be launched: the first makes *s, all add
 * to it, and write what their agents need into *env. Returns *s, or NULL with
 * an error line.
 */
struct srun *srun_enter(struct srun **s, const mpi_step_info_t *info,
			char ***env);

/*
 * A component has ended. The last one's call returns the object for srun_end and
 * sets *s to NULL; the others return NULL.
 */
struct srun *srun_leave(struct srun **s);

/*
 * Wait for what was spawned, end srun's server, free. Returns the exit code for srun
 * when a rank called abort, else 0. NULL is allowed. Outside of the lock.
 */
int srun_end(struct srun *s);
