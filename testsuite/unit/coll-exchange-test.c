/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Every algorithm by which nodes exchange, forced and chosen: contents under
 * every interleaving, nodes that leave early, and a fault at every step.
 */
#include "unit.h"

#include <errno.h>
#include <stdlib.h>

#include "coll-net.h"

#define LIMIT 4 /* collectives of each kind that a rank enters */

static const uint32_t pieces[] = { 1, 7, 24, 160, 4096 };

#define PIECES (sizeof(pieces) / sizeof(*pieces))

static struct net *net_with(enum coll_algorithm a, uint32_t nnodes,
			    uint32_t nranks, uint64_t seed)
{
	const struct coll_options options = {
		.tree_width = 2 + seed % 5,
		.piece = pieces[seed % PIECES],
		.algorithm = a,
	};

	return net_new_by(nnodes, nranks, seed, &options);
}

static bool may_enter(const struct net *net, enum coll_kind kind, uint32_t rank)
{
	return !net->ranks[rank].gone && net_entered(net, kind, rank) < LIMIT;
}

/* One event: somebody enters, or a message comes. */
static void step(struct net *net)
{
	uint32_t rank = net_random(net, net->nranks);
	enum coll_kind kind = net_random(net, COLL_KINDS);

	if (net_random(net, 3) && net_deliver(net))
		return;
	if (may_enter(net, kind, rank))
		assert_int_equal(net_enter(net, kind, rank), 0);
}

static bool all_entered(const struct net *net)
{
	for (uint32_t r = 0; r < net->nranks; r++)
		for (int kind = 0; kind < COLL_KINDS; kind++)
			if (may_enter(net, kind, r))
				return false;
	return true;
}

static void run(struct net *net)
{
	while (!all_entered(net))
		step(net);
	net_deliver_all(net);
}

static void assert_all_done(const struct net *net)
{
	net_assert_settled(net);
	for (uint32_t r = 0; r < net->nranks; r++)
		for (int kind = 0; kind < COLL_KINDS; kind++)
			for (uint32_t s = 0; s < LIMIT; s++)
				assert_int_equal(net_outcome(net, kind, r, s),
						 NET_DONE);
}

static void everybody_gets_everything(void **state)
{
	for (uint32_t n = 1; n <= 40; n++)
		for (int a = COLL_BY_TREE; a < COLL_ALGORITHMS; a++) {
			struct net *net = net_with(a, n, n + n * 13 % 29,
						   100 * n + a);

			run(net);
			assert_all_done(net);
			assert_int_equal(net->faults_sent, 0);
			if (n > 1 && a != COLL_BY_TREE)
				assert_true(net->sent[COLL_MSG_DATA] > 0);
			else
				assert_int_equal(net->sent[COLL_MSG_PLAN], 0);
			net_free(net);
		}
}

/* Small contributions never wait for an agreement. */
static void what_is_little_goes_up_at_once(void **state)
{
	struct net *net = net_with(COLL_BY_CHOICE, 9, 20, 3);

	run(net);
	assert_all_done(net);
	assert_int_equal(net->sent[COLL_MSG_SIZE], 0);
	assert_int_equal(net->sent[COLL_MSG_PLAN], 0);
	net_free(net);
}

static void a_round_costs_what_it_should(void **state)
{
	const struct coll_options ring = {
		.tree_width = 4, .algorithm = COLL_BY_RING,
	};
	const struct coll_options doubling = {
		.tree_width = 4, .algorithm = COLL_BY_DOUBLING,
	};
	struct net *net = net_new_by(13, 13, 0, &ring);

	for (uint32_t r = 0; r < 13; r++)
		net_enter(net, COLL_FENCE, r);
	net_deliver_all(net);
	net_assert_settled(net);
	assert_int_equal(net->sent[COLL_MSG_WANT], 13);
	assert_int_equal(net->sent[COLL_MSG_PLAN], 12);
	net_free(net);
	net = net_new_by(13, 13, 0, &doubling);
	for (uint32_t r = 0; r < 13; r++)
		net_enter(net, COLL_FENCE, r);
	net_deliver_all(net);
	net_assert_settled(net);
	assert_int_equal(net->sent[COLL_MSG_WANT], 4 * 13);
	net_free(net);
}

static void what_cannot_be_combined_fails_everywhere(void **state)
{
	for (int a = COLL_BY_TREE; a < COLL_ALGORITHMS; a++) {
		struct net *net = net_with(a, 7, 12, 5);

		net->combine_fails = 2;
		run(net);
		net_assert_settled(net);
		for (uint32_t r = 0; r < net->nranks; r++)
			for (uint32_t s = 0; s < LIMIT; s++)
				assert_int_equal(
					net_outcome(net, COLL_FENCE, r, s),
					s == 2 ? NET_FAILED : NET_DONE);
		assert_non_null(strstr(net->reason, "fence 2"));
		net_free(net);
	}
}

/* ---- who leaves when it has all it needs ---- */

static bool has_ended(const struct net *net, uint32_t position)
{
	uint32_t count;
	const uint32_t *ranks = layout_ranks_at(net->layout, position, &count);

	for (uint32_t i = 0; i < count; i++)
		for (int kind = 0; kind < COLL_KINDS; kind++)
			if (net_entered(net, kind, ranks[i]) < LIMIT ||
			    net_outcome(net, kind, ranks[i], LIMIT - 1) !=
				    NET_DONE)
				return false;
	return coll_pending(net->nodes[position].coll) == 0;
}

/* Like an agent: the ranks go, the children are told before the parent. */
static void leave_if_ended(struct net *net, uint32_t position)
{
	const struct tree_place *place =
		coll_place(net->nodes[position].coll);
	uint32_t count;
	const uint32_t *ranks = layout_ranks_at(net->layout, position, &count);

	if (net->nodes[position].left || place->range.first != position ||
	    !has_ended(net, position))
		return;
	for (uint32_t i = 0; i < count; i++)
		net_rank_gone(net, ranks[i]);
	net_leave(net, position);
}

static void nobody_leaves_too_early(void **state)
{
	for (uint64_t seed = 1; seed <= 120; seed++) {
		enum coll_algorithm a = COLL_BY_TREE + seed % 3;
		uint32_t n = 1 + seed * 7 % 23;
		struct net *net = net_with(a, n, n + seed % 17, seed);

		while (!all_entered(net)) {
			step(net);
			leave_if_ended(net, net_random(net, n));
		}
		while (net_deliver(net))
			leave_if_ended(net, net_random(net, n));
		for (uint32_t p = 0; p < n; p++)
			leave_if_ended(net, p);
		net_deliver_all(net);
		assert_all_done(net);
		net_free(net);
	}
}

/* ---- a fault at every step ---- */

enum harm { HARM_RANK, HARM_LINK, HARM_NODE, HARMS };

static void do_harm(struct net *net, enum harm harm)
{
	uint32_t victim = net_random(net, net->nnodes);

	if (harm == HARM_RANK)
		net_rank_gone(net, net_random(net, net->nranks));
	else if (harm == HARM_LINK)
		net_break_any(net);
	else
		net_kill(net, victim);
}

/* Completions, then failures; all has ended. */
static void check_ends(const struct net *net)
{
	net_assert_settled(net);
	for (uint32_t r = 0; r < net->nranks; r++)
		for (int kind = 0; kind < COLL_KINDS; kind++)
			for (uint32_t s = 1; s < net_entered(net, kind, r); s++)
				if (net_outcome(net, kind, r, s - 1) ==
				    NET_FAILED)
					assert_int_equal(
						net_outcome(net, kind, r, s),
						NET_FAILED);
}

/* False: everything had ended before the harm could be done. */
static bool harmed_run(enum coll_algorithm a, uint32_t nnodes, uint64_t seed,
		       enum harm harm, uint32_t when)
{
	struct net *net = net_with(a, nnodes, nnodes + seed % 5, seed);
	uint32_t at = 0;
	bool over = false;

	for (; at < when && !over; at++) {
		over = all_entered(net) && !net_deliver(net);
		if (!over)
			step(net);
	}
	do_harm(net, harm);
	for (uint32_t i = net_random(net, 30); i > 0; i--)
		step(net);
	net_detect_all(net);
	run(net);
	check_ends(net);
	net_free(net);
	return !over;
}

static void ends_whatever_happens_whenever(void **state)
{
	static const uint32_t nodes[] = { 2, 3, 5, 9 };

	for (size_t i = 0; i < sizeof(nodes) / sizeof(*nodes); i++)
		for (int a = COLL_BY_TREE; a < COLL_ALGORITHMS; a++)
			for (int harm = 0; harm < HARMS; harm++)
				for (uint32_t when = 0;
				     harmed_run(a, nodes[i], 1 + i, harm,
						when);)
					when += 1 + when / 16;
}

static void ends_when_much_happens(void **state)
{
	for (uint64_t seed = 1; seed <= 200; seed++) {
		uint32_t n = 2 + seed * 7 % 30;
		struct net *net = net_with(COLL_BY_TREE + seed % 3, n,
					   n + seed * 11 % 30, seed);

		while (!all_entered(net)) {
			if (net_random(net, 150) == 0)
				do_harm(net, net_random(net, HARMS));
			if (net_random(net, 50) == 0)
				net_detect_all(net);
			step(net);
		}
		net_detect_all(net);
		net_deliver_all(net);
		check_ends(net);
		net_free(net);
	}
}

/* ---- what nobody can have sent ---- */

static const struct coll_msg want = {
	.type = COLL_MSG_WANT, .algorithm = COLL_BY_RING, .size = 1,
};
static const struct coll_msg data = { .type = COLL_MSG_DATA };
static const struct coll_msg plan = {
	.type = COLL_MSG_PLAN, .algorithm = COLL_BY_RING, .total = 10,
};
static const struct coll_msg size_msg = { .type = COLL_MSG_SIZE, .size = 5 };

/* Five nodes of one rank by a ring; node 0 has the children 1 and 3. */
static struct net *half_way(void)
{
	const struct coll_options options = {
		.tree_width = 2, .piece = 4, .algorithm = COLL_BY_RING,
	};
	struct net *net = net_new_by(5, 5, 0, &options);

	for (uint32_t r = 0; r < 5; r++)
		assert_int_equal(net_enter(net, COLL_FENCE, r), 0);
	return net;
}

static void two_plans_for_one_collective_fail_it(void **state)
{
	struct net *net = half_way();
	struct coll_msg other = want;

	other.algorithm = COLL_BY_DOUBLING;
	assert_int_equal(net_inject(net, 3, 4, &other, NULL), 0);
	net_deliver_all(net);
	for (uint32_t r = 0; r < 5; r++)
		assert_int_not_equal(net_outcome(net, COLL_FENCE, r, 0),
				     NET_WAITING);
	assert_int_equal(net_outcome(net, COLL_FENCE, 4, 0), NET_FAILED);
	assert_non_null(strstr(net->reason, "two algorithms"));
	net_free(net);
}

static void refuses_what_cannot_be(void **state)
{
	struct net *net = half_way();
	struct coll_msg msg = want;

	assert_int_equal(net_inject(net, 2, 0, &want, NULL), -EPROTO);
	msg.round = 1;
	assert_int_equal(net_inject(net, 4, 0, &msg, NULL), -EPROTO);
	assert_int_equal(net_inject(net, 4, 0, &data, "x"), -EPROTO);
	assert_int_equal(net_inject(net, 1, 0, &plan, NULL), -EPROTO);
	assert_int_equal(net_inject(net, 0, 3, &size_msg, NULL), -EPROTO);
	msg = plan;
	msg.count = 11;
	assert_int_equal(net_inject(net, 0, 4, &msg, NULL), -EPROTO);
	msg = size_msg;
	msg.seq = 1;
	assert_int_equal(net_inject(net, 1, 0, &msg, NULL), -EPROTO);
	net_deliver_all(net);
	assert_int_equal(net_outcome(net, COLL_FENCE, 4, 0), NET_DONE);
	assert_int_equal(net_inject(net, 4, 0, &want, NULL), -EPROTO);
	net_assert_settled(net);
	net_free(net);
}

/* It can be told so before its plan has come. */
static void waits_for_no_node_that_has_gone(void **state)
{
	struct net *net = half_way();

	net_detect(net, net_link(net, 4, 0));
	net->lenient = true; /* it asks all the same */
	net_deliver_all(net);
	assert_int_equal(net_outcome(net, COLL_FENCE, 0, 0), NET_DONE);
	assert_int_equal(coll_pending(net->nodes[0].coll), 0);
	net_free(net);
}

static void a_lie_about_sizes_fails_and_overruns_nothing(void **state)
{
	for (uint64_t lie = 0; lie < 40; lie++) {
		struct net *net = half_way();
		struct coll_msg msg = plan;

		msg.total = lie;
		for (uint32_t i = 0; i < 3; i++)
			net_deliver(net);
		net->lenient = true;
		if (net_inject(net, 0, 1, &msg, NULL))
			net_kill(net, 1);
		net_deliver_all(net);
		net_detect_all(net);
		net_deliver_all(net);
		net_free(net);
	}
}

/* ---- the tables ---- */

static void names_and_distances(void **state)
{
	enum coll_algorithm a;

	for (int i = 0; i < COLL_ALGORITHMS; i++) {
		assert_true(algorithm_parse(algorithm_name(i), &a));
		assert_int_equal(a, i);
	}
	assert_false(algorithm_parse("Ring", &a));
	assert_false(algorithm_parse("", &a));
	for (uint32_t n = 1; n < 3000; n++) {
		uint32_t rounds = algorithm_rounds(COLL_BY_DOUBLING, n);

		assert_true((1ull << rounds) >= n);
		assert_true(n == 1 || (1ull << (rounds - 1)) < n);
		assert_int_equal(algorithm_rounds(COLL_BY_RING, n), n > 1);
		assert_int_equal(algorithm_rounds(COLL_BY_TREE, n), 0);
	}
	assert_true(algorithm_rounds(COLL_BY_DOUBLING, LAYOUT_NODES_MAX) <=
		    COLL_ROUNDS_MAX);
}

static void the_choice_keeps_its_word(void **state)
{
	for (uint32_t n = 1; n < 300; n += 1 + n / 8)
		for (uint64_t bytes = 0; bytes <= 1ull << 32;
		     bytes = 2 * bytes + 1) {
			enum coll_algorithm a = algorithm_choose(n, bytes);

			assert_true(a > COLL_BY_CHOICE && a < COLL_ALGORITHMS);
			if (bytes < algorithm_choice_min(n))
				assert_int_equal(a, COLL_BY_TREE);
		}
}

static void a_ring_is_for_nodes_with_much_each(void **state)
{
	assert_int_equal(algorithm_choose(64, 128 << 20), COLL_BY_RING);
	assert_int_equal(algorithm_choose(65536, 128 << 20), COLL_BY_TREE);
	assert_int_equal(algorithm_choose(2, 128 << 20), COLL_BY_TREE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(everybody_gets_everything),
		cmocka_unit_test(what_is_little_goes_up_at_once),
		cmocka_unit_test(a_round_costs_what_it_should),
		cmocka_unit_test(what_cannot_be_combined_fails_everywhere),
		cmocka_unit_test(nobody_leaves_too_early),
		cmocka_unit_test(ends_whatever_happens_whenever),
		cmocka_unit_test(ends_when_much_happens),
		cmocka_unit_test(two_plans_for_one_collective_fail_it),
		cmocka_unit_test(refuses_what_cannot_be),
		cmocka_unit_test(waits_for_no_node_that_has_gone),
		cmocka_unit_test(a_lie_about_sizes_fails_and_overruns_nothing),
		cmocka_unit_test(names_and_distances),
		cmocka_unit_test(the_choice_keeps_its_word),
		cmocka_unit_test(a_ring_is_for_nodes_with_much_each),
	};

	return cmocka_run_group_tests_name("coll-exchange", tests, NULL, NULL);
}
