/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Requests of the user to srun, by its command line or by a variable. From prelaunch
 * on; nothing is asked for in programs other than srun.
 */
#pragma once

#include <stdbool.h>

#include "launch_env.h"
#include "supervisor/preload.h"

/*
 * --kill-on-bad-exit of any component of the step; not what slurm.conf has, where a 0
 * cannot be told from nothing.
 */
enum launch_kill srun_kill_on_bad_exit(void);
/* --no-kill of any component of the step. */
bool srun_no_kill(void);
/* The program of a component that needs an MPI library, if one does: supervisor/mpi_program.h. */
enum launch_program srun_program(void);
/* The path of a component's program that ignores LD_PRELOAD, and why; NULL: there is none. */
const char *srun_program_without_preload(enum preload *why);
