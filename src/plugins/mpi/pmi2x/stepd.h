/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * slurmstepd's side of the plugin: from Slurm's record of a step to a running
 * agent, and from the agent to its ranks.
 */
#pragma once

#include "conf.h"
#include "slurm_compat.h"

struct stepd;

/*
 * Make the agent of this node, which then listens. `env` is the environment that tasks will get;
 * what srun put there for us is taken out. Slurm's messages of this moment do
 * not reach the user, so a failure is kept and told by stepd_task, whose do.
 * NULL only when there is no memory.
 */
struct stepd *stepd_start(const stepd_step_rec_t *step, char ***env,
			  const struct conf *conf);

/*
 * This process has forked: start the supervisor's thread, if this is slurmstepd and the
 * first time. slurmstepd changes its user before it forks tasks, which interrupts all
 * threads that exist; none is needed before the first task.
 */
void stepd_forked(struct stepd *s);

/*
 * In a child that becomes a task, as the user: connect the rank and describe
 * the connection in *env. 0 or a negative errno with an error line.
 */
int stepd_task(const struct stepd *s, const mpi_task_info_t *task, char ***env);

/* Drain and end the agent; free everything. NULL is allowed. */
void stepd_stop(struct stepd *s);
