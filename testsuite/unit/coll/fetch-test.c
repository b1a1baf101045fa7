/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fetches between the nodes of a step: whatever goes, each ends once, with what the owner's
 * host has said or with who has gone; nobody remembers it then, and lies are refused.
 */
#include "unit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "net.h"
#include "libcoll/coll_private.h"

static void answer_at(struct net *net, uint32_t i, enum coll_fetch_status status)
{
	assert_int_equal(net_answer(net, i, status), 0);
	net_deliver_all(net);
}

static void every_rank_of_every_other(void **state)
{
	for (uint64_t seed = 0; seed < 20; seed++) {
		uint32_t nnodes = 1 + seed * 7 % 24;
		struct net *net = net_new(nnodes, nnodes + seed % 9, 2 + seed % 5,
					  seed);

		for (uint32_t p = 0; p < nnodes; p++)
			for (uint32_t r = 0; r < net->nranks; r++)
				assert_int_equal(net_fetch(net, p, r), 0);
		net_deliver_all(net);
		assert_int_equal(net->nasked, nnodes * net->nranks);
		while (net->nasked)
			answer_at(net, net_random(net, net->nasked),
				  net_random(net, COLL_FETCH_STATUSES));
		for (uint32_t i = 0; i < net->nfetches; i++)
			assert_int_not_equal(net->fetches[i].outcome, NET_WAITING);
		net_assert_settled(net);
		net_free(net);
	}
}

/* Positions: 0: 1 (2 3), 4 (5 6). */
static struct net *tree(void)
{
	return net_new(7, 14, 2, 0);
}

static void costs_its_way(void **state)
{
	struct net *net = tree();

	net_fetch(net, 2, 13);
	net_deliver_all(net);
	assert_int_equal(net->sent[COLL_MSG_FETCH], 4);
	answer_at(net, 0, COLL_FETCH_FOUND);
	assert_int_equal(net->sent[COLL_MSG_FETCHED], 4);
	assert_int_equal(net->fetches[0].outcome, NET_DONE);
	net_fetch(net, 2, 4);
	assert_int_equal(net->sent[COLL_MSG_FETCH], 4);
	answer_at(net, 0, COLL_FETCH_ABSENT);
	assert_int_equal(net->fetches[1].outcome, NET_FAILED);
	net_assert_settled(net);
	net_free(net);
}

static void of_a_rank_that_goes(void **state)
{
	struct net *net = tree();

	net_fetch(net, 3, 8);
	net_fetch(net, 3, 9);
	net_fetch(net, 4, 8);
	net_deliver_all(net);
	net_rank_gone(net, 8);
	net_deliver_all(net);
	assert_int_equal(net->fetches[0].outcome, NET_FAILED);
	assert_int_equal(net->fetches[1].outcome, NET_WAITING);
	assert_int_equal(net->fetches[2].outcome, NET_FAILED);
	assert_string_equal(net->reason, "rank 8 is gone");
	/* The host may answer all the same, and later asks still reach it. */
	net_fetch(net, 6, 8);
	net_deliver_all(net);
	while (net->nasked)
		(void)net_answer(net, 0, COLL_FETCH_FOUND);
	net_deliver_all(net);
	assert_int_equal(net->fetches[3].outcome, NET_DONE);
	assert_int_equal(net->fetches[1].outcome, NET_DONE);
	net_assert_settled(net);
	net_free(net);
}

static void over_a_link_that_breaks(void **state)
{
	struct net *net = tree();

	net_fetch(net, 2, 13); /* over node 4 */
	net_fetch(net, 2, 0);
	net_fetch(net, 6, 0);
	net_deliver_all(net);
	net_break(net, 4);
	net_detect_all(net);
	net_deliver_all(net);
	assert_int_equal(net->fetches[0].outcome, NET_FAILED);
	assert_int_equal(net->fetches[2].outcome, NET_FAILED);
	assert_non_null(strstr(net->reason, " is lost"));
	assert_int_equal(net->fetches[1].outcome, NET_WAITING);
	/* At once, where it is known. */
	net_fetch(net, 0, 9);
	assert_int_equal(net->fetches[3].outcome, NET_FAILED);
	assert_string_equal(net->reason, "the link to 4 is lost");
	while (net->nasked)
		(void)net_answer(net, 0, COLL_FETCH_FOUND);
	net_deliver_all(net);
	assert_int_equal(net->fetches[1].outcome, NET_DONE);
	net_assert_settled(net);
	net_free(net);
}

/* Faults at any time, answers at any time: each ends. */
static void ends_whatever_happens(void **state)
{
	for (uint64_t seed = 1; seed < 300; seed++) {
		struct net *net = net_new(2 + seed % 12, 14 + seed % 7,
					  2 + seed % 3, seed);

		for (int i = 0; i < 150; i++) {
			uint32_t dice = net_random(net, 40);

			if (dice < 12 && net->nfetches < NET_FETCHES_MAX)
				net_fetch(net, net_random(net, net->nnodes),
					  net_random(net, net->nranks));
			else if (dice < 20 && net->nasked)
				(void)net_answer(net, net_random(net, net->nasked),
						 net_random(net, COLL_FETCH_STATUSES));
			else if (dice == 20)
				net_break_any(net);
			else if (dice == 21)
				net_rank_gone(net, net_random(net, net->nranks));
			else if (dice == 22)
				net_detect_all(net);
			else
				net_deliver(net);
		}
		net_detect_all(net);
		do {
			net_deliver_all(net);
			while (net->nasked)
				(void)net_answer(net, 0, COLL_FETCH_FOUND);
		} while (net_deliver(net));
		net_assert_settled(net);
		net_free(net);
	}
}

static void limits_are_kept(void **state)
{
	struct net *net = net_new(2, 2, 2, 0);
	struct coll *c = net->nodes[0].coll;
	static char key[COLL_FETCH_KEY_MAX + 1];
	struct coll_fetch what = { .rank = 1, .key = key, .key_len = sizeof(key) };

	assert_int_equal(coll_fetch(c, &what, 0), -EINVAL);
	what.key_len = 1;
	what.rank = 2;
	assert_int_equal(coll_fetch(c, &what, 0), -EINVAL);
	for (uint32_t i = 0; i < COLL_FETCH_AHEAD_MAX; i++)
		assert_int_equal(net_fetch(net, 0, 1), 0);
	assert_int_equal(net_fetch(net, 0, 1), -EAGAIN);
	assert_int_equal(coll_fetches_pending(c), COLL_FETCH_AHEAD_MAX);
	net_deliver_all(net);
	answer_at(net, 0, COLL_FETCH_FOUND);
	assert_int_equal(net_fetch(net, 0, 1), 0);
	net_deliver_all(net);
	assert_int_equal(coll_fetch_answer(net->nodes[1].coll, 1 << 20,
					   &(struct coll_fetched){ 0 }), -ENOENT);
	/* A fetch of a neighbour that does not keep them. */
	assert_int_equal(net_inject(net, 0, 1, &(struct coll_msg){
		.type = COLL_MSG_FETCH, .fetch = { .rank = 1 } }, "k"), -EPROTO);
	net_free(net);
}

static void more_than_can_be_fetched(void **state)
{
	struct net *net = net_new(2, 2, 2, 0);
	struct payload *much = payload_virtual(COLL_FETCH_BYTES_MAX + 1);

	net_fetch(net, 1, 0);
	net_deliver_all(net);
	assert_int_equal(coll_fetch_answer(net->nodes[0].coll,
					   net->asked[0].token,
					   &(struct coll_fetched){ .value = much }),
			 0);
	net_deliver_all(net);
	assert_int_equal(net->fetches[0].outcome, NET_FAILED);
	assert_string_equal(net->reason,
			    "the node of rank 0 has a value that is too long for a fetch");
	payload_unref(much);
	net_free(net);
}

static void lies_are_refused(void **state)
{
	struct net *net = tree();
	const struct {
		uint32_t from, to;
		struct coll_msg msg;
	} lies[] = {
		{ 0, 1, { .type = COLL_MSG_FETCH, .fetch = { .rank = 14 } } },
		{ 0, 1, { .type = COLL_MSG_FETCH, .fetch = { .rank = 13 } } },
		{ 2, 1, { .type = COLL_MSG_FETCH, .fetch = { .rank = 4 } } },
		{ 2, 1, { .type = COLL_MSG_FETCHED, .fetch = { .id = 1 } } },
		{ 3, 1, { .type = COLL_MSG_FETCHED, .fetch = { .id = 77 } } },
		{ 3, 1, { .type = COLL_MSG_FETCHED,
			  .fetch = { .id = 1, .status = COLL_FETCH_STATUSES } } },
	};

	net_fetch(net, 2, 6);
	net_deliver_all(net);
	for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++)
		assert_int_equal(net_inject(net, lies[i].from, lies[i].to,
					    &lies[i].msg, "key"), -EPROTO);
	answer_at(net, 0, COLL_FETCH_FOUND);
	net_assert_settled(net);
	net_free(net);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_rank_of_every_other),
		cmocka_unit_test(costs_its_way),
		cmocka_unit_test(of_a_rank_that_goes),
		cmocka_unit_test(over_a_link_that_breaks),
		cmocka_unit_test(ends_whatever_happens),
		cmocka_unit_test(limits_are_kept),
		cmocka_unit_test(more_than_can_be_fetched),
		cmocka_unit_test(lies_are_refused),
	};

	return cmocka_run_group_tests_name("coll-fetch", tests, NULL, NULL);
}
