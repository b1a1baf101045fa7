/* SPDX-License-Identifier: BSD-3-Clause */
/* Counts by group of ranks, in memory that the ranks share. */
#include "lend/core/arrivals.h"

#define FNV_START 2166136261u
#define FNV_PRIME 16777619u
#define BYTES 4

static lend_word *group_at(struct arrivals *a, uint32_t group)
{
	return a->words + (size_t)group * (a->nranks + 1);
}

size_t arrivals_size(uint32_t ranks, uint32_t groups)
{
	return (ranks + 1ul) * groups * sizeof(lend_word);
}

void arrivals_view(struct arrivals *a, void *memory, uint32_t ranks, uint32_t groups)
{
	a->words = memory;
	a->groups = groups;
	a->nranks = ranks;
}

uint32_t arrivals_key(const uint32_t *members, uint32_t n)
{
	uint32_t hash = FNV_START;

	for (uint32_t i = 0; i < n; i++)
		for (int byte = 0; byte < BYTES; byte++)
			hash = (hash ^ (members[i] >> 8 * byte & 0xff)) * FNV_PRIME;
	return hash ? hash : 1;
}

uint32_t arrivals_group(struct arrivals *a, uint32_t key)
{
	for (uint32_t i = 0; i < a->groups; i++) {
		uint32_t group = (key + i) % a->groups, found = 0;

		if (word_swap(group_at(a, group), &found, key) || found == key)
			return group;
	}
	return ARRIVALS_NONE;
}

uint32_t arrivals_enter(struct arrivals *a, uint32_t group, uint32_t rank)
{
	lend_word *count = group_at(a, group) + 1 + rank;
	uint32_t calls = word_load(count) + 1; /* no other rank writes it */

	word_store(count, calls);
	return calls;
}

bool arrivals_complete(struct arrivals *a, struct ledger *l, uint32_t group, uint32_t calls,
		       const uint32_t *ranks, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		uint32_t state = word_load(&l->ranks[ranks[i]].state);
		uint32_t behind = calls - word_load(group_at(a, group) + 1 + ranks[i]);

		/* A count that is ahead makes a difference that is negative. */
		if ((state == LEDGER_COMPUTES || state == LEDGER_WAITS) && behind &&
		    behind <= INT32_MAX)
			return false;
	}
	return true;
}
