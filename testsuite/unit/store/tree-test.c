/* SPDX-License-Identifier: BSD-3-Clause */
/* Stores of several nodes: one home, requests that go up together, and nodes that go. */
#include "unit.h"

#include <errno.h>
#include <stdio.h>

#include "libstore/store.h"

#define NODES 7 /* 0 has the children 1 and 4, and these have two each */
#define WIDTH 2
#define QUEUE 4096

struct net;

struct node {
	struct net *net;
	struct store *store;
	uint32_t position;
	uint32_t sent_up; /* messages to the parent */
	int links_wanted;
};

struct message {
	uint32_t from, to;
	struct payload *bytes;
};

struct net {
	struct layout *layout;
	struct node nodes[NODES];
	struct message queue[QUEUE];
	uint32_t first, count;
	bool cut[NODES]; /* the link to the parent is down */
};

struct client {
	struct store_client *client;
	uint32_t answers;
	struct store_answer last;
	char value[64], text[STORE_TEXT_MAX];
};

static const char *const names[NODES] = { "n0", "n1", "n2", "n3", "n4", "n5", "n6" };
static struct net net;
static struct client c[NODES];

static uint32_t parent_of(uint32_t position)
{
	return tree_place(NODES, WIDTH, position).parent;
}

static void op_send(void *arg, uint32_t position, struct payload *message)
{
	struct node *n = arg;
	struct net *t = n->net;

	assert_true(t->count < QUEUE);
	n->sent_up += position == parent_of(n->position);
	if (t->cut[position == parent_of(n->position) ? n->position : position])
		return;
	t->queue[(t->first + t->count++) % QUEUE] = (struct message){
		n->position, position, payload_ref(message),
	};
}

static void op_links_wanted(void *arg)
{
	struct node *n = arg;

	n->links_wanted++;
}

/* Deliver up to `n` messages. */
static void deliver(uint32_t n)
{
	while (n-- && net.count) {
		struct message *m = &net.queue[net.first];

		net.first = (net.first + 1) % QUEUE;
		net.count--;
		assert_int_equal(store_input(net.nodes[m->to].store, m->from, m->bytes), 0);
		payload_unref(m->bytes);
	}
}

static void settle(void)
{
	deliver(UINT32_MAX);
}

static void on_answer(void *arg, uint64_t token, const struct store_answer *a)
{
	struct client *x = arg;

	x->answers++;
	x->last = *a;
	snprintf(x->text, sizeof(x->text), "%s", a->text);
	x->value[0] = '\0';
	if (a->nvalues && a->values[0])
		snprintf(x->value, sizeof(x->value), "%.*s", (int)a->values[0]->len,
			 (const char *)a->values[0]->data);
}

static const struct store_client_ops client_ops = { .answer = on_answer };

static int setup(void **state)
{
	static const struct store_options options;
	uint32_t counts[NODES], ranks[NODES];
	const uint32_t *lists[NODES];

	for (uint32_t i = 0; i < NODES; i++) {
		counts[i] = 1;
		ranks[i] = i;
		lists[i] = &ranks[i];
	}
	memset(&net, 0, sizeof(net));
	memset(c, 0, sizeof(c));
	assert_int_equal(layout_create(&net.layout, NODES, NODES, counts, lists), 0);
	for (uint32_t i = 0; i < NODES; i++) {
		struct tree_place place = tree_place(NODES, WIDTH, i);
		const struct store_ops ops = { op_send, op_links_wanted, &net.nodes[i] };

		net.nodes[i] = (struct node){ .net = &net, .position = i };
		assert_int_equal(store_create(&net.nodes[i].store, net.layout, &place, names,
					      &options, &ops), 0);
		c[i].client = store_client_open(net.nodes[i].store, STORE_SYNC, &client_ops,
						&c[i]);
	}
	return 0;
}

static int teardown(void **state)
{
	for (uint32_t i = 0; i < NODES; i++) {
		store_client_close(c[i].client);
		store_destroy(net.nodes[i].store);
	}
	while (net.count) {
		payload_unref(net.queue[net.first].bytes);
		net.first = (net.first + 1) % QUEUE;
		net.count--;
	}
	layout_destroy(net.layout);
	return 0;
}

#define CASE(name) TEST_WITH(name, setup, teardown)

static void ask_as(struct client *x, uint32_t rank, enum store_op op, const char *key,
		   const char *value)
{
	const struct store_bytes k = { key, strlen(key) };
	struct store_request rq = { .op = op, .keys = &k, .nkeys = 1, .rank = rank };

	if (value)
		rq.value = (struct store_bytes){ value, strlen(value) };
	if (op == STORE_ADD)
		rq.number = 1;
	store_ask(x->client, (uint64_t)(uintptr_t)key + op, &rq);
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

CASE(value_of_one_node_is_seen_on_all)
{
	ask(6, STORE_SET, "a", "1");
	settle();
	assert_done(6);
	for (uint32_t i = 0; i < NODES; i++) {
		ask(i, STORE_GET, "a", NULL);
		settle();
		assert_value(i, "1");
	}
}

CASE(first_use_makes_the_links_of_all_nodes_once)
{
	ask(5, STORE_COUNT, "", NULL);
	ask(5, STORE_GET, "a", NULL);
	settle();
	for (uint32_t i = 0; i < NODES; i++) {
		assert_true(store_used(net.nodes[i].store));
		assert_int_equal(net.nodes[i].links_wanted, 1);
	}
}

CASE(waits_of_one_key_go_up_together)
{
	struct client more[50] = { 0 };
	uint32_t before;

	ask(5, STORE_WAIT, "a", NULL);
	settle();
	before = net.nodes[5].sent_up;
	for (int i = 0; i < 50; i++) {
		more[i].client = store_client_open(net.nodes[5].store, STORE_SYNC,
						   &client_ops, &more[i]);
		ask_as(&more[i], 5, STORE_WAIT, "a", NULL);
	}
	settle();
	assert_int_equal(net.nodes[5].sent_up, before);
	ask(0, STORE_SET, "a", "1");
	settle();
	assert_done(5);
	assert_int_equal(net.nodes[5].sent_up, before + 1);
	for (int i = 0; i < 50; i++) {
		assert_int_equal(more[i].answers, 1);
		store_client_close(more[i].client);
	}
}

/* The answer under way is older than the second client's request. */
CASE(get_does_not_share_an_older_answer)
{
	struct client late = { 0 };

	late.client = store_client_open(net.nodes[1].store, STORE_SYNC, &client_ops, &late);
	ask(0, STORE_SET, "a", "old");
	settle();
	c[0].answers = 0;
	ask(1, STORE_GET, "a", NULL);
	deliver(1); /* the home has answered, and the answer is under way */
	ask(0, STORE_SET, "a", "new");
	assert_done(0);
	ask_as(&late, 1, STORE_GET, "a", NULL);
	settle();
	assert_value(1, "old");
	assert_int_equal(late.answers, 1);
	assert_string_equal(late.value, "new");
	store_client_close(late.client);
}

CASE(queries_of_a_client_take_effect_in_its_order)
{
	struct client other = { 0 };

	other.client = store_client_open(net.nodes[1].store, STORE_SYNC, &client_ops, &other);
	ask_as(&other, 1, STORE_GET, "a", NULL);
	ask(1, STORE_GET, "a", NULL); /* waits for the other's */
	ask_as(&c[1], 1, STORE_SET, "a", "1");
	settle();
	assert_int_equal(c[1].answers, 2);
	assert_string_equal(c[1].value, "");
	assert_string_equal(other.value, "");
	store_client_close(other.client);
}

CASE(withdrawn_wait_is_forgotten_at_home)
{
	ask(6, STORE_WAIT, "a", NULL);
	settle();
	store_client_close(c[6].client);
	settle();
	c[6].client = store_client_open(net.nodes[6].store, STORE_SYNC, &client_ops, &c[6]);
	for (uint32_t i = 0; i < NODES; i++)
		net.nodes[i].sent_up = 0;
	ask(0, STORE_SET, "a", "1");
	assert_int_equal(net.count, 0); /* nobody is answered */
	assert_int_equal(c[6].answers, 0);
}

CASE(barrier_of_all_nodes_ends)
{
	for (uint32_t i = 0; i < NODES; i++) {
		for (uint32_t j = 0; j < i; j++)
			assert_int_equal(c[j].answers, 0);
		ask(i, STORE_MEET, "b", NULL);
		settle();
	}
	for (uint32_t i = 0; i < NODES; i++)
		assert_done(i);
}

CASE(missing_ranks_are_named_with_their_nodes)
{
	ask(3, STORE_MEET, "b", NULL);
	ask(0, STORE_MEET, "b", NULL);
	ask(5, STORE_MEET, "b", NULL);
	settle();
	ask(5, STORE_MISSING, "b", NULL);
	settle();
	assert_string_equal(c[5].text, "ranks 1-2, 4, 6 (nodes n1, n2, n4, n6)");
}

static void assert_failed(uint32_t node, const char *text)
{
	assert_int_equal(c[node].answers, 1);
	assert_int_equal(c[node].last.status, STORE_FAILED);
	assert_string_equal(c[node].text, text);
	c[node].answers = 0;
}

CASE(rank_that_ended_before_the_first_use_is_known)
{
	store_rank_gone(net.nodes[6].store, 6, "exited with exit code 3");
	assert_int_equal(net.count, 0);
	ask(2, STORE_MEET, "b", NULL);
	settle();
	assert_failed(2, "barrier b cannot end: rank 6 (node n6) exited with exit code 3 and is not in it");
}

CASE(node_that_went_before_the_first_use_is_known)
{
	store_neighbour_gone(net.nodes[4].store, 5, "has left the step");
	net.cut[5] = true;
	ask(0, STORE_MEET, "b", NULL);
	settle();
	assert_failed(0, "barrier b cannot end: rank 5 (node n5) has left the step and is not in it");
}

CASE(lost_subtree_fails_barriers_and_its_waits_are_forgotten)
{
	ask(5, STORE_MEET, "b", NULL);
	ask(1, STORE_MEET, "b", NULL);
	ask(6, STORE_WAIT, "k", NULL);
	settle();
	net.cut[4] = true;
	store_neighbour_gone(net.nodes[0].store, 4, "is lost");
	store_neighbour_gone(net.nodes[4].store, 0, "lost node n0");
	settle();
	assert_failed(1, "barrier b cannot end: rank 4 (node n4) is lost and is not in it");
	assert_failed(5, "lost node n0");
	assert_failed(6, "lost node n0");
	ask(0, STORE_SET, "k", "1");
	settle();
	assert_done(0);
	ask(6, STORE_GET, "k", NULL);
	settle();
	assert_failed(6, "lost node n0");
	ask(2, STORE_GET, "k", NULL);
	settle();
	assert_value(2, "1");
}

CASE(wrong_messages_are_refused)
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
CASE(all_additions_count)
{
	for (uint32_t round = 0; round < 20; round++) {
		for (uint32_t i = 0; i < NODES; i++)
			ask(i, STORE_ADD, "n", NULL);
		deliver(round);
	}
	settle();
	for (uint32_t i = 0; i < NODES; i++)
		c[i].answers = 0;
	ask(6, STORE_GET, "n", NULL);
	settle();
	assert_value(6, "140");
}
