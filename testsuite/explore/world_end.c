/* SPDX-License-Identifier: BSD-3-Clause */
/* Conditions that must hold when nothing can happen any more. */
#include "world_private.h"

/* From the n-th collective of the program on all have failed for this rank. */
static bool failed_from(const struct world *w, uint32_t rank, uint32_t n)
{
	uint32_t seq[COLL_KINDS] = { 0 };

	for (uint32_t i = 0; w->s->program[i]; i++) {
		enum coll_kind kind = kind_of(w->s->program[i]);

		if (is_of_all(w->s->program[i]) &&
		    bed_outcome(w->bed, kind, rank, seq[kind]++) != BED_FAILED && i >= n)
			return false;
	}
	return true;
}

/* Collectives that a rank enters after its first error fail for everybody. */
static void check_later_ones(const struct world *w)
{
	for (uint32_t a = 0; a < w->s->ranks; a++) {
		const struct rank *r = &w->ranks[a];

		if (w->bed->gone[a] || !r->failed_at)
			continue;
		for (uint32_t b = 0; b < w->s->ranks; b++)
			bed_must(w->bed, w->bed->gone[b] ||
				 failed_from(w, b, r->failed_at - 1u),
				 "a later collective succeeded somewhere");
	}
}

static bool is_whole(const struct world *w, const struct bed_group *g)
{
	for (uint32_t i = 0; i < g->count; i++)
		if (w->bed->gone[g->ranks[i]])
			return false;
	return !w->broken_off;
}

/* From the n-th of a subset on all have failed for each member. */
static bool subset_failed_from(const struct world *w, const struct bed_group *g,
			       uint32_t n)
{
	for (uint32_t i = 0; i < g->count; i++)
		for (uint32_t s = n; s < g->entered[i]; s++)
			if (!w->bed->gone[g->ranks[i]] && g->outcome[i][s] != BED_FAILED)
				return false;
	return true;
}

/* The death of a rank that is no member affects none; a failure is for good. */
static void check_subset(const struct world *w, uint32_t subset)
{
	const struct bed_group *g = &w->bed->groups[subset];

	for (uint32_t i = 0; i < g->count; i++) {
		uint32_t failed_at = w->ranks[g->ranks[i]].subset_failed_at[subset];

		if (!failed_at || w->bed->gone[g->ranks[i]])
			continue;
		bed_must(w->bed, !is_whole(w, g), "a subset failed that has lost nobody");
		bed_must(w->bed, subset_failed_from(w, g, failed_at - 1),
			 "a later collective of a subset succeeded somewhere");
	}
}

void world_check_end(const struct world *w)
{
	for (uint32_t r = 0; r < w->s->ranks; r++) {
		const struct rank *rank = &w->ranks[r];

		bed_must(w->bed, w->bed->gone[r] || !unfinished(w, r),
			 "a rank waits and nothing is under way");
		bed_must(w->bed, w->bed->gone[r] || !w->s->program[rank->next],
			 "a rank cannot go on");
		bed_must(w->bed, w->fault || !rank->failed_at,
			 "a collective failed without a fault");
	}
	bed_check_settled(w->bed);
	check_later_ones(w);
	for (uint32_t g = 0; g < w->bed->ngroups; g++)
		check_subset(w, g);
}
