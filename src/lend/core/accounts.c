/* SPDX-License-Identifier: BSD-3-Clause */
/* Sums of core microseconds. */
#include "lend/core/accounts.h"

size_t accounts_size(uint32_t ranks)
{
	return ranks * sizeof(struct account);
}

void accounts_view(struct accounts *a, void *memory, uint32_t rank)
{
	*a = (struct accounts){ .ranks = memory, .rank = rank };
}

static void leave(struct accounts *a, struct holding *h, uint64_t now)
{
	struct account *owner = &a->ranks[h->owner];
	uint64_t resumed = atomic_load(&owner->resumed);

	atomic_fetch_add(&a->ranks[a->rank].used, now - h->since);
	atomic_fetch_add(&owner->lent, now - h->since);
	if (resumed > h->since && now > resumed + ACCOUNTS_LATE_US)
		atomic_fetch_add(&owner->late, now - resumed);
	h->since = 0;
}

void accounts_update(struct accounts *a, struct ledger *l, uint64_t now)
{
	for (uint32_t core = 0; core < l->ncores; core++) {
		struct ledger_core c = ledger_core_at(l, core);
		struct holding *h = &a->held[core];
		bool holds = c.holder == a->rank && c.owner != a->rank && c.owner < l->nranks;

		if (h->since && (!holds || c.owner != h->owner))
			leave(a, h, now);
		if (holds && !h->since)
			*h = (struct holding){ now, c.owner };
	}
}

void accounts_resume(struct accounts *a, uint64_t waited, uint32_t cores, uint64_t now)
{
	struct account *own = &a->ranks[a->rank];

	atomic_fetch_add(&own->idle, waited * cores);
	atomic_store(&own->resumed, now);
}
