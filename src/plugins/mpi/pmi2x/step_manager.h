/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * srun --async: srun ends at once, and the step manager, a slurmstepd on the first node
 * of the job that runs as root, launches the step.
 */
#pragma once

#include "slurm_compat.h"

/*
 * Write into *env what the agents of the step need. Nothing of it stays in this process,
 * and no thread. 0 or a negative errno with an error line.
 */
int step_manager_prelaunch(const mpi_step_info_t *info, char ***env);
