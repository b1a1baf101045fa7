/* SPDX-License-Identifier: BSD-3-Clause */
/* Flow control between nodes: bytes on the way have a limit, and all requests are answered. */
#include "net.h"

#include <errno.h>

#include "libutil/budget.h"

#define ON_THE_WAY_MAX (STORE_WINDOW + STORE_VALUE_MAX + 4096) /* bytes; a window and a message */
#define SMALL 1000 /* messages */

static struct budget budget;
static char *large;
static char keys[NET_QUEUE][8];

static int setup(void **state)
{
	const struct store_options options = {
		.bytes = (uint64_t)1 << 30, .budget = &budget,
	};

	budget_init(&budget, (uint64_t)2 << 30, "Pmi2xBufferLimit", NULL);
	net_open(&net, &options);
	large = calloc(1, STORE_VALUE_MAX);
	for (int i = 0; i < NET_QUEUE; i++)
		snprintf(keys[i], sizeof(keys[i]), "k%d", i);
	return large ? 0 : -1;
}

static int teardown(void **state)
{
	net_close(&net);
	assert_int_equal(budget.used, 0);
	free(large);
	return 0;
}

#define CASE(name) TEST_WITH(name, setup, teardown)

static void ask(uint32_t node, enum store_op op, int key, size_t len)
{
	net_ask(&net.clients[node], node, op, keys[key], (struct store_bytes){ large, len });
}

static void assert_links_are_bounded(void)
{
	for (uint32_t i = 0; i < NET_NODES; i++)
		assert_true(net.nodes[i].most_under_way <= ON_THE_WAY_MAX);
}

static void assert_all_answered(uint32_t node, uint32_t n)
{
	assert_int_equal(net.clients[node].answers, n);
	assert_int_equal(net.clients[node].last.status, STORE_OK);
	net.clients[node].answers = 0;
}

CASE(large_puts_of_all_nodes_wait_in_their_nodes)
{
	for (int round = 0; round < 10; round++)
		for (uint32_t i = 1; i < NET_NODES; i++)
			ask(i, STORE_SET, 10 * (int)i + round, STORE_VALUE_MAX);
	assert_links_are_bounded();
	net_settle(&net);
	assert_links_are_bounded();
	for (uint32_t i = 1; i < NET_NODES; i++)
		assert_all_answered(i, 10);
}

/* Nothing is delivered, so nodes 2, 3 and their parent keep what does not fit. */
CASE(parent_that_is_slow_holds_back_its_children)
{
	uint32_t taken;

	for (int round = 0; round < 10; round++) {
		ask(2, STORE_SET, round, STORE_VALUE_MAX);
		ask(3, STORE_SET, 10 + round, STORE_VALUE_MAX);
	}
	for (taken = 0; net.count && taken < SMALL; taken++) {
		struct net_message *m = &net.queue[net.first];

		if (m->to == 0) /* the root takes nothing */
			break;
		net_deliver(&net, 1);
	}
	assert_links_are_bounded();
	net_settle(&net);
	assert_all_answered(2, 10);
	assert_all_answered(3, 10);
}

CASE(large_answers_wait_in_the_root)
{
	ask(0, STORE_SET, 0, STORE_VALUE_MAX);
	ask(0, STORE_SET, 1, 3);
	assert_all_answered(0, 2);
	for (int round = 0; round < 20; round++)
		for (uint32_t i = 1; i < NET_NODES; i++)
			ask(i, STORE_GET, round % 2, 0); /* each follows another one */
	net_settle(&net);
	assert_links_are_bounded();
	for (uint32_t i = 1; i < NET_NODES; i++)
		assert_all_answered(i, 20);
	assert_true(budget.used < NET_NODES * (STORE_VALUE_MAX + 4096)); /* a copy each */
}

CASE(order_is_kept_behind_large_puts)
{
	for (int round = 0; round < 5; round++)
		ask(5, STORE_SET, 0, STORE_VALUE_MAX);
	ask(5, STORE_SET, 0, 3);
	net_ask(&net.clients[5], 5, STORE_FETCH, keys[0], (struct store_bytes){ NULL, 0 });
	net_settle(&net);
	assert_all_answered(5, 7);
	assert_int_equal(net.clients[5].value_len, 3);
}

CASE(many_small_messages_need_credit_too)
{
	for (int round = 0; round < SMALL; round++) {
		for (uint32_t i = 1; i < NET_NODES; i++)
			ask(i, STORE_SET, (int)i, 20000);
		net_deliver(&net, 3);
	}
	assert_links_are_bounded();
	net_settle(&net);
	for (uint32_t i = 1; i < NET_NODES; i++)
		assert_all_answered(i, SMALL);
}

/* Requests that wait for a node that has gone fail, and their memory comes back. */
CASE(queue_ends_with_its_neighbour)
{
	for (int round = 0; round < 10; round++)
		ask(2, STORE_SET, round, STORE_VALUE_MAX);
	net.cut[2] = true;
	store_neighbour_gone(net.nodes[2].store, 1, "lost node n1");
	store_neighbour_gone(net.nodes[1].store, 2, "is lost");
	assert_int_equal(net.clients[2].answers, 10);
	assert_int_equal(net.clients[2].last.status, STORE_FAILED);
	net_settle(&net);
}

CASE(node_without_memory_for_a_request_names_the_option)
{
	budget.limit = 20u << 20;
	for (int round = 0; round < 3; round++)
		ask(2, STORE_SET, round, STORE_VALUE_MAX);
	assert_int_equal(net.clients[2].answers, 1);
	assert_int_equal(net.clients[2].last.status, STORE_FULL);
	assert_non_null(strstr(net.clients[2].text, "Pmi2xBufferLimit"));
	net_settle(&net);
}

CASE(credit_that_nobody_has_given_is_refused)
{
	struct payload *p = payload_copy("\7\1\0\0\0\0\0\0\0", 9);

	assert_int_equal(store_input(net.nodes[0].store, 1, p), -EPROTO);
	payload_unref(p);
}
