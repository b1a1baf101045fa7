/* SPDX-License-Identifier: BSD-3-Clause */
/* Stores of several nodes: one home, requests that go up together, and nodes that go. */
#include "net.h"

#include <errno.h>

#define NODES NET_NODES

static struct net_client *const c = net.clients;

static void ask_as(struct net_client *x, uint32_t rank, enum store_op op, const char *key,
		   const char *value)
{
	net_ask(x, rank, op, key, (struct store_bytes){ value, value ? strlen(value) : 0 });
}

static void ask(uint32_t node, enum store_op op, const char *key, const char *value)
{
	ask_as(&c[node], node, op, key, value);
}

static void assert_value(uint32_t node, const char *value)
{
	assert_int_equal(c[node].answers, 1);
	assert_int_equal(c[node].last.status, STORE_OK);
	assert_string_equal(c[node].value, value);
	c[node].answers = 0;
}

static void assert_done(uint32_t node)
{
	assert_value(node, "");
}

NET_TEST(value_of_one_node_is_seen_on_all)
{
	ask(6, STORE_SET, "a", "1");
	net_settle(&net);
	assert_done(6);
	for (uint32_t i = 0; i < NODES; i++) {
		ask(i, STORE_GET, "a", NULL);
		net_settle(&net);
		assert_value(i, "1");
	}
}

NET_TEST(first_use_makes_the_links_of_all_nodes_once)
{
	ask(5, STORE_COUNT, "", NULL);
	ask(5, STORE_GET, "a", NULL);
	net_settle(&net);
	for (uint32_t i = 0; i < NODES; i++)
		assert_int_equal(net.nodes[i].links_wanted, 1);
}

NET_TEST(waits_of_one_key_go_up_together)
{
	struct net_client more[50];
	uint32_t before;

	ask(5, STORE_WAIT, "a", NULL);
	net_settle(&net);
	before = net.nodes[5].sent_up;
	for (int i = 0; i < 50; i++) {
		net_client(&net, &more[i], 5);
		ask_as(&more[i], 5, STORE_WAIT, "a", NULL);
	}
	net_settle(&net);
	assert_int_equal(net.nodes[5].sent_up, before);
	ask(0, STORE_SET, "a", "1");
	net_settle(&net);
	assert_done(5);
	assert_int_equal(net.nodes[5].sent_up, before);
	for (int i = 0; i < 50; i++) {
		assert_int_equal(more[i].answers, 1);
		store_client_close(more[i].client);
	}
}

/* The answer under way brings a copy, so the change waits until the node has dropped it. */
NET_TEST(get_shares_an_answer_under_way_before_the_change_takes_effect)
{
	struct net_client late;

	net_client(&net, &late, 1);
	ask(0, STORE_SET, "a", "old");
	net_settle(&net);
	c[0].answers = 0;
	ask(1, STORE_GET, "a", NULL);
	net_deliver(&net, 1); /* the home has answered, and the answer is under way */
	ask(0, STORE_SET, "a", "new");
	assert_int_equal(c[0].answers, 0);
	ask_as(&late, 1, STORE_GET, "a", NULL);
	net_deliver(&net, 1);
	assert_value(1, "old");
	assert_string_equal(late.value, "old");
	assert_int_equal(c[0].answers, 0);
	net_settle(&net);
	assert_done(0);
	ask_as(&late, 1, STORE_GET, "a", NULL);
	net_settle(&net);
	assert_string_equal(late.value, "new");
	store_client_close(late.client);
}

NET_TEST(queries_of_a_client_take_effect_in_its_order)
{
	struct net_client other;

	net_client(&net, &other, 1);
	ask_as(&other, 1, STORE_GET, "a", NULL);
	ask(1, STORE_GET, "a", NULL); /* waits for the other's */
	ask_as(&c[1], 1, STORE_SET, "a", "1");
	net_settle(&net);
	assert_int_equal(c[1].answers, 2);
	assert_string_equal(c[1].value, "");
	assert_string_equal(other.value, "");
	store_client_close(other.client);
}

NET_TEST(withdrawn_wait_is_forgotten_at_home)
{
	ask(6, STORE_WAIT, "a", NULL);
	net_settle(&net);
	store_client_close(c[6].client);
	net_settle(&net);
	net_client(&net, &c[6], 6);
	for (uint32_t i = 0; i < NODES; i++)
		net.nodes[i].sent_up = 0;
	ask(0, STORE_SET, "a", "1");
	assert_int_equal(net.count, 0); /* nobody is answered */
	assert_int_equal(c[6].answers, 0);
}

NET_TEST(barrier_of_all_nodes_ends)
{
	for (uint32_t i = 0; i < NODES; i++) {
		for (uint32_t j = 0; j < i; j++)
			assert_int_equal(c[j].answers, 0);
		ask(i, STORE_MEET, "b", NULL);
		net_settle(&net);
	}
	for (uint32_t i = 0; i < NODES; i++)
		assert_done(i);
}

/* Rank 4 is the last one. Its node has told its children when it hears of its own end. */
NET_TEST(end_of_a_meeting_comes_once_over_a_link)
{
	for (uint32_t i = 0; i < NODES; i++)
		if (i != 4)
			ask(i, STORE_MEET, "b", NULL);
	net_settle(&net);
	ask(4, STORE_MEET, "b", NULL);
	net_deliver(&net, 1);
	assert_int_equal(net.count, 2); /* to nodes 1 and 4 */
	net_deliver(&net, 2);
	assert_int_equal(net.count, 4); /* to nodes 2, 3, 5 and 6 */
	net_settle(&net);
	for (uint32_t i = 0; i < NODES; i++)
		assert_done(i);
}

NET_TEST(missing_ranks_are_named_with_their_nodes)
{
	ask(3, STORE_MEET, "b", NULL);
	ask(0, STORE_MEET, "b", NULL);
	ask(5, STORE_MEET, "b", NULL);
	net_settle(&net);
	ask(5, STORE_MISSING, "b", NULL);
	net_settle(&net);
	assert_string_equal(c[5].text, "ranks 1-2, 4, 6 (nodes n1, n2, n4, n6)");
}

static void assert_failed(uint32_t node, const char *text)
{
	assert_int_equal(c[node].answers, 1);
	assert_int_equal(c[node].last.status, STORE_FAILED);
	assert_string_equal(c[node].text, text);
	c[node].answers = 0;
}

NET_TEST(rank_that_ended_before_the_first_use_is_known)
{
	store_rank_gone(net.nodes[6].store, 6, "exited with exit code 3");
	assert_int_equal(net.count, 0);
	ask(2, STORE_MEET, "b", NULL);
	net_settle(&net);
	assert_failed(2, "barrier b cannot end: rank 6 (node n6) exited with exit code 3 and is not in it");
}

NET_TEST(node_that_went_before_the_first_use_is_known)
{
	store_neighbour_gone(net.nodes[4].store, 5, "has left the step");
	net.cut[5] = true;
	ask(0, STORE_MEET, "b", NULL);
	net_settle(&net);
	assert_failed(0, "barrier b cannot end: rank 5 (node n5) has left the step and is not in it");
}

NET_TEST(lost_subtree_fails_barriers_and_its_waits_are_forgotten)
{
	ask(5, STORE_MEET, "b", NULL);
	ask(1, STORE_MEET, "b", NULL);
	ask(6, STORE_WAIT, "k", NULL);
	net_settle(&net);
	net.cut[4] = true;
	store_neighbour_gone(net.nodes[0].store, 4, "is lost");
	store_neighbour_gone(net.nodes[4].store, 0, "lost node n0");
	net_settle(&net);
	assert_failed(1, "barrier b cannot end: rank 4 (node n4) is lost and is not in it");
	assert_failed(5, "lost node n0");
	assert_failed(6, "lost node n0");
	ask(0, STORE_SET, "k", "1");
	net_settle(&net);
	assert_done(0);
	ask(6, STORE_GET, "k", NULL);
	net_settle(&net);
	assert_failed(6, "lost node n0");
	ask(2, STORE_GET, "k", NULL);
	net_settle(&net);
	assert_value(2, "1");
}

NET_TEST(wrong_messages_are_refused)
{
	struct payload *p = payload_copy("\1garbage", 8);

	assert_int_equal(store_input(net.nodes[1].store, 0, p), -EPROTO);
	assert_int_equal(store_input(net.nodes[1].store, 6, p), -EPROTO);
	payload_unref(p);
	p = payload_copy("\4\1\0\0\0\0\0\0\0", 9); /* rank 1, which is not below node 4, has gone */
	assert_int_equal(store_input(net.nodes[0].store, 1, p), 0);
	assert_int_equal(store_input(net.nodes[0].store, 4, p), -EPROTO);
	assert_int_equal(store_input(net.nodes[1].store, 0, p), -EPROTO);
	payload_unref(p);
}

/* Counters never lose an addition, whatever the order of messages of different links. */
NET_TEST(all_additions_count)
{
	for (uint32_t round = 0; round < 20; round++) {
		for (uint32_t i = 0; i < NODES; i++)
			ask(i, STORE_ADD, "n", NULL);
		net_deliver(&net, round);
	}
	net_settle(&net);
	for (uint32_t i = 0; i < NODES; i++)
		c[i].answers = 0;
	ask(6, STORE_GET, "n", NULL);
	net_settle(&net);
	assert_value(6, "140");
}

static const char *told(uint32_t node)
{
	static char text[STORE_TEXT_MAX];

	store_tell_wait(net.nodes[node].store, 12, text);
	return text;
}

NET_TEST(root_tells_whom_a_barrier_misses)
{
	ask(3, STORE_MEET, "b", NULL);
	ask(0, STORE_MEET, "b", NULL);
	ask(5, STORE_MEET, "b", NULL);
	net_settle(&net);
	assert_string_equal(told(0), "barrier b of pmi2x-sync: 12 s, waiting for 4 of 7 ranks: 1-2, 4, 6 (nodes n1, n2, n4, n6)");
	assert_true(store_oldest_wait(net.nodes[0].store) > 0);
	assert_string_equal(told(3), ""); /* the root knows better */
	for (uint32_t i = 1; i < NODES; i++)
		if (i != 3 && i != 5)
			ask(i, STORE_MEET, "b", NULL);
	net_settle(&net);
	assert_string_equal(told(0), "");
	assert_int_equal(store_oldest_wait(net.nodes[0].store), 0);
}

NET_TEST(node_tells_which_of_its_ranks_wait_for_a_key)
{
	struct net_client more;

	net_client(&net, &more, 5);
	ask_as(&more, 9, STORE_WAIT, "k\n", NULL);
	ask(5, STORE_FETCH, "k\n", NULL);
	ask(5, STORE_FETCH, "other", NULL);
	net_settle(&net);
	assert_string_equal(told(5), "key k?: 12 s, ranks 5, 9 (node n5) wait for it, and it has no value");
	assert_string_equal(told(0), "");
	assert_int_equal(store_oldest_wait(net.nodes[0].store), 0);
	store_client_close(more.client);
	ask(0, STORE_SET, "k\n", "1");
	net_settle(&net);
	assert_string_equal(told(5), "key other: 12 s, rank 5 (node n5) waits for it, and it has no value");
}

NET_TEST(number_of_the_oldest_wait_changes_when_it_ends)
{
	uint64_t first;

	ask(0, STORE_WAIT, "a", NULL);
	first = store_oldest_wait(net.nodes[0].store);
	ask(0, STORE_WAIT, "b", NULL);
	assert_int_equal(store_oldest_wait(net.nodes[0].store), first);
	ask(1, STORE_SET, "a", NULL);
	net_settle(&net);
	assert_true(store_oldest_wait(net.nodes[0].store) != first);
}
