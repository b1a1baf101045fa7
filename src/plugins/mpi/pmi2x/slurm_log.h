/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Our lines in Slurm's log. */
#pragma once

#include "libutil/log.h"

/*
 * The hook that writes into Slurm's log. In srun an error or an info line
 * appears on its stderr; in slurmstepd an error line does, once the tasks have
 * their stderr (before that it is in slurmd's log only). Any thread.
 */
extern const struct log_hook slurm_log;
