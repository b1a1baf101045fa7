/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The path at which slurmstepd puts the node's topology, in slurmd's spool directory
 * (spool.h).
 */
#pragma once

#include <stdint.h>

/* For free(); NULL, after a line in the log: there can be none. */
char *topology_file_path(const char *node, uint32_t node_id,
			 const char *jobid);
/*
 * If a file is there under this path (NULL: none), remove those beside it that a killed
 * slurmstepd has left.
 */
void topology_file_remove_stale(const char *path);
/* Both variables of topology_env.h, in Slurm's array. */
void topology_env_set(char ***env, const char *path);
