/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Files in slurmd's spool directory for a step: the directory is the same for all ranks
 * of the node, also where each job has a /tmp of its own, and only root may write
 * there. A container may not have it.
 */
#pragma once

#include <stdint.h>

/* "SPOOL/PREFIX<job>.<step>.<node id>SUFFIX", for free(); NULL, after a line in the
   log: clients cannot read such a path. */
char *spool_path(const char *prefix, const char *node, uint32_t node_id,
		 const char *jobid, const char *suffix);
