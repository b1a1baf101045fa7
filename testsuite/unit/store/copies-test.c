/* SPDX-License-Identifier: BSD-3-Clause */
/* Copies of values on nodes that are not the root, and their recall before a change. */
#include "net.h"

#include <errno.h>

#include "libstore/store_msg.h"

#define RECALLS 20 /* more than a key is lent again after */

static struct net_client *ask_key(uint32_t node, enum store_op op, const char *key,
				  const char *value)
{
	struct net_client *x = &net.clients[node];

	x->answers = 0;
	net_ask(x, node, op, key, (struct store_bytes){ value, value ? strlen(value) : 0 });
	return x;
}

static struct net_client *ask(uint32_t node, enum store_op op, const char *value)
{
	return ask_key(node, op, "a", value);
}

static void do_ask(uint32_t node, enum store_op op, const char *value)
{
	const struct net_client *x = ask(node, op, value);

	net_settle(&net);
	assert_int_equal(x->answers, 1);
	assert_int_equal(x->last.status, STORE_OK);
}

static void assert_get(uint32_t node, const char *value)
{
	do_ask(node, STORE_GET, NULL);
	assert_string_equal(net.clients[node].value, value);
}

/* Answered before any message is delivered. */
static void assert_copy(uint32_t node, const char *value)
{
	const struct net_client *x = ask(node, STORE_GET, NULL);

	assert_int_equal(net.count, 0);
	assert_int_equal(x->answers, 1);
	assert_string_equal(x->value, value);
}

NET_TEST(second_read_of_a_node_sends_nothing)
{
	do_ask(0, STORE_SET, "1");
	assert_get(6, "1");
	assert_copy(6, "1");
	do_ask(4, STORE_WAIT, NULL); /* the parent of 6 has one, too */
	assert_copy(4, "1");
	ask(6, STORE_CHECK, NULL);
	assert_int_equal(net.count, 0);
	assert_int_equal(net.clients[6].last.number, 1);
}

NET_TEST(wait_brings_the_value_to_its_node_but_not_to_its_client)
{
	ask(6, STORE_WAIT, NULL);
	net_settle(&net);
	do_ask(0, STORE_SET, "1");
	assert_int_equal(net.clients[6].answers, 1);
	assert_int_equal(net.clients[6].last.nvalues, 0);
	assert_copy(6, "1");
}

/* Two links lead away from the root. */
NET_TEST(value_leaves_the_root_once_for_each_child)
{
	for (uint32_t i = 1; i < NET_NODES; i++)
		ask(i, STORE_WAIT, NULL);
	net_settle(&net);
	ask(0, STORE_SET, "1");
	assert_int_equal(net.count, 2);
	net_settle(&net);
	for (uint32_t i = 1; i < NET_NODES; i++)
		assert_copy(i, "1");
}

NET_TEST(change_waits_until_all_copies_are_dropped)
{
	const struct net_client *x;

	do_ask(0, STORE_SET, "1");
	for (uint32_t i = 1; i < NET_NODES; i++)
		assert_get(i, "1");
	x = ask(0, STORE_SET, "2");
	assert_int_equal(x->answers, 0);
	net_deliver(&net, 1); /* node 1 passes the recall on */
	assert_int_equal(x->answers, 0);
	net_settle(&net);
	assert_int_equal(x->answers, 1);
	for (uint32_t i = 0; i < NET_NODES; i++)
		assert_get(i, "2");
}

NET_TEST(node_that_changes_a_key_drops_its_copy)
{
	do_ask(0, STORE_SET, "1");
	assert_get(2, "1");
	do_ask(2, STORE_SET, "2");
	assert_get(2, "2");
	assert_copy(2, "2");
}

/* The read was sent before the change: its answer must not become a copy. */
NET_TEST(answer_that_is_older_than_a_change_of_the_node_is_not_kept)
{
	struct net_client other;

	do_ask(0, STORE_SET, "old");
	net_client(&net, &other, 2);
	ask(2, STORE_GET, NULL);
	net_ask(&other, 2, STORE_SET, "a", (struct store_bytes){ "new", 3 });
	net_settle(&net);
	assert_int_equal(other.answers, 1);
	assert_get(2, "new");
	store_client_close(other.client);
}

NET_TEST(requests_behind_a_held_change_keep_their_order)
{
	struct net_client other;

	net_client(&net, &other, 0);
	do_ask(0, STORE_SET, "1");
	assert_get(6, "1");
	ask(0, STORE_SET, "2");
	net_ask(&other, 0, STORE_SET, "b", (struct store_bytes){ "x", 1 });
	net_ask(&other, 0, STORE_GET, "a", (struct store_bytes){ NULL, 0 });
	assert_int_equal(other.answers, 1);
	net_settle(&net);
	assert_int_equal(other.answers, 2);
	assert_string_equal(other.value, "2");
	store_client_close(other.client);
}

NET_TEST(request_behind_a_held_one_waits_for_it)
{
	struct net_client other;

	net_client(&net, &other, 0);
	do_ask(0, STORE_SET, "1");
	assert_get(6, "1");
	ask(0, STORE_SET, "2");
	net_ask(&other, 0, STORE_GET, "a", (struct store_bytes){ NULL, 0 });
	net_ask(&other, 0, STORE_SET, "b", (struct store_bytes){ "x", 1 });
	assert_int_equal(other.answers, 0);
	net_settle(&net);
	assert_int_equal(other.answers, 2);
	store_client_close(other.client);
}

/* Node 1 does not answer, and has a copy of one key. */
NET_TEST(recall_holds_up_only_requests_for_its_key)
{
	struct net_client other;

	net_client(&net, &other, 0);
	do_ask(0, STORE_SET, "1");
	assert_get(2, "1");
	ask_key(0, STORE_SET, "b", "1");
	ask_key(5, STORE_GET, "b", NULL);
	net_settle(&net);
	net.cut[1] = true;
	ask(0, STORE_SET, "2");
	net_ask(&other, 0, STORE_SET, "c", (struct store_bytes){ "3", 1 });
	assert_int_equal(other.answers, 1);
	ask_key(5, STORE_SET, "b", "2"); /* this recall is under way at the same time */
	net_settle(&net);
	assert_int_equal(net.clients[5].answers, 1);
	ask(5, STORE_GET, NULL);
	net_settle(&net);
	assert_int_equal(net.clients[5].answers, 0);
	store_neighbour_gone(net.nodes[0].store, 1, "lost node n1");
	net_settle(&net);
	assert_int_equal(net.clients[5].answers, 1);
	assert_string_equal(net.clients[5].value, "2");
	store_client_close(other.client);
}

NET_TEST(held_request_is_withdrawn_with_its_client)
{
	struct net_client other;

	net_client(&net, &other, 0);
	do_ask(0, STORE_SET, "1");
	assert_get(6, "1");
	net_ask(&other, 0, STORE_SET, "a", (struct store_bytes){ "2", 1 });
	net_ask(&other, 0, STORE_WAIT, "b", (struct store_bytes){ NULL, 0 });
	store_client_close(other.client);
	net_settle(&net);
	assert_int_equal(other.answers, 0);
	assert_get(0, "1");
}

NET_TEST(change_does_not_wait_for_a_node_that_has_gone)
{
	const struct net_client *x;

	do_ask(0, STORE_SET, "1");
	assert_get(6, "1");
	net.cut[4] = true;
	x = ask(0, STORE_SET, "2");
	assert_int_equal(x->answers, 0);
	store_neighbour_gone(net.nodes[0].store, 4, "lost node n4");
	assert_int_equal(x->answers, 1);
	do_ask(0, STORE_SET, "3");
}

NET_TEST(node_without_parent_has_no_copies)
{
	do_ask(0, STORE_SET, "1");
	assert_get(6, "1");
	store_neighbour_gone(net.nodes[6].store, 4, "lost node n4");
	ask(6, STORE_GET, NULL);
	assert_int_equal(net.clients[6].last.status, STORE_FAILED);
}

NET_TEST(key_that_changes_often_is_no_longer_lent)
{
	for (int i = 0; i < RECALLS; i++) {
		do_ask(0, STORE_SET, "1");
		assert_get(6, "1");
	}
	ask(0, STORE_SET, "2"); /* nobody to ask first */
	assert_int_equal(net.clients[0].answers, 1);
	assert_get(6, "2");
}

NET_TEST(deleted_key_is_recalled)
{
	do_ask(0, STORE_SET, "1");
	assert_get(6, "1");
	do_ask(3, STORE_DELETE, NULL);
	assert_get(6, "");
}

NET_TEST(answer_to_no_recall_is_refused)
{
	const struct store_msg done = { .type = STORE_MSG_RECALLED };
	struct payload *p = store_msg_make(&done, NULL);

	assert_int_equal(store_input(net.nodes[0].store, 1, p), -EPROTO);
	assert_int_equal(store_input(net.nodes[1].store, 0, p), -EPROTO);
	payload_unref(p);
}
