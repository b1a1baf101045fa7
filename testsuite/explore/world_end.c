/* SPDX-License-Identifier: BSD-3-Clause */
/* Conditions that must hold when nothing can happen any more. */
#include "world_private.h"

/* From the n-th collective of the program on all have failed for this rank. */
static bool failed_from(const struct world *w, const struct rank *r, uint32_t n)
{
	uint32_t seq[COLL_KINDS] = { 0 };

	for (uint32_t i = 0; w->s->program[i]; i++) {
		enum coll_kind kind = kind_of(w->s->program[i]);
		uint8_t outcome = FAILED;

		if (is_of_all(w->s->program[i]))
			outcome = r->outcome[kind][seq[kind]++];
		if (i >= n && outcome != FAILED)
			return false;
	}
	return true;
}

/* Collectives that a rank enters after its first error fail for everybody. */
static void check_later_ones(const struct world *w)
{
	for (uint32_t a = 0; a < w->s->ranks; a++) {
		const struct rank *r = &w->ranks[a];

		if (r->gone || !r->failed_at)
			continue;
		for (uint32_t b = 0; b < w->s->ranks; b++)
			must(w, w->ranks[b].gone ||
				failed_from(w, &w->ranks[b], r->failed_at - 1u),
			     "a later collective succeeded somewhere");
	}
}

static bool is_whole(const struct world *w, uint32_t subset)
{
	for (uint32_t r = 0; r < w->s->ranks; r++)
		if (is_member(w, subset, r) && w->ranks[r].gone)
			return false;
	return !w->broken_off;
}

/* From the n-th of a subset on all have failed for each member. */
static bool subset_failed_from(const struct world *w, uint32_t subset,
			       uint32_t n)
{
	for (uint32_t r = 0; r < w->s->ranks; r++)
		for (uint32_t i = n; i < w->ranks[r].in[subset].entered; i++)
			if (!w->ranks[r].gone &&
			    w->ranks[r].in[subset].outcome[i] != FAILED)
				return false;
	return true;
}

/* The death of a rank that is no member affects none; a failure is for good. */
static void check_subset(const struct world *w, uint32_t subset)
{
	for (uint32_t r = 0; r < w->s->ranks; r++) {
		uint32_t failed_at = w->ranks[r].in[subset].failed_at;

		if (!failed_at || w->ranks[r].gone)
			continue;
		must(w, !is_whole(w, subset),
		     "a subset failed that has lost nobody");
		must(w, subset_failed_from(w, subset, failed_at - 1),
		     "a later collective of a subset succeeded somewhere");
	}
}

void world_check_end(const struct world *w)
{
	for (uint32_t r = 0; r < w->s->ranks; r++) {
		const struct rank *rank = &w->ranks[r];

		must(w, rank->gone || unfinished(w, rank) == 0,
		     "a rank waits and nothing is under way");
		must(w, rank->gone || !w->s->program[rank->next],
		     "a rank cannot go on");
		must(w, w->fault || !rank->failed_at,
		     "a collective failed without a fault");
	}
	for (uint32_t p = 0; p < w->s->nodes; p++)
		must(w, !alive(w, p) || !coll_pending(w->nodes[p].coll),
		     "a node believes that something is pending");
	for (uint32_t p = 0; p < w->s->nodes; p++)
		must(w, !alive(w, p) || !coll_fetches_pending(w->nodes[p].coll),
		     "a node believes that a fetch is under way");
	check_later_ones(w);
	for (uint32_t i = 0; i < SUBSETS; i++)
		check_subset(w, i);
}
