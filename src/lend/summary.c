/* SPDX-License-Identifier: BSD-3-Clause */
/* Core seconds that ranks were idle, lent and used, as a line of text. */
#include "lend/summary.h"

#include <stdio.h>

#define RANKS_SHOWN 16
#define NODE_SHOWN 64
#define US_PER_S 1e6

struct sums {
	double idle, lent, used, late;
};

static struct sums read_account(struct account *a)
{
	return (struct sums){ (double)atomic_load(&a->idle) / US_PER_S,
			      (double)atomic_load(&a->lent) / US_PER_S,
			      (double)atomic_load(&a->used) / US_PER_S,
			      (double)atomic_load(&a->late) / US_PER_S };
}

static void add(struct sums *all, const struct sums *s)
{
	all->idle += s->idle;
	all->lent += s->lent;
	all->used += s->used;
	all->late += s->late;
}

/* Any process of the user can write into the accounts, so the length is limited. */
static size_t print(char *out, size_t used, const char *who, const struct sums *s)
{
	int n = snprintf(out + used, LEND_SUMMARY_MAX - used, "%s %.2f/%.2f/%.2f/%.2f", who,
			 s->idle, s->lent, s->used, s->late);

	used += n > 0 ? (size_t)n : 0;
	return used < LEND_SUMMARY_MAX ? used : LEND_SUMMARY_MAX - 1;
}

void lend_summary(struct account *accounts, struct lend_table *table, uint32_t ranks,
		  const char *node, char out[LEND_SUMMARY_MAX])
{
	struct sums all = { 0, 0, 0, 0 }, s;
	char who[32];
	size_t used;

	for (uint32_t i = 0; i < ranks; i++) {
		s = read_account(&accounts[i]);
		add(&all, &s);
	}
	used = (size_t)snprintf(out, LEND_SUMMARY_MAX,
				"PMI2X_LEND: node %.*s: core seconds idle/lent/used/late:",
				NODE_SHOWN, node);
	used = print(out, used, " all", &all);
	for (uint32_t i = 0; i < ranks && i < RANKS_SHOWN; i++) {
		snprintf(who, sizeof(who), ", rank %u", table->entries[i].facts.rank);
		s = read_account(&accounts[i]);
		used = print(out, used, who, &s);
	}
	if (ranks > RANKS_SHOWN)
		snprintf(out + used, LEND_SUMMARY_MAX - used, ", and %u others",
			 ranks - RANKS_SHOWN);
}
