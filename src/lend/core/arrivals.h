/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Counts of the ranks of a node that have come to a collective. A rank that waits for others
 * there lends its cores until they have come, and then makes MPI's own call: a blocking
 * collective and a nonblocking one do not match, so MPI's call cannot be polled.
 *
 * Communicators with the same members share their counts. That costs time at most: a rank
 * makes MPI's call too early, and spins, or too late, which its caller limits.
 */
#ifndef PMI2X_LEND_CORE_ARRIVALS_H
#define PMI2X_LEND_CORE_ARRIVALS_H

#include "lend/core/ledger.h"

#define ARRIVALS_NONE UINT32_MAX

struct arrivals {
	lend_word *words; /* for each group: its key, then a count for each rank */
	uint32_t groups;
	uint32_t nranks;
};

size_t arrivals_size(uint32_t ranks, uint32_t groups);
/* View memory of arrivals_size bytes, which was zero in the beginning. */
void arrivals_view(struct arrivals *a, void *memory, uint32_t ranks, uint32_t groups);
/* A hash of the members' ranks in MPI_COMM_WORLD, which is not 0. */
uint32_t arrivals_key(const uint32_t *members, uint32_t n);
/* The group of a key, old or new; ARRIVALS_NONE: there is no room. */
uint32_t arrivals_group(struct arrivals *a, uint32_t key);
/* A rank has come once more; returns its number of calls, which the others must reach. */
uint32_t arrivals_enter(struct arrivals *a, uint32_t group, uint32_t rank);
/*
 * True: these ranks of the node have made as many calls. Ranks that have not joined the
 * ledger, and ranks that have gone, do not count.
 */
bool arrivals_complete(struct arrivals *a, struct ledger *l, uint32_t group, uint32_t calls,
		       const uint32_t *ranks, uint32_t n);

#endif
