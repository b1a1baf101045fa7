/* SPDX-License-Identifier: BSD-3-Clause */
/* Lent cores in turns to the ranks that compute. */
#include "lend/core/shares.h"

#include <stdbool.h>

/* Threads on the core that has most of them. */
static uint32_t load(uint32_t threads, uint32_t cores)
{
	return cores ? (threads + cores - 1) / cores : threads;
}

/* Cores beside `cores` that make the largest load smaller; 0: none do. */
static uint32_t step_of(uint32_t threads, uint32_t cores)
{
	uint32_t now = load(threads, cores);

	if (now <= 1)
		return 0;
	return load(threads, now - 1) - cores;
}

/* The rank that has waited least, of those that come behind `after`; n: there is none. */
static uint32_t next_of(const struct share_rank *r, uint32_t n, uint32_t after)
{
	uint32_t best = n;

	for (uint32_t i = 0; i < n; i++) {
		bool behind = after == n || r[i].waited > r[after].waited ||
			      (r[i].waited == r[after].waited && i > after);

		if (behind && (best == n || r[i].waited < r[best].waited))
			best = i;
	}
	return best;
}

void shares_divide(struct share_rank *ranks, uint32_t n, uint32_t lent)
{
	bool more = lent > 0;

	for (uint32_t i = 0; i < n; i++)
		ranks[i].share = 0;
	while (more) {
		more = false;
		for (uint32_t i = next_of(ranks, n, n); i < n; i = next_of(ranks, n, i)) {
			struct share_rank *r = &ranks[i];
			uint32_t step = step_of(r->threads, r->cores + r->share);

			if (!step || step > lent)
				continue;
			r->share += step;
			lent -= step;
			more = true;
		}
	}
}
