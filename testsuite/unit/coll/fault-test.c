/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Collectives with faults: whatever goes, every collective that anybody has
 * entered ends at every rank; what could complete does, with the right contents.
 */
#include "unit.h"

#include <errno.h>

#include "bed.h"

#define LIMIT 8 /* collectives of each kind that a rank wants to enter */

/* ---- random histories ---- */

struct history {
	uint32_t rank_faults; /* still to happen */
	uint32_t link_faults;
	bool links_broke;
	uint32_t bound[COLL_KINDS]; /* collectives that lost ranks had entered */
};

static void lose_rank(struct bed *bed, struct history *h)
{
	uint32_t rank = bed_random(bed, bed->nranks);

	if (bed->gone[rank])
		return;
	for (int kind = 0; kind < COLL_KINDS; kind++) {
		uint32_t entered = bed_entered(bed, kind, rank);

		if (entered < h->bound[kind])
			h->bound[kind] = entered;
	}
	h->rank_faults--;
	bed_rank_gone(bed, rank);
}

static void break_link(struct bed *bed, struct history *h)
{
	uint32_t position = bed_random(bed, bed->nnodes);

	h->link_faults--;
	if (position == 0 || bed->links[2 * position].dead)
		return;
	h->links_broke = true;
	bed_break(bed, position);
}

static void detect_one(struct bed *bed)
{
	struct bed_link *link =
		&bed->links[2 + bed_random(bed, 2 * bed->nnodes - 2)];

	if (link->dead && !link->detected)
		bed_detect(bed, link);
}

static void enter_one(struct bed *bed)
{
	uint32_t rank = bed_random(bed, bed->nranks);
	enum coll_kind kind = bed_random(bed, COLL_KINDS);

	if (bed->gone[rank])
		assert_int_equal(bed_enter(bed, kind, rank), -ESHUTDOWN);
	else if (bed_entered(bed, kind, rank) < LIMIT)
		assert_int_equal(bed_enter(bed, kind, rank), 0);
}

static void step(struct bed *bed, struct history *h)
{
	uint32_t dice = bed_random(bed, 200);

	if (dice == 0 && h->rank_faults)
		lose_rank(bed, h);
	else if (dice == 1 && h->link_faults)
		break_link(bed, h);
	else if (dice < 10 && bed->nnodes > 1)
		detect_one(bed);
	else if (dice < 80)
		enter_one(bed);
	else
		bed_deliver(bed);
}

/* Everything that can still happen does. */
static void run_out(struct bed *bed)
{
	for (uint32_t i = 2; i < 2 * bed->nnodes; i++)
		if (bed->links[i].dead && !bed->links[i].detected)
			bed_detect(bed, &bed->links[i]);
	for (uint32_t r = 0; r < bed->nranks; r++)
		for (int kind = 0; kind < COLL_KINDS && !bed->gone[r];
		     kind++)
			while (bed_entered(bed, kind, r) < LIMIT)
				bed_enter(bed, kind, r);
	bed_deliver_all(bed);
}

/* A rank sees completions, then failures, never one after the other again. */
static void check_rank(const struct bed *bed, const struct history *h,
		       enum coll_kind kind, uint32_t rank)
{
	for (uint32_t s = 0; s < bed_entered(bed, kind, rank); s++) {
		enum bed_outcome outcome = bed_outcome(bed, kind, rank, s);

		if (s > 0 && bed_outcome(bed, kind, rank, s - 1) == BED_FAILED)
			assert_int_equal(outcome, BED_FAILED);
		if (s >= h->bound[kind])
			assert_int_equal(outcome, BED_FAILED);
		else if (!h->links_broke)
			assert_int_equal(outcome, BED_DONE);
	}
}

static void one_history(uint64_t seed, uint32_t rank_faults,
			uint32_t link_faults)
{
	uint32_t nnodes = 1 + seed * 7 % 30;
	struct bed *bed = new_bed(nnodes, nnodes + seed * 11 % 40,
				  2 + seed % 5, seed);
	struct history h = {
		.rank_faults = rank_faults, .link_faults = link_faults,
		.bound = { COLL_NEVER, COLL_NEVER, COLL_NEVER, COLL_NEVER },
	};
	uint32_t steps = bed_random(bed, 20 * bed->nranks * LIMIT);

	while (steps--)
		step(bed, &h);
	run_out(bed);
	bed_check_settled(bed);
	for (uint32_t r = 0; r < bed->nranks; r++)
		for (int kind = 0; kind < COLL_KINDS; kind++)
			check_rank(bed, &h, kind, r);
	unit_end(bed);
}

TEST(ends_everything_when_ranks_go)
{
	for (uint64_t seed = 1; seed <= 150; seed++)
		one_history(seed, 1 + seed % 4, 0);
}

TEST(ends_everything_when_links_break)
{
	for (uint64_t seed = 1; seed <= 150; seed++)
		one_history(seed, 0, 1 + seed % 3);
}

TEST(ends_everything_when_both_happen)
{
	for (uint64_t seed = 1; seed <= 150; seed++)
		one_history(seed, seed % 5, 1 + seed % 3);
}

/* ---- single faults ---- */

static void enter_all(struct bed *bed, enum coll_kind kind, uint32_t but)
{
	for (uint32_t r = 0; r < bed->nranks; r++)
		if (r != but && !bed->gone[r])
			bed_enter(bed, kind, r);
}

BED_TEST(everybody_learns_once_who_is_gone, 15, 15)
{
	enter_all(bed, COLL_FENCE, COLL_NEVER);
	enter_all(bed, COLL_FENCE, 9);
	bed_rank_gone(bed, 9);
	bed_rank_gone(bed, 9);
	bed_deliver_all(bed);
	bed_check_settled(bed);
	assert_int_equal(bed->record->faults_sent, bed->nnodes - 1);
	for (uint32_t r = 0; r < bed->nranks; r++)
		assert_int_equal(bed_outcome(bed, COLL_FENCE, r, 0), BED_DONE);
	assert_int_equal(bed_outcome(bed, COLL_FENCE, 14, 1), BED_FAILED);
	assert_string_equal(bed->record->reason, "rank 9 is gone");
}

BED_TEST(later_entrants_fail_at_once_with_the_reason, 4, 8)
{
	bed_enter(bed, COLL_FENCE, 6);
	bed_rank_gone(bed, 0);
	bed_deliver_all(bed);
	assert_int_equal(bed_outcome(bed, COLL_FENCE, 6, 0), BED_FAILED);
	for (uint32_t s = 0; s < 3; s++)
		for (int kind = 0; kind < COLL_KINDS; kind++) {
			bed->record->reason[0] = '\0';
			assert_int_equal(bed_enter(bed, kind, 7), 0);
			assert_int_equal(bed_outcome(bed, kind, 7, s),
					 BED_FAILED);
			assert_string_equal(bed->record->reason, "rank 0 is gone");
		}
}

BED_TEST(entering_and_leaving_does_not_spoil_what_was_entered, 3, 6)
{
	bed_enter(bed, COLL_GATHER, 5);
	bed_rank_gone(bed, 5);
	bed_deliver_all(bed);
	enter_all(bed, COLL_GATHER, COLL_NEVER);
	bed_deliver_all(bed);
	bed_check_settled(bed);
	for (uint32_t r = 0; r < bed->nranks; r++)
		assert_int_equal(bed_outcome(bed, COLL_GATHER, r, 0), BED_DONE);
}

/* All ranks have entered the same: they go in any order, messages overtake. */
TEST(the_end_of_a_step_costs_a_link_one_fault_each_way)
{
	for (uint64_t seed = 1; seed <= 50; seed++) {
		struct bed *bed = new_bed(20, 60, 3, seed);

		enter_all(bed, COLL_FENCE, COLL_NEVER);
		enter_all(bed, COLL_RING, COLL_NEVER);
		bed_deliver_all(bed);
		for (uint32_t r = 0; r < bed->nranks; r++) {
			bed_rank_gone(bed, (r * 7 + seed) % bed->nranks);
			for (uint32_t i = bed_random(bed, 4); i > 0; i--)
				bed_deliver(bed);
		}
		bed_deliver_all(bed);
		bed_check_settled(bed);
		assert_in_range(bed->record->faults_sent, bed->nnodes - 1,
				2 * (bed->nnodes - 1));
		assert_string_equal(bed->record->reason, "");
		unit_end(bed);
	}
}

BED_TEST(lost_rank_is_missed_when_a_neighbour_enters, 3, 6)
{
	bed_rank_gone(bed, 2);
	bed_enter(bed, COLL_FENCE, 3);
	bed_deliver_all(bed);
	bed_check_settled(bed);
	assert_string_equal(bed->record->reason, "rank 2 is gone");
	bed_enter(bed, COLL_RING, 0);
	assert_int_equal(bed_outcome(bed, COLL_RING, 0, 0), BED_FAILED);
}

BED_TEST(lost_rank_is_missed_when_others_wait_already, 3, 6)
{
	bed_enter(bed, COLL_FENCE, 3);
	bed_deliver_all(bed);
	assert_int_equal(bed_outcome(bed, COLL_FENCE, 3, 0), BED_WAITING);
	bed_rank_gone(bed, 2);
	assert_int_equal(bed_outcome(bed, COLL_FENCE, 3, 0), BED_FAILED);
}

BED_TEST(lost_rank_is_missed_when_a_subtree_enters, 3, 4) /* 0-1, 2, 3 */
{
	bed_rank_gone(bed, 0);
	bed_enter(bed, COLL_GATHER, 3);
	bed_deliver_all(bed);
	assert_int_equal(bed_outcome(bed, COLL_GATHER, 3, 0), BED_FAILED);
	assert_string_equal(bed->record->reason, "rank 0 is gone");
}

/* Rank 5 shares the node with rank 4 and neither enters nor ends. */
BED_TEST(lost_rank_fails_fences_of_other_nodes_at_once, 3, 6)
{
	bed_enter(bed, COLL_FENCE, 0);
	bed_rank_gone(bed, 4);
	bed_deliver_all(bed);
	bed_check_settled(bed);
	assert_int_equal(bed_outcome(bed, COLL_FENCE, 0, 0), BED_FAILED);
	assert_string_equal(bed->record->reason, "rank 4 is gone");
}

BED_TEST(each_failure_has_its_own_reason, 3, 6)
{
	bed_enter(bed, COLL_GATHER, 2);
	bed_rank_gone(bed, 2); /* gather from 1, fence from 0 */
	bed_enter(bed, COLL_FENCE, 4);
	bed_rank_gone(bed, 4); /* gather from 0, fence from 1 */
	bed_deliver_all(bed);
	bed_enter(bed, COLL_FENCE, 0);
	assert_string_equal(bed->record->reason, "rank 2 is gone");
	bed_enter(bed, COLL_GATHER, 0);
	assert_string_equal(bed->record->reason, "rank 4 is gone");
}

BED_TEST(the_first_of_equal_reasons_stays, 3, 6)
{
	bed_rank_gone(bed, 2);
	bed_rank_gone(bed, 3);
	bed_deliver_all(bed);
	bed_detect(bed, &bed->links[2]); /* the node of both leaves as well */
	bed_enter(bed, COLL_FENCE, 0);
	assert_string_equal(bed->record->reason, "rank 2 is gone");
}

/* ---- links ---- */

BED_TEST(entries_of_a_lost_child_still_count, 3, 3)
{
	bed_enter(bed, COLL_FENCE, 2);
	bed_deliver_all(bed);
	bed_detect(bed, &bed->links[2 * 2]); /* node 0: node 2 is gone */
	bed_detect(bed, &bed->links[2 * 2]);
	for (uint32_t s = 0; s < 2; s++) {
		bed_enter(bed, COLL_FENCE, 0);
		bed_enter(bed, COLL_FENCE, 1);
	}
	bed_deliver_all(bed);
	for (uint32_t r = 0; r < 2; r++) {
		assert_int_equal(bed_outcome(bed, COLL_FENCE, r, 0), BED_DONE);
		assert_int_equal(bed_outcome(bed, COLL_FENCE, r, 1),
				 BED_FAILED);
	}
	assert_null(bed->links[2 * 2 + 1].head); /* nothing goes to node 2 */
}

BED_TEST(a_lost_link_carries_nothing_any_more, 3, 3)
{
	struct coll_msg up = { .type = COLL_MSG_UP };

	bed_detect(bed, &bed->links[2 * 2]);
	coll_link_up(bed->nodes[0].coll, 2);
	assert_int_equal(bed_inject(bed, 2, 0, &up, "x"), -EPROTO);
	assert_null(bed->links[2 * 2 + 1].head);
	coll_link_lost(bed->nodes[0].coll, 77, false, "no neighbour");
}

BED_TEST(a_subtree_without_parent_fails_what_it_waits_for, 7, 7) /* 1 has children 2 and 3 */
{
	enter_all(bed, COLL_FENCE, COLL_NEVER);
	bed_deliver_all(bed);
	enter_all(bed, COLL_FENCE, 0);
	bed_deliver_all(bed);
	bed_detect(bed, &bed->links[2 * 1 + 1]);
	bed_deliver_all(bed);
	for (uint32_t r = 1; r <= 3; r++) {
		assert_int_equal(bed_outcome(bed, COLL_FENCE, r, 0), BED_DONE);
		assert_int_equal(bed_outcome(bed, COLL_FENCE, r, 1),
				 BED_FAILED);
	}
	bed_enter(bed, COLL_FENCE, 0); /* everybody has contributed to it */
	bed_deliver_all(bed);
	assert_int_equal(bed_outcome(bed, COLL_FENCE, 5, 1), BED_DONE);
}

BED_TEST(a_result_that_comes_after_the_fault_is_dropped, 2, 2)
{
	struct coll_msg down = { .type = COLL_MSG_DOWN };
	struct coll_msg fault = { .type = COLL_MSG_FAULT };

	bed_enter(bed, COLL_FENCE, 1);
	strcpy(fault.fault.reason, "why not");
	assert_int_equal(bed_inject(bed, 0, 1, &fault, NULL), 0);
	assert_int_equal(bed_outcome(bed, COLL_FENCE, 1, 0), BED_FAILED);
	assert_int_equal(bed_inject(bed, 0, 1, &down, "x"), 0);
	assert_int_equal(bed_outcome(bed, COLL_FENCE, 1, 0), BED_FAILED);
}
