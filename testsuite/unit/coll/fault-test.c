/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Collectives with faults: whatever goes, every collective that anybody has
 * entered ends at every rank; what could complete does, with the right contents.
 */
#include "unit.h"

#include <errno.h>
#include <stdlib.h>

#include "net.h"

#define LIMIT 8 /* collectives of each kind that a rank wants to enter */

/* ---- random histories ---- */

struct history {
	uint32_t rank_faults; /* still to happen */
	uint32_t link_faults;
	bool links_broke;
	uint32_t bound[COLL_KINDS]; /* what ranks that are gone had entered */
};

static void lose_rank(struct net *net, struct history *h)
{
	uint32_t rank = net_random(net, net->nranks);

	if (net->ranks[rank].gone)
		return;
	for (int kind = 0; kind < COLL_KINDS; kind++) {
		uint32_t entered = net_entered(net, kind, rank);

		if (entered < h->bound[kind])
			h->bound[kind] = entered;
	}
	h->rank_faults--;
	net_rank_gone(net, rank);
}

static void break_link(struct net *net, struct history *h)
{
	uint32_t position = net_random(net, net->nnodes);

	h->link_faults--;
	if (position == 0 || net->links[2 * position].dead)
		return;
	h->links_broke = true;
	net_break(net, position);
}

static void detect_one(struct net *net)
{
	struct net_link *link =
		&net->links[2 + net_random(net, 2 * net->nnodes - 2)];

	if (link->dead && !link->detected)
		net_detect(net, link);
}

static void enter_one(struct net *net)
{
	uint32_t rank = net_random(net, net->nranks);
	enum coll_kind kind = net_random(net, COLL_KINDS);

	if (net->ranks[rank].gone)
		assert_int_equal(net_enter(net, kind, rank), -ESHUTDOWN);
	else if (net_entered(net, kind, rank) < LIMIT)
		assert_int_equal(net_enter(net, kind, rank), 0);
}

static void step(struct net *net, struct history *h)
{
	uint32_t dice = net_random(net, 200);

	if (dice == 0 && h->rank_faults)
		lose_rank(net, h);
	else if (dice == 1 && h->link_faults)
		break_link(net, h);
	else if (dice < 10 && net->nnodes > 1)
		detect_one(net);
	else if (dice < 80)
		enter_one(net);
	else
		net_deliver(net);
}

/* Everything that can still happen does. */
static void run_out(struct net *net)
{
	for (uint32_t i = 2; i < 2 * net->nnodes; i++)
		if (net->links[i].dead && !net->links[i].detected)
			net_detect(net, &net->links[i]);
	for (uint32_t r = 0; r < net->nranks; r++)
		for (int kind = 0; kind < COLL_KINDS && !net->ranks[r].gone;
		     kind++)
			while (net_entered(net, kind, r) < LIMIT)
				net_enter(net, kind, r);
	net_deliver_all(net);
}

/* A rank sees completions, then failures, never one after the other again. */
static void check_rank(const struct net *net, const struct history *h,
		       enum coll_kind kind, uint32_t rank)
{
	for (uint32_t s = 0; s < net_entered(net, kind, rank); s++) {
		enum net_outcome outcome = net_outcome(net, kind, rank, s);

		if (s > 0 && net_outcome(net, kind, rank, s - 1) == NET_FAILED)
			assert_int_equal(outcome, NET_FAILED);
		if (s >= h->bound[kind])
			assert_int_equal(outcome, NET_FAILED);
		else if (!h->links_broke)
			assert_int_equal(outcome, NET_DONE);
	}
}

static void one_history(uint64_t seed, uint32_t rank_faults,
			uint32_t link_faults)
{
	uint32_t nnodes = 1 + seed * 7 % 30;
	struct net *net = net_new(nnodes, nnodes + seed * 11 % 40,
				  2 + seed % 5, seed);
	struct history h = {
		.rank_faults = rank_faults, .link_faults = link_faults,
		.bound = { COLL_NEVER, COLL_NEVER, COLL_NEVER, COLL_NEVER },
	};
	uint32_t steps = net_random(net, 20 * net->nranks * LIMIT);

	while (steps--)
		step(net, &h);
	run_out(net);
	net_assert_settled(net);
	for (uint32_t r = 0; r < net->nranks; r++)
		for (int kind = 0; kind < COLL_KINDS; kind++)
			check_rank(net, &h, kind, r);
	net_free(net);
}

static void ends_everything_when_ranks_go(void **state)
{
	for (uint64_t seed = 1; seed <= 150; seed++)
		one_history(seed, 1 + seed % 4, 0);
}

static void ends_everything_when_links_break(void **state)
{
	for (uint64_t seed = 1; seed <= 150; seed++)
		one_history(seed, 0, 1 + seed % 3);
}

static void ends_everything_when_both_happen(void **state)
{
	for (uint64_t seed = 1; seed <= 150; seed++)
		one_history(seed, seed % 5, 1 + seed % 3);
}

/* ---- single faults ---- */

static void enter_all(struct net *net, enum coll_kind kind, uint32_t but)
{
	for (uint32_t r = 0; r < net->nranks; r++)
		if (r != but && !net->ranks[r].gone)
			net_enter(net, kind, r);
}

static void everybody_learns_once_who_is_gone(void **state)
{
	struct net *net = net_new(15, 15, 2, 0);

	enter_all(net, COLL_FENCE, COLL_NEVER);
	enter_all(net, COLL_FENCE, 9);
	net_rank_gone(net, 9);
	net_rank_gone(net, 9);
	net_deliver_all(net);
	net_assert_settled(net);
	assert_int_equal(net->faults_sent, net->nnodes - 1);
	for (uint32_t r = 0; r < net->nranks; r++)
		assert_int_equal(net_outcome(net, COLL_FENCE, r, 0), NET_DONE);
	assert_int_equal(net_outcome(net, COLL_FENCE, 14, 1), NET_FAILED);
	assert_string_equal(net->reason, "rank 9 is gone");
	net_free(net);
}

static void later_entrants_fail_at_once_with_the_reason(void **state)
{
	struct net *net = net_new(4, 8, 2, 0);

	net_enter(net, COLL_FENCE, 6);
	net_rank_gone(net, 0);
	net_deliver_all(net);
	assert_int_equal(net_outcome(net, COLL_FENCE, 6, 0), NET_FAILED);
	for (uint32_t s = 0; s < 3; s++)
		for (int kind = 0; kind < COLL_KINDS; kind++) {
			net->reason[0] = '\0';
			assert_int_equal(net_enter(net, kind, 7), 0);
			assert_int_equal(net_outcome(net, kind, 7, s),
					 NET_FAILED);
			assert_string_equal(net->reason, "rank 0 is gone");
		}
	net_free(net);
}

static void entering_and_leaving_does_not_spoil_what_was_entered(void **state)
{
	struct net *net = net_new(3, 6, 2, 0);

	net_enter(net, COLL_GATHER, 5);
	net_rank_gone(net, 5);
	net_deliver_all(net);
	enter_all(net, COLL_GATHER, COLL_NEVER);
	net_deliver_all(net);
	net_assert_settled(net);
	for (uint32_t r = 0; r < net->nranks; r++)
		assert_int_equal(net_outcome(net, COLL_GATHER, r, 0), NET_DONE);
	net_free(net);
}

/* All ranks have entered the same: they go in any order, messages overtake. */
static void the_end_of_a_step_costs_a_link_one_fault_each_way(void **state)
{
	for (uint64_t seed = 1; seed <= 50; seed++) {
		struct net *net = net_new(20, 60, 3, seed);

		enter_all(net, COLL_FENCE, COLL_NEVER);
		enter_all(net, COLL_RING, COLL_NEVER);
		net_deliver_all(net);
		for (uint32_t r = 0; r < net->nranks; r++) {
			net_rank_gone(net, (r * 7 + seed) % net->nranks);
			for (uint32_t i = net_random(net, 4); i > 0; i--)
				net_deliver(net);
		}
		net_deliver_all(net);
		net_assert_settled(net);
		assert_in_range(net->faults_sent, net->nnodes - 1,
				2 * (net->nnodes - 1));
		assert_string_equal(net->reason, "");
		net_free(net);
	}
}

static void who_is_gone_is_missed_when_a_neighbour_enters(void **state)
{
	struct net *net = net_new(3, 6, 2, 0);

	net_rank_gone(net, 2);
	net_enter(net, COLL_FENCE, 3);
	net_deliver_all(net);
	net_assert_settled(net);
	assert_string_equal(net->reason, "rank 2 is gone");
	net_enter(net, COLL_RING, 0);
	assert_int_equal(net_outcome(net, COLL_RING, 0, 0), NET_FAILED);
	net_free(net);
}

static void who_is_gone_is_missed_when_others_wait_already(void **state)
{
	struct net *net = net_new(3, 6, 2, 0);

	net_enter(net, COLL_FENCE, 3);
	net_deliver_all(net);
	assert_int_equal(net_outcome(net, COLL_FENCE, 3, 0), NET_WAITING);
	net_rank_gone(net, 2);
	assert_int_equal(net_outcome(net, COLL_FENCE, 3, 0), NET_FAILED);
	net_free(net);
}

static void who_is_gone_is_missed_when_a_subtree_enters(void **state)
{
	struct net *net = net_new(3, 4, 2, 0); /* 0-1, 2, 3 */

	net_rank_gone(net, 0);
	net_enter(net, COLL_GATHER, 3);
	net_deliver_all(net);
	assert_int_equal(net_outcome(net, COLL_GATHER, 3, 0), NET_FAILED);
	assert_string_equal(net->reason, "rank 0 is gone");
	net_free(net);
}

/* Rank 5 shares the node with rank 4 and neither enters nor ends. */
static void who_is_gone_is_missed_by_other_nodes_at_once(void **state)
{
	struct net *net = net_new(3, 6, 2, 0);

	net_enter(net, COLL_FENCE, 0);
	net_rank_gone(net, 4);
	net_deliver_all(net);
	net_assert_settled(net);
	assert_int_equal(net_outcome(net, COLL_FENCE, 0, 0), NET_FAILED);
	assert_string_equal(net->reason, "rank 4 is gone");
	net_free(net);
}

static void each_failure_has_its_own_reason(void **state)
{
	struct net *net = net_new(3, 6, 2, 0);

	net_enter(net, COLL_GATHER, 2);
	net_rank_gone(net, 2); /* gather from 1, fence from 0 */
	net_enter(net, COLL_FENCE, 4);
	net_rank_gone(net, 4); /* gather from 0, fence from 1 */
	net_deliver_all(net);
	net_enter(net, COLL_FENCE, 0);
	assert_string_equal(net->reason, "rank 2 is gone");
	net_enter(net, COLL_GATHER, 0);
	assert_string_equal(net->reason, "rank 4 is gone");
	net_free(net);
}

static void the_first_of_equal_reasons_stays(void **state)
{
	struct net *net = net_new(3, 6, 2, 0);

	net_rank_gone(net, 2);
	net_rank_gone(net, 3);
	net_deliver_all(net);
	net_detect(net, &net->links[2]); /* the node of both leaves as well */
	net_enter(net, COLL_FENCE, 0);
	assert_string_equal(net->reason, "rank 2 is gone");
	net_free(net);
}

/* ---- links ---- */

static void what_a_lost_child_contributed_is_not_lost(void **state)
{
	struct net *net = net_new(3, 3, 2, 0);

	net_enter(net, COLL_FENCE, 2);
	net_deliver_all(net);
	net_detect(net, &net->links[2 * 2]); /* node 0: node 2 is gone */
	net_detect(net, &net->links[2 * 2]);
	for (uint32_t s = 0; s < 2; s++) {
		net_enter(net, COLL_FENCE, 0);
		net_enter(net, COLL_FENCE, 1);
	}
	net_deliver_all(net);
	for (uint32_t r = 0; r < 2; r++) {
		assert_int_equal(net_outcome(net, COLL_FENCE, r, 0), NET_DONE);
		assert_int_equal(net_outcome(net, COLL_FENCE, r, 1),
				 NET_FAILED);
	}
	assert_null(net->links[2 * 2 + 1].head); /* nothing goes to node 2 */
	net_free(net);
}

static void a_lost_link_carries_nothing_any_more(void **state)
{
	struct net *net = net_new(3, 3, 2, 0);
	struct coll_msg up = { .type = COLL_MSG_UP };

	net_detect(net, &net->links[2 * 2]);
	coll_link_up(net->nodes[0].coll, 2);
	assert_int_equal(net_inject(net, 2, 0, &up, "x"), -EPROTO);
	assert_null(net->links[2 * 2 + 1].head);
	coll_link_lost(net->nodes[0].coll, 77, false, "no neighbour");
	net_free(net);
}

static void a_subtree_without_parent_fails_what_it_waits_for(void **state)
{
	struct net *net = net_new(7, 7, 2, 0); /* 1 has children 2 and 3 */

	enter_all(net, COLL_FENCE, COLL_NEVER);
	net_deliver_all(net);
	enter_all(net, COLL_FENCE, 0);
	net_deliver_all(net);
	net_detect(net, &net->links[2 * 1 + 1]);
	net_deliver_all(net);
	for (uint32_t r = 1; r <= 3; r++) {
		assert_int_equal(net_outcome(net, COLL_FENCE, r, 0), NET_DONE);
		assert_int_equal(net_outcome(net, COLL_FENCE, r, 1),
				 NET_FAILED);
	}
	net_enter(net, COLL_FENCE, 0); /* everybody has contributed to it */
	net_deliver_all(net);
	assert_int_equal(net_outcome(net, COLL_FENCE, 5, 1), NET_DONE);
	net_free(net);
}

static void a_result_that_comes_after_the_fault_is_dropped(void **state)
{
	struct net *net = net_new(2, 2, 2, 0);
	struct coll_msg down = { .type = COLL_MSG_DOWN };
	struct coll_msg fault = { .type = COLL_MSG_FAULT };

	net_enter(net, COLL_FENCE, 1);
	strcpy(fault.fault.reason, "why not");
	assert_int_equal(net_inject(net, 0, 1, &fault, NULL), 0);
	assert_int_equal(net_outcome(net, COLL_FENCE, 1, 0), NET_FAILED);
	assert_int_equal(net_inject(net, 0, 1, &down, "x"), 0);
	assert_int_equal(net_outcome(net, COLL_FENCE, 1, 0), NET_FAILED);
	net_free(net);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ends_everything_when_ranks_go),
		cmocka_unit_test(ends_everything_when_links_break),
		cmocka_unit_test(ends_everything_when_both_happen),
		cmocka_unit_test(everybody_learns_once_who_is_gone),
		cmocka_unit_test(later_entrants_fail_at_once_with_the_reason),
		cmocka_unit_test(
			entering_and_leaving_does_not_spoil_what_was_entered),
		cmocka_unit_test(
			the_end_of_a_step_costs_a_link_one_fault_each_way),
		cmocka_unit_test(
			who_is_gone_is_missed_when_a_neighbour_enters),
		cmocka_unit_test(
			who_is_gone_is_missed_when_others_wait_already),
		cmocka_unit_test(
			who_is_gone_is_missed_when_a_subtree_enters),
		cmocka_unit_test(who_is_gone_is_missed_by_other_nodes_at_once),
		cmocka_unit_test(each_failure_has_its_own_reason),
		cmocka_unit_test(the_first_of_equal_reasons_stays),
		cmocka_unit_test(what_a_lost_child_contributed_is_not_lost),
		cmocka_unit_test(a_lost_link_carries_nothing_any_more),
		cmocka_unit_test(a_subtree_without_parent_fails_what_it_waits_for),
		cmocka_unit_test(a_result_that_comes_after_the_fault_is_dropped),
	};

	return cmocka_run_group_tests_name("coll-fault", tests, NULL, NULL);
}
