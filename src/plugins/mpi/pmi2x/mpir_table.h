/* SPDX-License-Identifier: GPL-2.0-or-later */
/* States of srun's tasks, as srun has heard of them. */
#ifndef PMI2X_MPIR_TABLE_H
#define PMI2X_MPIR_TABLE_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Has the slurmstepd of this task (of all het components) answered the launch
 * with its pid? The task may have ended since. False also where srun does not
 * say. Any thread of srun, from prelaunch to client_fini.
 */
bool task_is_started(uint32_t task);
/* Have all tasks started? True where srun does not say. */
bool all_tasks_are_started(void);

#endif
