/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The file of srun --multi-prog: which of its lines starts which rank. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/*
 * Sets the application of each of `ranks` ranks: that of its first line, as lines are
 * numbered from 0 without comments and blank ones. Text may be anything: what Slurm takes
 * for no range is none here. False when some rank has no line, or when lines name ranks
 * so much oftener than srun lets them that reading them was given up.
 */
bool multi_prog_read(uint32_t apps[], uint32_t ranks, const char *text);
