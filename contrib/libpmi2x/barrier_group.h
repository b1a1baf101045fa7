/* SPDX-License-Identifier: BSD-3-Clause */
/* Barriers of some of the job's ranks, as PMI-1 1.2 has them. */
#pragma once

struct job;

/*
 * Wait until all ranks of the group have called this with the same group and tag.
 * `ranks` is a list of `count` ranks, this one among them, or one of pmi.h's
 * PMI_GROUP_*; `tag` may be NULL. Afterwards all members can get the values that each has
 * put before. 0; -EINVAL: no such group; -ENOTSUP: the server knows no groups; or an
 * error of the wire. Any thread; threads that are in it at once need different tags.
 */
int barrier_group(struct job *job, const int *ranks, int count,
		  const char *tag);
