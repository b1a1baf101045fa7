/* SPDX-License-Identifier: GPL-2.0-or-later */
/* States of srun's tasks, as srun has heard of them. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/*
 * True: the slurmstepd of this task (counted over all het components) has answered the
 * launch with the task's pid; the task may have exited since. False also where srun has no
 * table. For any thread of srun, from prelaunch to client_fini.
 */
bool task_is_started(uint32_t task);
/* True: all tasks have started, or srun has no table. */
bool all_tasks_are_started(void);
