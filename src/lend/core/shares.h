/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How lent cores are shared. Threads of a team are bound, each to one core, and a static loop
 * gives each the same work. So more cores are of use only if the largest number of threads on
 * a core becomes smaller: 16 threads on 8 cores gain nothing by 7 more, and all by 8.
 */
#ifndef PMI2X_LEND_CORE_SHARES_H
#define PMI2X_LEND_CORE_SHARES_H

#include <stdint.h>

struct share_rank {
	uint32_t cores;   /* of its own */
	uint32_t threads;
	uint32_t waited;
	uint32_t share;   /* result: lent cores for it */
};

/*
 * Divide `lent` cores among ranks that compute. They take turns, the one that has waited
 * least first; in each turn a rank gets what makes it faster, or nothing.
 */
void shares_divide(struct share_rank *ranks, uint32_t n, uint32_t lent);

#endif
