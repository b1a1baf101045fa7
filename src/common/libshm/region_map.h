/* SPDX-License-Identifier: BSD-3-Clause */
/* Address space for a results region, of which only what is used takes memory. */
#pragma once

#include <stddef.h>

/*
 * Map `size` bytes of a memory object, shared, with the protection of mmap. Also in
 * a process that locks all memory it will map (mlockall with MCL_FUTURE; Slurm's
 * LaunchParameters=slurmstepd_memlock_all) no page is made that nobody uses.
 * 0 or a negative errno. Any thread.
 */
int region_map(void **map, int fd, size_t size, int protection);
