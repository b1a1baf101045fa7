/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Collectives without faults: contents and order under every interleaving, what
 * a neighbour may not send, limits, reports.
 */
#include "unit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "net.h"

/* Enter and deliver in random order until every rank has entered `limit`. */
static void run(struct net *net, uint32_t limit)
{
	uint32_t left = 0;
	uint32_t haste = 1 + net_random(net, 8); /* how far ranks run ahead */

	for (uint32_t r = 0; r < net->nranks; r++)
		for (int kind = 0; kind < COLL_KINDS; kind++)
			left += limit - net_entered(net, kind, r);
	while (left) {
		uint32_t rank = net_random(net, net->nranks);
		enum coll_kind kind = net_random(net, COLL_KINDS);

		if (net_random(net, 8) >= haste) {
			net_deliver(net);
		} else if (net_entered(net, kind, rank) < limit) {
			assert_int_equal(net_enter(net, kind, rank), 0);
			left--;
		}
	}
	net_deliver_all(net);
}

static void assert_all_done(const struct net *net, uint32_t limit)
{
	net_assert_settled(net);
	for (uint32_t r = 0; r < net->nranks; r++)
		for (int kind = 0; kind < COLL_KINDS; kind++)
			for (uint32_t s = 0; s < limit; s++)
				assert_int_equal(net_outcome(net, kind, r, s),
						 NET_DONE);
	assert_int_equal(net->faults_sent, 0);
}

static void everybody_gets_everything_in_order(void **state)
{
	for (uint64_t seed = 1; seed <= 60; seed++) {
		uint32_t nnodes = 1 + seed * 7 % 40;
		uint32_t nranks = nnodes + seed * 13 % 60;
		struct net *net = net_new(nnodes, nranks, 2 + seed % 6, seed);

		run(net, 6);
		assert_all_done(net, 6);
		net_free(net);
	}
}

static void a_single_rank_is_its_own_neighbour(void **state)
{
	struct net *net = net_new(1, 1, 16, 0);

	for (uint32_t s = 0; s < 8; s++)
		for (int kind = 0; kind < COLL_KINDS; kind++) {
			assert_int_equal(net_enter(net, kind, 0), 0);
			assert_int_equal(net_outcome(net, kind, 0, s),
					 NET_DONE);
		}
	net_assert_settled(net);
	net_free(net);
}

static void a_rank_may_run_far_ahead_but_not_for_ever(void **state)
{
	struct net *net = net_new(3, 3, 2, 0);

	for (uint32_t s = 0; s < COLL_IN_FLIGHT_MAX; s++)
		assert_int_equal(net_enter(net, COLL_FENCE, 2), 0);
	assert_int_equal(net_enter(net, COLL_FENCE, 2), -EAGAIN);
	assert_int_equal(coll_pending(net->nodes[2].coll), COLL_IN_FLIGHT_MAX);
	net_deliver_all(net);
	for (uint32_t s = 0; s < 3; s++) {
		assert_int_equal(net_enter(net, COLL_FENCE, 0), 0);
		assert_int_equal(net_enter(net, COLL_FENCE, 1), 0);
	}
	net_deliver_all(net);
	assert_int_equal(net_outcome(net, COLL_FENCE, 2, 2), NET_DONE);
	assert_int_equal(net_outcome(net, COLL_FENCE, 2, 3), NET_WAITING);
	for (uint32_t s = 0; s < 3; s++)
		assert_int_equal(net_enter(net, COLL_FENCE, 2), 0);
	assert_int_equal(net_enter(net, COLL_FENCE, 2), -EAGAIN);
	net_free(net);
}

static void what_cannot_be_combined_fails_alone_and_everywhere(void **state)
{
	struct net *net = net_new(7, 11, 2, 5);

	net->combine_fails = 2;
	run(net, 5);
	net_assert_settled(net);
	for (uint32_t r = 0; r < net->nranks; r++)
		for (uint32_t s = 0; s < 5; s++) {
			assert_int_equal(net_outcome(net, COLL_FENCE, r, s),
					 s == 2 ? NET_FAILED : NET_DONE);
			assert_int_equal(net_outcome(net, COLL_GATHER, r, s),
					 NET_DONE);
		}
	assert_non_null(strstr(net->reason, "fence 2"));
	net_free(net);
}

/* ---- what a neighbour cannot have sent ---- */

/*
 * Width 2: node 0 has the children 1 and 4, node 1 the children 2 and 3. Node 1
 * has entered fence 0 and has heard of it from its first child.
 */
static struct net *half_a_fence(void)
{
	struct net *net = net_new(7, 7, 2, 0);

	net_enter(net, COLL_FENCE, 1);
	net_enter(net, COLL_FENCE, 2);
	net_deliver_all(net);
	return net;
}

/* The fence must still come out right, and the next ones. */
static void finish(struct net *net)
{
	for (uint32_t r = 0; r < net->nranks; r++)
		if (net_entered(net, COLL_FENCE, r) == 0)
			assert_int_equal(net_enter(net, COLL_FENCE, r), 0);
	net_deliver_all(net);
	for (uint32_t r = 0; r < net->nranks; r++)
		for (int kind = 0; kind < COLL_KINDS; kind++)
			assert_int_equal(net_enter(net, kind, r), 0);
	net_deliver_all(net);
	net_assert_settled(net);
	assert_int_equal(net_outcome(net, COLL_FENCE, 6, 1), NET_DONE);
	assert_int_equal(net_outcome(net, COLL_RING, 6, 0), NET_DONE);
	net_free(net);
}

static void refuse(struct net *net, uint32_t from, struct coll_msg msg,
		   const char *body)
{
	assert_int_equal(net_inject(net, from, 1, &msg, body), -EPROTO);
}

static const struct coll_msg up = { .type = COLL_MSG_UP };
static const struct coll_msg down = { .type = COLL_MSG_DOWN };

static void refuses_what_does_not_come_from_a_neighbour(void **state)
{
	struct net *net = half_a_fence();
	const uint32_t strangers[] = { 1, 4, 5, 6, 7, 1000000, UINT32_MAX };

	for (size_t i = 0; i < sizeof(strangers) / sizeof(*strangers); i++) {
		struct coll_msg fault = { .type = COLL_MSG_FAULT };

		refuse(net, strangers[i], up, "x");
		refuse(net, strangers[i], down, "x");
		refuse(net, strangers[i], fault, NULL);
		assert_int_equal(net_inject(net, UINT32_MAX, 0, &up, "x"),
				 -EPROTO);
	}
	finish(net);
}

static void refuses_what_goes_the_wrong_way(void **state)
{
	struct net *net = half_a_fence();

	refuse(net, 0, up, "x");
	refuse(net, 2, down, "x");
	refuse(net, 3, down, "x");
	finish(net);
}

static void refuses_what_comes_twice_or_too_early(void **state)
{
	struct net *net = half_a_fence();
	struct coll_msg later = up;

	later.seq = 2;
	refuse(net, 2, up, "x");
	refuse(net, 2, later, "x"); /* 1 comes first */
	refuse(net, 0, down, "x");  /* node 1 has not sent its contribution */
	later.type = COLL_MSG_DOWN;
	refuse(net, 0, later, "x");
	later.seq = UINT32_MAX;
	refuse(net, 0, later, "x");
	finish(net);
}

static void refuses_a_result_that_it_has(void **state)
{
	struct net *net = net_new(3, 3, 2, 0);

	run(net, 1);
	refuse(net, 0, down, "x");
	run(net, 2);
	assert_all_done(net, 2);
	net_free(net);
}

static void refuses_types_and_kinds_that_do_not_exist(void **state)
{
	struct net *net = half_a_fence();
	struct coll_msg msg = { .type = COLL_MSG_TYPES };

	refuse(net, 3, msg, "x");
	refuse(net, 3, (struct coll_msg){ .kind = COLL_KINDS }, "x");
	finish(net);
}

static void refuses_a_ring_value_longer_than_its_message(void **state)
{
	struct net *net = half_a_fence();
	struct coll_msg ring = { .kind = COLL_RING, .left_len = 3 };

	refuse(net, 3, ring, "xx");
	refuse(net, 3, ring, NULL);
	ring.left_len = UINT32_MAX;
	refuse(net, 3, ring, "xx");
	finish(net);
}

static void refuses_a_broken_ring_result(void **state)
{
	struct net *net = net_new(3, 3, 2, 0);
	struct coll_msg ring = {
		.type = COLL_MSG_DOWN, .kind = COLL_RING, .left_len = 3,
	};

	net_enter(net, COLL_RING, 1);
	refuse(net, 0, ring, "xx");
	ring.left_len = 0;
	ring.failed = true;
	refuse(net, 0, ring, NULL);
	net_enter(net, COLL_RING, 0);
	net_enter(net, COLL_RING, 2);
	net_deliver_all(net);
	assert_int_equal(net_outcome(net, COLL_RING, 1, 0), NET_DONE);
	net_free(net);
}

/* 3 nodes with a rank each, of which the one on node 1 is in a fence. */
static struct net *waits_for_a_result(void)
{
	struct net *net = net_new(3, 3, 2, 0);

	assert_int_equal(net_enter(net, COLL_FENCE, 1), 0);
	return net;
}

/* It has failed, and waits in its turn to be told to the rank. */
static void refuses_a_second_end_of_what_failed(void **state)
{
	struct net *net = waits_for_a_result();
	struct coll_msg msg = {
		.type = COLL_MSG_DOWN, .seq = 1, .failed = true,
	};

	assert_int_equal(net_enter(net, COLL_FENCE, 1), 0);
	snprintf(msg.fault.reason, sizeof(msg.fault.reason), "too much");
	assert_int_equal(net_inject(net, 0, 1, &msg, NULL), 0);
	refuse(net, 0, msg, NULL);
	msg.failed = false;
	refuse(net, 0, msg, NULL);
	assert_int_equal(net_outcome(net, COLL_FENCE, 1, 1), NET_WAITING);
	net_free(net);
}

static void a_child_cannot_make_it_keep_too_much(void **state)
{
	struct net *net = net_new(3, 3, 2, 0);
	struct coll_msg msg = up;

	for (; msg.seq < COLL_IN_FLIGHT_MAX; msg.seq++)
		assert_int_equal(net_inject(net, 1, 0, &msg, "x"), 0);
	assert_int_equal(net_inject(net, 1, 0, &msg, "x"), -EPROTO);
	net_free(net);
}

/* ---- reports ---- */

static void says_whom_it_waits_for(void **state)
{
	struct net *net = net_new(3, 7, 2, 0); /* 0-2, 3-4, 5-6 */
	uint32_t ranks[3], children[2], nranks, nchildren, seq = 0;
	enum coll_kind kind = COLL_FENCE;
	bool up_there;

	net_enter(net, COLL_GATHER, 1);
	net_enter(net, COLL_GATHER, 5);
	net_enter(net, COLL_GATHER, 6);
	net_deliver_all(net);
	assert_true(coll_next_pending(net->nodes[0].coll, &kind, &seq, ranks,
				      &nranks, children, &nchildren,
				      &up_there));
	assert_true(kind == COLL_GATHER && seq == 0 && !up_there);
	assert_true(nranks == 2 && ranks[0] == 0 && ranks[1] == 2);
	assert_true(nchildren == 1 && children[0] == 1);
	seq++;
	assert_false(coll_next_pending(net->nodes[0].coll, &kind, &seq, ranks,
				       &nranks, children, &nchildren,
				       &up_there));
	kind = 0;
	seq = 0;
	assert_true(coll_next_pending(net->nodes[2].coll, &kind, &seq, ranks,
				      &nranks, children, &nchildren,
				      &up_there));
	assert_true(up_there && nranks == 0 && nchildren == 0);
	assert_int_equal(coll_pending(net->nodes[0].coll), 1);
	assert_int_equal(coll_pending(net->nodes[1].coll), 0);
	net_free(net);
}

static void refuses_a_node_that_cannot_be(void **state)
{
	struct net *net = net_new(3, 3, 2, 0);
	const struct coll_options good = { .tree_width = 2 };
	const struct coll_options narrow = { .tree_width = 1 };
	const struct coll_options wide = { .tree_width = 1000000000 };
	struct coll_ops none = { 0 };
	struct coll *c;

	assert_int_equal(coll_create(&c, net->layout, 3, &good, &none, NULL),
			 -EINVAL);
	assert_int_equal(coll_create(&c, net->layout, 0, &narrow, &none, NULL),
			 -EINVAL);
	assert_int_equal(coll_create(&c, net->layout, 0, &wide, &none, NULL),
			 -EINVAL);
	net_free(net);
	coll_destroy(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(everybody_gets_everything_in_order),
		cmocka_unit_test(a_single_rank_is_its_own_neighbour),
		cmocka_unit_test(a_rank_may_run_far_ahead_but_not_for_ever),
		cmocka_unit_test(
			what_cannot_be_combined_fails_alone_and_everywhere),
		cmocka_unit_test(refuses_what_does_not_come_from_a_neighbour),
		cmocka_unit_test(refuses_what_goes_the_wrong_way),
		cmocka_unit_test(refuses_what_comes_twice_or_too_early),
		cmocka_unit_test(refuses_a_result_that_it_has),
		cmocka_unit_test(refuses_types_and_kinds_that_do_not_exist),
		cmocka_unit_test(refuses_a_ring_value_longer_than_its_message),
		cmocka_unit_test(refuses_a_broken_ring_result),
		cmocka_unit_test(refuses_a_second_end_of_what_failed),
		cmocka_unit_test(a_child_cannot_make_it_keep_too_much),
		cmocka_unit_test(says_whom_it_waits_for),
		cmocka_unit_test(refuses_a_node_that_cannot_be),
	};

	return cmocka_run_group_tests_name("coll", tests, NULL, NULL);
}
