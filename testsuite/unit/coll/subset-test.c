/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Collectives of some ranks: they end at every member with what all gave,
 * over those links only that they need, also when others of the same name
 * follow at once; and whatever goes, what needs it fails and nothing else does.
 */
#include "unit.h"

#include <errno.h>

#include "bed.h"
#include "libcoll/coll_private.h"

static void check_settled(void *bed)
{
	bed_check_settled(bed);
}

/* At the end of the test nothing is under way. */
#define SETTLED_TEST(name, nodes, ranks) \
	TEST_ON(name, struct bed *bed, unit_at_end(check_settled, new_bed(nodes, ranks, 2, 0)))

/* ---- without faults ---- */

static uint32_t subset_messages(const struct bed *bed)
{
	return bed->record->sent[COLL_MSG_SUB_UP] + bed->record->sent[COLL_MSG_SUB_DOWN] +
	       bed->record->sent[COLL_MSG_SUB_OPEN] + bed->record->sent[COLL_MSG_SUB_FAIL];
}

static void all_enter(struct bed *bed, uint32_t group)
{
	for (uint32_t i = 0; i < bed->groups[group].count; i++)
		assert_int_equal(bed_enter_group(bed, group, i), 0);
}

static void assert_all(const struct bed *bed, uint32_t group, uint32_t seq,
		       enum bed_outcome outcome)
{
	for (uint32_t i = 0; i < bed->groups[group].count; i++)
		assert_int_equal(bed_group_outcome(bed, group, i, seq),
				 outcome);
}

SETTLED_TEST(costs_what_its_paths_cost, 7, 21) /* 0: 1 (2 3), 4 (5 6) */
{
	static const uint32_t leaders[] = { 0, 3, 6, 9, 12, 15, 18 };
	static const uint32_t node[] = { 3, 4, 5 }, leaves[] = { 9, 13 };
	static const uint32_t cousins[] = { 6, 9 }, far[] = { 7, 8, 19 };
	static const struct {
		const uint32_t *ranks;
		uint32_t count, links;
	} groups[] = {
		{ leaders, 7, 6 }, { node, 3, 0 }, { node, 1, 0 },
		{ leaves, 2, 3 }, /* nodes 3 and 4, by 1 and 0 */
		{ cousins, 2, 2 },   /* nodes 2 and 3, by 1 */
		{ far, 3, 4 },       /* nodes 2 and 6, by 1, 0 and 4 */
	};

	for (size_t g = 0; g < sizeof(groups) / sizeof(groups[0]); g++) {
		uint32_t before = subset_messages(bed);

		bed_group(bed, groups[g].ranks, groups[g].count);
		all_enter(bed, g);
		bed_deliver_all(bed);
		assert_all(bed, g, 0, BED_DONE);
		assert_int_equal(subset_messages(bed) - before,
				 2 * groups[g].links);
	}
}

/* Members that enter again as soon as they may, or earlier by `ahead`. */
static void run_groups(struct bed *bed, uint32_t ahead, uint32_t rounds)
{
	uint32_t left = 0;

	for (uint32_t g = 0; g < bed->ngroups; g++)
		left += bed->groups[g].count * rounds;
	while (left) {
		uint32_t g = bed_random(bed, bed->ngroups);
		uint32_t i = bed_random(bed, bed->groups[g].count);
		uint32_t n = bed->groups[g].entered[i];

		if (n < rounds && (n < ahead || bed_group_outcome(bed, g, i,
						n - ahead) == BED_DONE)) {
			assert_int_equal(bed_enter_group(bed, g, i), 0);
			left--;
		}
		bed_deliver(bed);
	}
	bed_deliver_all(bed);
}

TEST(ends_in_any_order)
{
	for (uint64_t seed = 0; seed < 200; seed++) {
		uint32_t nnodes = 1 + seed * 7 % 40;
		struct bed *bed = new_bed(nnodes, nnodes + seed * 11 % 60,
					  2 + seed % 5, seed);

		for (uint32_t g = 0; g < 6; g++)
			bed_group_any(bed, 1 + seed % 7 * g);
		run_groups(bed, 1 + seed % 3, 6);
		for (uint32_t g = 0; g < bed->ngroups; g++)
			for (uint32_t n = 0; n < 6; n++)
				assert_all(bed, g, n, BED_DONE);
		assert_int_equal(bed->record->sent[COLL_MSG_SUB_OPEN], 0);
		bed_check_settled(bed);
		unit_end(bed);
	}
}

/* Subsets of the same members: another operation, another tag. */
SETTLED_TEST(names_are_different, 2, 2)
{
	static const uint32_t both[] = { 0, 1 };

	bed_group(bed, both, 2);
	bed_group(bed, both, 2);
	assert_int_equal(bed_enter_group(bed, 0, 0), 0);
	assert_int_equal(bed_enter_group(bed, 1, 1), 0);
	bed_deliver_all(bed);
	assert_int_equal(bed_group_outcome(bed, 0, 0, 0), BED_WAITING);
	assert_int_equal(bed_group_outcome(bed, 1, 1, 0), BED_WAITING);
	assert_int_equal(bed_enter_group(bed, 0, 1), 0);
	assert_int_equal(bed_enter_group(bed, 1, 0), 0);
	bed_deliver_all(bed);
}

BED_TEST(a_long_list_is_small, 3, 16384)
{
	uint32_t *ranks = calloc(16384, sizeof(*ranks));

	for (uint32_t r = 0; r < 16384; r++)
		ranks[r] = r;
	bed_group(bed, ranks, 16384);
	for (uint32_t r = 0; r < 16384; r += 64)
		ranks[r / 64] = r;
	bed_group(bed, ranks, 256);
	all_enter(bed, 1);
	bed_deliver_all(bed);
	assert_all(bed, 1, 0, BED_DONE);
	assert_int_equal(bed->record->sent[COLL_MSG_SUB_UP], 2);
	assert_int_equal(bed->record->sent[COLL_MSG_SUB_DOWN], 2);
	free(ranks);
}

/* ---- what may not enter ---- */

static int try_enter(struct bed *bed, uint32_t rank,
		     const struct coll_subset_name *name)
{
	uint32_t slot;
	struct coll *c = bed_coll_of(bed, rank, &slot);

	return coll_enter_subset(c, slot, name, NULL, 0);
}

SETTLED_TEST(refuses_what_is_no_group, 2, 4)
{
	static const uint32_t doubled[] = { 1, 1 }, down[] = { 2, 1 };
	static const uint32_t foreign[] = { 1, 4 }, others[] = { 0, 2 };
	static const char tag[COLL_SUBSET_TAG_MAX + 1];
	static const uint32_t one[] = { 1 };
	const struct coll_subset_name bad[] = {
		{ .ranks = doubled, .count = 2 },
		{ .ranks = down, .count = 2 },
		{ .ranks = foreign, .count = 2 },
		{ .ranks = others, .count = 2 },
		{ .ranks = one, .count = 0 },
		{ .ranks = one, .count = 1, .tag = tag,
		  .tag_len = sizeof(tag) },
	};
	const struct coll_subset_name good = { .ranks = one, .count = 1 };

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(try_enter(bed, 1, &bad[i]), -EINVAL);
	assert_int_equal(coll_enter_subset(bed->nodes[0].coll, 2, &good, NULL,
					   0), -EINVAL);
	bed_group(bed, one, 1);
	assert_int_equal(bed_enter_group(bed, 0, 0), 0);
	assert_all(bed, 0, 0, BED_DONE);
	bed_rank_gone(bed, 1);
	assert_int_equal(bed_enter_group(bed, 0, 0), -ESHUTDOWN);
}

SETTLED_TEST(refuses_to_run_away, 2, 2)
{
	static const uint32_t both[] = { 0, 1 };

	bed_group(bed, both, 2);
	for (uint32_t n = 0; n < COLL_SUBSET_AHEAD_MAX; n++)
		assert_int_equal(bed_enter_group(bed, 0, 1), 0);
	assert_int_equal(bed_enter_group(bed, 0, 1), -EAGAIN);
	bed_deliver_all(bed);
	assert_int_equal(coll_pending(bed->nodes[1].coll),
			 COLL_SUBSET_AHEAD_MAX);
	for (uint32_t n = 0; n < COLL_SUBSET_AHEAD_MAX; n++)
		assert_int_equal(bed_enter_group(bed, 0, 0), 0);
	bed_deliver_all(bed);
	assert_int_equal(bed_enter_group(bed, 0, 1), 0);
	assert_int_equal(bed_enter_group(bed, 0, 0), 0);
	bed_deliver_all(bed);
}

/* Two ranks of one node and one of another: their next collective succeeds. */
BED_TEST(more_than_a_result_may_have_fails_alone, 2, 4)
{
	static const uint32_t three[] = { 0, 2, 3 };
	const uint32_t group = bed_group(bed, three, 3);
	const struct coll_subset_name name = {
		.op = 1, .tag = &group, .tag_len = sizeof(group),
		.ranks = three, .count = 3,
	};
	struct payload *half = payload_virtual(COLL_SUBSET_BYTES_MAX / 2 + 1);

	assert_int_equal(bed_enter_group(bed, group, 0), 0);
	for (uint32_t i = 1; i < 3; i++) {
		bed->groups[group].outcome[i][0] = BED_WAITING;
		bed->groups[group].entered[i] = 1;
		assert_int_equal(coll_enter_subset(bed->nodes[1].coll, i - 1,
						   &name, half, 0), 0);
	}
	bed_deliver_all(bed);
	assert_all(bed, group, 0, BED_FAILED);
	assert_non_null(strstr(bed->record->reason, "256 MiB"));
	all_enter(bed, group);
	bed_deliver_all(bed);
	assert_all(bed, group, 1, BED_DONE);
	bed_check_settled(bed);
	unit_end(bed);
	payload_unref(half);
}

/* ---- faults ---- */

SETTLED_TEST(group_barrier_of_a_lost_rank_fails, 7, 7)
{
	static const uint32_t with[] = { 1, 4, 6 }, without[] = { 0, 4, 6 };

	bed_group(bed, with, 3);
	bed_group(bed, without, 3);
	/* Entered before, and what another one has not entered yet. */
	assert_int_equal(bed_enter_group(bed, 0, 0), 0);
	assert_int_equal(bed_enter_group(bed, 0, 1), 0);
	bed_deliver_all(bed);
	bed_rank_gone(bed, 6);
	bed_deliver_all(bed);
	assert_int_equal(bed_group_outcome(bed, 0, 0, 0), BED_FAILED);
	assert_int_equal(bed_group_outcome(bed, 0, 1, 0), BED_FAILED);
	assert_string_equal(bed->record->reason, "rank 6 is gone");
	/* Entered later. */
	bed->record->reason[0] = '\0';
	assert_int_equal(bed_enter_group(bed, 1, 0), 0);
	bed_deliver_all(bed);
	assert_int_equal(bed_group_outcome(bed, 1, 0, 0), BED_FAILED);
	assert_string_equal(bed->record->reason, "rank 6 is gone");
}

/* A member waits below for one that lives; it hears all the same. */
SETTLED_TEST(member_that_waits_for_a_living_rank_hears_of_a_lost_one, 7, 7)
{
	static const uint32_t three[] = { 2, 3, 5 }; /* 2 and 3 below 1 */

	bed_group(bed, three, 3);
	assert_int_equal(bed_enter_group(bed, 0, 0), 0);
	bed_rank_gone(bed, 5);
	bed_deliver_all(bed);
	assert_int_equal(bed_group_outcome(bed, 0, 0, 0), BED_FAILED);
	assert_string_equal(bed->record->reason, "rank 5 is gone");
}

SETTLED_TEST(barrier_entered_by_all_completes_after_a_loss, 7, 7)
{
	static const uint32_t three[] = { 2, 3, 5 };

	bed_group(bed, three, 3);
	assert_int_equal(bed_enter_group(bed, 0, 2), 0);
	bed_rank_gone(bed, 5);
	assert_int_equal(bed_enter_group(bed, 0, 0), 0);
	assert_int_equal(bed_enter_group(bed, 0, 0), 0);
	bed_deliver_all(bed);
	assert_int_equal(bed_group_outcome(bed, 0, 0, 0), BED_WAITING);
	assert_int_equal(bed_group_outcome(bed, 0, 0, 1), BED_FAILED);
	assert_int_equal(bed_enter_group(bed, 0, 1), 0);
	bed_deliver_all(bed);
	assert_all(bed, 0, 0, BED_DONE);
}

SETTLED_TEST(groups_without_a_lost_rank_go_on, 7, 7)
{
	static const uint32_t three[] = { 2, 3, 4 };

	bed_group(bed, three, 3);
	bed_rank_gone(bed, 5);
	bed_rank_gone(bed, 0);
	bed_deliver_all(bed);
	for (uint32_t n = 0; n < 3; n++) {
		all_enter(bed, 0);
		bed_deliver_all(bed);
		assert_all(bed, 0, n, BED_DONE);
	}
}

/* A node on the way that has no members. */
BED_TEST(a_lost_node_fails_what_passes_it, 7, 7)
{
	static const uint32_t two[] = { 2, 3 }, below[] = { 4, 5 };

	bed_group(bed, two, 2);
	bed_group(bed, below, 2);
	assert_int_equal(bed_enter_group(bed, 0, 0), 0);
	bed_deliver_all(bed);
	bed_kill(bed, 1);
	bed_detect_all(bed);
	assert_int_equal(bed_group_outcome(bed, 0, 0, 0), BED_FAILED);
	assert_string_equal(bed->record->reason, "the link to 1 is lost");
	assert_int_equal(bed_enter_group(bed, 0, 1), 0);
	bed_deliver_all(bed);
	assert_int_equal(bed_group_outcome(bed, 0, 1, 0), BED_FAILED);
	all_enter(bed, 1);
	bed_deliver_all(bed);
	assert_all(bed, 1, 0, BED_DONE);
}

SETTLED_TEST(a_node_that_left_fails_what_comes_later, 7, 7)
{
	static const uint32_t two[] = { 0, 4 };

	bed_group(bed, two, 2);
	all_enter(bed, 0);
	bed_deliver_all(bed);
	bed_rank_gone(bed, 5);
	bed_leave(bed, 5);
	bed_deliver_all(bed);
	all_enter(bed, 0);
	bed_deliver_all(bed);
	assert_all(bed, 0, 1, BED_DONE); /* the group does not need that node */
	bed_leave(bed, 4);
	bed_deliver_all(bed);
	assert_int_equal(bed_enter_group(bed, 0, 0), 0);
	bed_deliver_all(bed);
	assert_int_equal(bed_group_outcome(bed, 0, 0, 2), BED_FAILED);
	assert_string_equal(bed->record->reason,
			    "it has left; before that, rank 5 is gone");
}

/* The node has no part in the group yet, and cannot be asked any more. */
SETTLED_TEST(a_node_that_left_has_said_why, 3, 3)
{
	static const uint32_t two[] = { 0, 2 };

	bed_group(bed, two, 2);
	bed_rank_gone(bed, 2);
	bed_leave(bed, 2);
	bed_deliver_all(bed);
	assert_int_equal(bed_enter_group(bed, 0, 0), 0);
	assert_string_equal(bed->record->reason,
			    "it has left; before that, rank 2 is gone");
}

/* The list of all members travels: who waits asks, since one has gone, who takes part. */
TEST(a_list_of_all_ranks_travels)
{
	struct bed *bed = new_bed(64, 16384, 4, 0);
	uint32_t *ranks = calloc(16384, sizeof(*ranks));

	for (uint32_t r = 0; r < 16384; r++)
		ranks[r] = r;
	bed_group(bed, ranks, 16384);
	for (uint32_t i = 0; i < 16383; i += 1000)
		assert_int_equal(bed_enter_group(bed, 0, i), 0);
	bed_deliver_all(bed);
	bed_rank_gone(bed, 16383);
	bed_deliver_all(bed);
	for (uint32_t i = 0; i < 16383; i += 1000)
		assert_int_equal(bed_group_outcome(bed, 0, i, 0), BED_FAILED);
	assert_string_equal(bed->record->reason, "rank 16383 is gone");
	bed_check_settled(bed);
	free(ranks);
}

SETTLED_TEST(waiting_can_be_given_up, 7, 7)
{
	static const uint32_t two[] = { 3, 6 };

	bed_group(bed, two, 2);
	coll_expire_subsets(bed->nodes[3].coll, "too long");
	assert_int_equal(bed_enter_group(bed, 0, 0), 0);
	bed_deliver_all(bed);
	assert_int_equal(bed_group_outcome(bed, 0, 0, 0), BED_WAITING);
	bed_inside(bed, true);
	coll_expire_subsets(bed->nodes[3].coll, "too long");
	bed_inside(bed, false);
	assert_string_equal(bed->record->reason, "too long");
	bed->record->reason[0] = '\0';
	assert_int_equal(bed_enter_group(bed, 0, 1), 0);
	bed_deliver_all(bed);
	assert_int_equal(bed_group_outcome(bed, 0, 1, 0), BED_FAILED);
	assert_string_equal(bed->record->reason, "too long");
}

/* ---- random histories ---- */

struct history {
	bool links_broke;
	uint32_t limit;
};

static void enter_one(struct bed *bed, const struct history *h)
{
	uint32_t g = bed_random(bed, bed->ngroups);
	uint32_t i = bed_random(bed, bed->groups[g].count);
	const struct bed_group *group = &bed->groups[g];

	if (bed->gone[group->ranks[i]])
		assert_int_equal(bed_enter_group(bed, g, i), -ESHUTDOWN);
	else if (group->entered[i] < h->limit)
		assert_int_equal(bed_enter_group(bed, g, i), 0);
}

static void step(struct bed *bed, struct history *h)
{
	uint32_t dice = bed_random(bed, 300);
	uint32_t rank = bed_random(bed, bed->nranks);

	if (dice == 0 && !bed->gone[rank]) {
		bed_rank_gone(bed, rank);
	} else if (dice == 1 && h->links_broke) {
		bed_break_any(bed);
	} else if (dice < 6) {
		struct bed_link *l = &bed->links[bed_random(bed, bed->nlinks)];

		if (l->dead && !l->detected && l->to != TREE_NONE)
			bed_detect(bed, l);
	} else if (dice < 100) {
		enter_one(bed, h);
	} else {
		bed_deliver(bed);
	}
}

static void run_out(struct bed *bed, const struct history *h)
{
	bed_detect_all(bed);
	bed_deliver_all(bed);
	for (uint32_t g = 0; g < bed->ngroups; g++)
		for (uint32_t i = 0; i < bed->groups[g].count; i++)
			while (!bed->gone[bed->groups[g].ranks[i]] &&
			       bed->groups[g].entered[i] < h->limit)
				assert_int_equal(bed_enter_group(bed, g, i), 0);
	bed_deliver_all(bed);
}

/* How many collectives every member has entered. */
static uint32_t common(const struct bed_group *g)
{
	uint32_t n = g->entered[0];

	for (uint32_t i = 1; i < g->count; i++)
		n = g->entered[i] < n ? g->entered[i] : n;
	return n;
}

static void check_group(const struct bed *bed, const struct history *h,
			uint32_t group)
{
	const struct bed_group *g = &bed->groups[group];
	uint32_t n = common(g);

	for (uint32_t i = 0; i < g->count; i++)
		for (uint32_t s = 0; s < g->entered[i]; s++) {
			if (s >= n)
				assert_int_equal(g->outcome[i][s], BED_FAILED);
			else if (!h->links_broke)
				assert_int_equal(g->outcome[i][s], BED_DONE);
			if (s && g->outcome[i][s - 1] == BED_FAILED)
				assert_int_equal(g->outcome[i][s], BED_FAILED);
		}
}

/* bed_complete_subset sees collectives that are mixed up. */
static void one_history(uint64_t seed, bool links)
{
	uint32_t nnodes = 1 + seed * 7 % 20;
	struct bed *bed = new_bed(nnodes, nnodes + seed * 11 % 25,
				  2 + seed % 4, seed);
	struct history h = { .links_broke = links, .limit = 6 };
	uint32_t steps = bed_random(bed, 60 * bed->nranks);

	for (uint32_t g = 0; g < 5; g++)
		bed_group_any(bed, 1 + g);
	while (steps--)
		step(bed, &h);
	run_out(bed, &h);
	bed_check_settled(bed);
	for (uint32_t g = 0; g < bed->ngroups; g++)
		check_group(bed, &h, g);
	unit_end(bed);
}

TEST(ends_everything_when_ranks_go)
{
	for (uint64_t seed = 1; seed < 700; seed++)
		one_history(seed, false);
}

TEST(ends_everything_when_links_break)
{
	for (uint64_t seed = 1; seed < 700; seed++)
		one_history(seed, true);
}
