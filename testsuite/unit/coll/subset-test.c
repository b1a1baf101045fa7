/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Collectives of some ranks: they end at every member with what all gave,
 * over those links only that they need, also when others of the same name
 * follow at once; and whatever goes, what needs it fails and nothing else does.
 */
#include "unit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "net.h"
#include "libcoll/coll_private.h"

/* ---- without faults ---- */

static uint32_t subset_messages(const struct net *net)
{
	return net->sent[COLL_MSG_SUB_UP] + net->sent[COLL_MSG_SUB_DOWN] +
	       net->sent[COLL_MSG_SUB_OPEN] + net->sent[COLL_MSG_SUB_FAIL];
}

static void all_enter(struct net *net, uint32_t group)
{
	for (uint32_t i = 0; i < net->groups[group].count; i++)
		assert_int_equal(net_enter_group(net, group, i), 0);
}

static void assert_all(const struct net *net, uint32_t group, uint32_t seq,
		       enum net_outcome outcome)
{
	for (uint32_t i = 0; i < net->groups[group].count; i++)
		assert_int_equal(net_group_outcome(net, group, i, seq),
				 outcome);
}

static void costs_what_its_paths_cost(void **state)
{
	static const uint32_t leaders[] = { 0, 3, 6, 9, 12, 15, 18 };
	static const uint32_t node[] = { 3, 4, 5 }, leaves[] = { 9, 13 };
	static const uint32_t cousins[] = { 6, 9 }, far[] = { 7, 8, 19 };
	struct net *net = net_new(7, 21, 2, 0); /* 0: 1 (2 3), 4 (5 6) */
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
		uint32_t before = subset_messages(net);

		net_group(net, groups[g].ranks, groups[g].count);
		all_enter(net, g);
		net_deliver_all(net);
		assert_all(net, g, 0, NET_DONE);
		assert_int_equal(subset_messages(net) - before,
				 2 * groups[g].links);
	}
	net_assert_settled(net);
	net_free(net);
}

/* Members that enter again as soon as they may, or earlier by `ahead`. */
static void run_groups(struct net *net, uint32_t ahead, uint32_t rounds)
{
	uint32_t left = 0;

	for (uint32_t g = 0; g < net->ngroups; g++)
		left += net->groups[g].count * rounds;
	while (left) {
		uint32_t g = net_random(net, net->ngroups);
		uint32_t i = net_random(net, net->groups[g].count);
		uint32_t n = net->groups[g].entered[i];

		if (n < rounds && (n < ahead || net_group_outcome(net, g, i,
						n - ahead) == NET_DONE)) {
			assert_int_equal(net_enter_group(net, g, i), 0);
			left--;
		}
		net_deliver(net);
	}
	net_deliver_all(net);
}

static void ends_in_any_order(void **state)
{
	for (uint64_t seed = 0; seed < 200; seed++) {
		uint32_t nnodes = 1 + seed * 7 % 40;
		struct net *net = net_new(nnodes, nnodes + seed * 11 % 60,
					  2 + seed % 5, seed);

		for (uint32_t g = 0; g < 6; g++)
			net_group_any(net, 1 + seed % 7 * g);
		run_groups(net, 1 + seed % 3, 6);
		for (uint32_t g = 0; g < net->ngroups; g++)
			for (uint32_t n = 0; n < 6; n++)
				assert_all(net, g, n, NET_DONE);
		assert_int_equal(net->sent[COLL_MSG_SUB_OPEN], 0);
		net_assert_settled(net);
		net_free(net);
	}
}

/* Subsets of the same members: another operation, another tag. */
static void names_are_different(void **state)
{
	static const uint32_t both[] = { 0, 1 };
	struct net *net = net_new(2, 2, 2, 0);

	net_group(net, both, 2);
	net_group(net, both, 2);
	assert_int_equal(net_enter_group(net, 0, 0), 0);
	assert_int_equal(net_enter_group(net, 1, 1), 0);
	net_deliver_all(net);
	assert_int_equal(net_group_outcome(net, 0, 0, 0), NET_WAITING);
	assert_int_equal(net_group_outcome(net, 1, 1, 0), NET_WAITING);
	assert_int_equal(net_enter_group(net, 0, 1), 0);
	assert_int_equal(net_enter_group(net, 1, 0), 0);
	net_deliver_all(net);
	net_assert_settled(net);
	net_free(net);
}

static void a_long_list_is_small(void **state)
{
	struct net *net = net_new(3, 16384, 2, 0);
	uint32_t *ranks = calloc(16384, sizeof(*ranks));

	for (uint32_t r = 0; r < 16384; r++)
		ranks[r] = r;
	net_group(net, ranks, 16384);
	for (uint32_t r = 0; r < 16384; r += 64)
		ranks[r / 64] = r;
	net_group(net, ranks, 256);
	all_enter(net, 1);
	net_deliver_all(net);
	assert_all(net, 1, 0, NET_DONE);
	assert_int_equal(net->sent[COLL_MSG_SUB_UP], 2);
	assert_int_equal(net->sent[COLL_MSG_SUB_DOWN], 2);
	free(ranks);
	net_free(net);
}

/* ---- what may not enter ---- */

static int try_enter(struct net *net, uint32_t rank,
		     const struct coll_subset_name *name)
{
	uint32_t slot;
	struct coll *c = net_coll_of(net, rank, &slot);

	return coll_enter_subset(c, slot, name, NULL, 0);
}

static void refuses_what_is_no_group(void **state)
{
	static const uint32_t doubled[] = { 1, 1 }, down[] = { 2, 1 };
	static const uint32_t foreign[] = { 1, 4 }, others[] = { 0, 2 };
	static const char tag[COLL_SUBSET_TAG_MAX + 1];
	static const uint32_t one[] = { 1 };
	struct net *net = net_new(2, 4, 2, 0);
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
		assert_int_equal(try_enter(net, 1, &bad[i]), -EINVAL);
	assert_int_equal(coll_enter_subset(net->nodes[0].coll, 2, &good, NULL,
					   0), -EINVAL);
	net_group(net, one, 1);
	assert_int_equal(net_enter_group(net, 0, 0), 0);
	assert_all(net, 0, 0, NET_DONE);
	net_rank_gone(net, 1);
	assert_int_equal(net_enter_group(net, 0, 0), -ESHUTDOWN);
	net_assert_settled(net);
	net_free(net);
}

static void refuses_to_run_away(void **state)
{
	static const uint32_t both[] = { 0, 1 };
	struct net *net = net_new(2, 2, 2, 0);

	net_group(net, both, 2);
	for (uint32_t n = 0; n < COLL_SUBSET_AHEAD_MAX; n++)
		assert_int_equal(net_enter_group(net, 0, 1), 0);
	assert_int_equal(net_enter_group(net, 0, 1), -EAGAIN);
	net_deliver_all(net);
	assert_int_equal(coll_pending(net->nodes[1].coll),
			 COLL_SUBSET_AHEAD_MAX);
	for (uint32_t n = 0; n < COLL_SUBSET_AHEAD_MAX; n++)
		assert_int_equal(net_enter_group(net, 0, 0), 0);
	net_deliver_all(net);
	assert_int_equal(net_enter_group(net, 0, 1), 0);
	assert_int_equal(net_enter_group(net, 0, 0), 0);
	net_deliver_all(net);
	net_assert_settled(net);
	net_free(net);
}

/* Two ranks of one node and one of another: their next collective succeeds. */
static void more_than_a_result_may_have_fails_alone(void **state)
{
	static const uint32_t three[] = { 0, 2, 3 };
	struct net *net = net_new(2, 4, 2, 0);
	const uint32_t group = net_group(net, three, 3);
	const struct coll_subset_name name = {
		.op = 1, .tag = &group, .tag_len = sizeof(group),
		.ranks = three, .count = 3,
	};
	struct payload *half = payload_virtual(COLL_SUBSET_BYTES_MAX / 2 + 1);

	assert_int_equal(net_enter_group(net, group, 0), 0);
	for (uint32_t i = 1; i < 3; i++) {
		net->groups[group].outcome[i][0] = NET_WAITING;
		net->groups[group].entered[i] = 1;
		assert_int_equal(coll_enter_subset(net->nodes[1].coll, i - 1,
						   &name, half, 0), 0);
	}
	net_deliver_all(net);
	assert_all(net, group, 0, NET_FAILED);
	assert_non_null(strstr(net->reason, "256 MiB"));
	all_enter(net, group);
	net_deliver_all(net);
	assert_all(net, group, 1, NET_DONE);
	net_assert_settled(net);
	net_free(net);
	payload_unref(half);
}

/* ---- faults ---- */

static void what_needs_who_has_gone_fails(void **state)
{
	static const uint32_t with[] = { 1, 4, 6 }, without[] = { 0, 4, 6 };
	struct net *net = net_new(7, 7, 2, 0);

	net_group(net, with, 3);
	net_group(net, without, 3);
	/* Entered before, and what another one has not entered yet. */
	assert_int_equal(net_enter_group(net, 0, 0), 0);
	assert_int_equal(net_enter_group(net, 0, 1), 0);
	net_deliver_all(net);
	net_rank_gone(net, 6);
	net_deliver_all(net);
	assert_int_equal(net_group_outcome(net, 0, 0, 0), NET_FAILED);
	assert_int_equal(net_group_outcome(net, 0, 1, 0), NET_FAILED);
	assert_string_equal(net->reason, "rank 6 is gone");
	/* Entered later. */
	net->reason[0] = '\0';
	assert_int_equal(net_enter_group(net, 1, 0), 0);
	net_deliver_all(net);
	assert_int_equal(net_group_outcome(net, 1, 0, 0), NET_FAILED);
	assert_string_equal(net->reason, "rank 6 is gone");
	net_assert_settled(net);
	net_free(net);
}

/* A member waits below for one that lives; it hears all the same. */
static void who_waits_for_the_living_hears_of_the_dead(void **state)
{
	static const uint32_t three[] = { 2, 3, 5 }; /* 2 and 3 below 1 */
	struct net *net = net_new(7, 7, 2, 0);

	net_group(net, three, 3);
	assert_int_equal(net_enter_group(net, 0, 0), 0);
	net_rank_gone(net, 5);
	net_deliver_all(net);
	assert_int_equal(net_group_outcome(net, 0, 0, 0), NET_FAILED);
	assert_string_equal(net->reason, "rank 5 is gone");
	net_assert_settled(net);
	net_free(net);
}

static void what_all_have_entered_completes(void **state)
{
	static const uint32_t three[] = { 2, 3, 5 };
	struct net *net = net_new(7, 7, 2, 0);

	net_group(net, three, 3);
	assert_int_equal(net_enter_group(net, 0, 2), 0);
	net_rank_gone(net, 5);
	assert_int_equal(net_enter_group(net, 0, 0), 0);
	assert_int_equal(net_enter_group(net, 0, 0), 0);
	net_deliver_all(net);
	assert_int_equal(net_group_outcome(net, 0, 0, 0), NET_WAITING);
	assert_int_equal(net_group_outcome(net, 0, 0, 1), NET_FAILED);
	assert_int_equal(net_enter_group(net, 0, 1), 0);
	net_deliver_all(net);
	assert_all(net, 0, 0, NET_DONE);
	net_assert_settled(net);
	net_free(net);
}

static void others_go_on(void **state)
{
	static const uint32_t three[] = { 2, 3, 4 };
	struct net *net = net_new(7, 7, 2, 0);

	net_group(net, three, 3);
	net_rank_gone(net, 5);
	net_rank_gone(net, 0);
	net_deliver_all(net);
	for (uint32_t n = 0; n < 3; n++) {
		all_enter(net, 0);
		net_deliver_all(net);
		assert_all(net, 0, n, NET_DONE);
	}
	net_assert_settled(net);
	net_free(net);
}

/* A node on the way that has no members. */
static void a_lost_node_fails_what_passes_it(void **state)
{
	static const uint32_t two[] = { 2, 3 }, below[] = { 4, 5 };
	struct net *net = net_new(7, 7, 2, 0);

	net_group(net, two, 2);
	net_group(net, below, 2);
	assert_int_equal(net_enter_group(net, 0, 0), 0);
	net_deliver_all(net);
	net_kill(net, 1);
	net_detect_all(net);
	assert_int_equal(net_group_outcome(net, 0, 0, 0), NET_FAILED);
	assert_string_equal(net->reason, "the link to 1 is lost");
	assert_int_equal(net_enter_group(net, 0, 1), 0);
	net_deliver_all(net);
	assert_int_equal(net_group_outcome(net, 0, 1, 0), NET_FAILED);
	all_enter(net, 1);
	net_deliver_all(net);
	assert_all(net, 1, 0, NET_DONE);
	net_free(net);
}

static void a_node_that_left_fails_what_comes_later(void **state)
{
	static const uint32_t two[] = { 0, 4 };
	struct net *net = net_new(7, 7, 2, 0);

	net_group(net, two, 2);
	all_enter(net, 0);
	net_deliver_all(net);
	net_rank_gone(net, 5);
	net_leave(net, 5);
	net_deliver_all(net);
	all_enter(net, 0);
	net_deliver_all(net);
	assert_all(net, 0, 1, NET_DONE); /* it does not need that node */
	net_leave(net, 4);
	net_deliver_all(net);
	assert_int_equal(net_enter_group(net, 0, 0), 0);
	net_deliver_all(net);
	assert_int_equal(net_group_outcome(net, 0, 0, 2), NET_FAILED);
	assert_string_equal(net->reason,
			    "it has left; before that, rank 5 is gone");
	net_assert_settled(net);
	net_free(net);
}

/* Its node has no part in the group yet, and cannot be asked any more. */
static void a_node_that_left_has_said_why(void **state)
{
	static const uint32_t two[] = { 0, 2 };
	struct net *net = net_new(3, 3, 2, 0);

	net_group(net, two, 2);
	net_rank_gone(net, 2);
	net_leave(net, 2);
	net_deliver_all(net);
	assert_int_equal(net_enter_group(net, 0, 0), 0);
	assert_string_equal(net->reason,
			    "it has left; before that, rank 2 is gone");
	net_assert_settled(net);
	net_free(net);
}

/* The list of all members travels: who waits asks, since one has gone, who takes part. */
static void a_list_of_all_ranks_travels(void **state)
{
	struct net *net = net_new(64, 16384, 4, 0);
	uint32_t *ranks = calloc(16384, sizeof(*ranks));

	for (uint32_t r = 0; r < 16384; r++)
		ranks[r] = r;
	net_group(net, ranks, 16384);
	for (uint32_t i = 0; i < 16383; i += 1000)
		assert_int_equal(net_enter_group(net, 0, i), 0);
	net_deliver_all(net);
	net_rank_gone(net, 16383);
	net_deliver_all(net);
	for (uint32_t i = 0; i < 16383; i += 1000)
		assert_int_equal(net_group_outcome(net, 0, i, 0), NET_FAILED);
	assert_string_equal(net->reason, "rank 16383 is gone");
	net_assert_settled(net);
	free(ranks);
	net_free(net);
}

static void waiting_can_be_given_up(void **state)
{
	static const uint32_t two[] = { 3, 6 };
	struct net *net = net_new(7, 7, 2, 0);

	net_group(net, two, 2);
	coll_expire_subsets(net->nodes[3].coll, "too long");
	assert_int_equal(net_enter_group(net, 0, 0), 0);
	net_deliver_all(net);
	assert_int_equal(net_group_outcome(net, 0, 0, 0), NET_WAITING);
	net_inside(net, true);
	coll_expire_subsets(net->nodes[3].coll, "too long");
	net_inside(net, false);
	assert_string_equal(net->reason, "too long");
	net->reason[0] = '\0';
	assert_int_equal(net_enter_group(net, 0, 1), 0);
	net_deliver_all(net);
	assert_int_equal(net_group_outcome(net, 0, 1, 0), NET_FAILED);
	assert_string_equal(net->reason, "too long");
	net_assert_settled(net);
	net_free(net);
}

/* ---- random histories ---- */

struct history {
	bool links_broke;
	uint32_t limit;
};

static void enter_one(struct net *net, const struct history *h)
{
	uint32_t g = net_random(net, net->ngroups);
	uint32_t i = net_random(net, net->groups[g].count);
	const struct net_group *group = &net->groups[g];

	if (net->ranks[group->ranks[i]].gone)
		assert_int_equal(net_enter_group(net, g, i), -ESHUTDOWN);
	else if (group->entered[i] < h->limit)
		assert_int_equal(net_enter_group(net, g, i), 0);
}

static void step(struct net *net, struct history *h)
{
	uint32_t dice = net_random(net, 300);
	uint32_t rank = net_random(net, net->nranks);

	if (dice == 0 && !net->ranks[rank].gone) {
		net_rank_gone(net, rank);
	} else if (dice == 1 && h->links_broke) {
		net_break_any(net);
	} else if (dice < 6) {
		struct net_link *l = &net->links[net_random(net, net->nlinks)];

		if (l->dead && !l->detected && l->to != TREE_NONE)
			net_detect(net, l);
	} else if (dice < 100) {
		enter_one(net, h);
	} else {
		net_deliver(net);
	}
}

static void run_out(struct net *net, const struct history *h)
{
	net_detect_all(net);
	net_deliver_all(net);
	for (uint32_t g = 0; g < net->ngroups; g++)
		for (uint32_t i = 0; i < net->groups[g].count; i++)
			while (!net->ranks[net->groups[g].ranks[i]].gone &&
			       net->groups[g].entered[i] < h->limit)
				assert_int_equal(net_enter_group(net, g, i), 0);
	net_deliver_all(net);
}

/* How many collectives every member has entered. */
static uint32_t common(const struct net_group *g)
{
	uint32_t n = g->entered[0];

	for (uint32_t i = 1; i < g->count; i++)
		n = g->entered[i] < n ? g->entered[i] : n;
	return n;
}

static void check_group(const struct net *net, const struct history *h,
			uint32_t group)
{
	const struct net_group *g = &net->groups[group];
	uint32_t n = common(g);

	for (uint32_t i = 0; i < g->count; i++)
		for (uint32_t s = 0; s < g->entered[i]; s++) {
			if (s >= n)
				assert_int_equal(g->outcome[i][s], NET_FAILED);
			else if (!h->links_broke)
				assert_int_equal(g->outcome[i][s], NET_DONE);
			if (s && g->outcome[i][s - 1] == NET_FAILED)
				assert_int_equal(g->outcome[i][s], NET_FAILED);
		}
}

/* net_complete_subset sees collectives that are mixed up. */
static void one_history(uint64_t seed, bool links)
{
	uint32_t nnodes = 1 + seed * 7 % 20;
	struct net *net = net_new(nnodes, nnodes + seed * 11 % 25,
				  2 + seed % 4, seed);
	struct history h = { .links_broke = links, .limit = 6 };
	uint32_t steps = net_random(net, 60 * net->nranks);

	for (uint32_t g = 0; g < 5; g++)
		net_group_any(net, 1 + g);
	while (steps--)
		step(net, &h);
	run_out(net, &h);
	net_assert_settled(net);
	for (uint32_t g = 0; g < net->ngroups; g++)
		check_group(net, &h, g);
	net_free(net);
}

static void ends_everything_when_ranks_go(void **state)
{
	for (uint64_t seed = 1; seed < 700; seed++)
		one_history(seed, false);
}

static void ends_everything_when_links_break(void **state)
{
	for (uint64_t seed = 1; seed < 700; seed++)
		one_history(seed, true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(costs_what_its_paths_cost),
		cmocka_unit_test(ends_in_any_order),
		cmocka_unit_test(names_are_different),
		cmocka_unit_test(a_long_list_is_small),
		cmocka_unit_test(refuses_what_is_no_group),
		cmocka_unit_test(refuses_to_run_away),
		cmocka_unit_test(more_than_a_result_may_have_fails_alone),
		cmocka_unit_test(what_needs_who_has_gone_fails),
		cmocka_unit_test(who_waits_for_the_living_hears_of_the_dead),
		cmocka_unit_test(what_all_have_entered_completes),
		cmocka_unit_test(others_go_on),
		cmocka_unit_test(a_lost_node_fails_what_passes_it),
		cmocka_unit_test(a_node_that_left_fails_what_comes_later),
		cmocka_unit_test(a_node_that_left_has_said_why),
		cmocka_unit_test(a_list_of_all_ranks_travels),
		cmocka_unit_test(waiting_can_be_given_up),
		cmocka_unit_test(ends_everything_when_ranks_go),
		cmocka_unit_test(ends_everything_when_links_break),
	};

	return cmocka_run_group_tests_name("coll-subset", tests, NULL, NULL);
}
