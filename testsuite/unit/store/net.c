/* SPDX-License-Identifier: BSD-3-Clause */
/* Stores of seven nodes with a rank each, and one client at each node. */
#include "net.h"

static const char *const names[NET_NODES] = { "n0", "n1", "n2", "n3", "n4", "n5", "n6" };

static uint32_t parent_of(uint32_t position)
{
	return tree_place(NET_NODES, NET_WIDTH, position).parent;
}

/* ---- messages ---- */

static void op_send(void *arg, uint32_t position, const struct payload_vec *message)
{
	struct net_node *n = arg;
	struct net *t = n->net;
	bool up = position == parent_of(n->position);

	assert_true(t->count < NET_QUEUE);
	n->sent_up += up;
	if (t->cut[up ? n->position : position])
		return;
	n->under_way[position] += message->bytes;
	if (n->under_way[position] > n->most_under_way)
		n->most_under_way = n->under_way[position];
	t->queue[(t->first + t->count++) % NET_QUEUE] = (struct net_message){
		n->position, position, payload_vec_join(message),
	};
}

static void op_links_wanted(void *arg)
{
	struct net_node *n = arg;

	n->links_wanted++;
}

void net_deliver(struct net *t, uint32_t n)
{
	while (n-- && t->count) {
		struct net_message m = t->queue[t->first];

		t->first = (t->first + 1) % NET_QUEUE;
		t->count--;
		t->nodes[m.from].under_way[m.to] -= m.bytes->len;
		assert_int_equal(store_input(t->nodes[m.to].store, m.from, m.bytes), 0);
		payload_unref(m.bytes);
	}
}

void net_settle(struct net *t)
{
	net_deliver(t, UINT32_MAX);
}

/* ---- clients ---- */

static void on_answer(void *arg, uint64_t token, const struct store_answer *a)
{
	struct net_client *x = arg;

	x->answers++;
	x->last = *a;
	x->last.values = NULL;
	snprintf(x->text, sizeof(x->text), "%s", a->text);
	x->value[0] = '\0';
	x->value_len = 0;
	if (!a->nvalues || !a->values[0])
		return;
	x->value_len = a->values[0]->len;
	snprintf(x->value, sizeof(x->value), "%.*s", (int)a->values[0]->len,
		 (const char *)a->values[0]->data);
}

void net_client(struct net *t, struct net_client *x, uint32_t node)
{
	static const struct store_client_ops ops = { .answer = on_answer };

	memset(x, 0, sizeof(*x));
	x->client = store_client_open(t->nodes[node].store, STORE_SYNC, &ops, x);
	assert_non_null(x->client);
}

void net_ask(struct net_client *x, uint32_t rank, enum store_op op, const char *key,
	     struct store_bytes value)
{
	const struct store_bytes k = { key, strlen(key) };
	const struct store_request rq = {
		.op = op, .keys = &k, .nkeys = 1, .rank = rank, .value = value,
		.number = op == STORE_ADD,
	};

	store_ask(x->client, (uint64_t)(uintptr_t)key + op, &rq);
}

/* ---- life ---- */

void net_open(struct net *t, const struct store_options *options)
{
	uint32_t counts[NET_NODES], ranks[NET_NODES];
	const uint32_t *lists[NET_NODES];

	for (uint32_t i = 0; i < NET_NODES; i++) {
		counts[i] = 1;
		ranks[i] = i;
		lists[i] = &ranks[i];
	}
	memset(t, 0, sizeof(*t));
	assert_int_equal(layout_create(&t->layout, NET_NODES, NET_NODES, counts, lists), 0);
	for (uint32_t i = 0; i < NET_NODES; i++) {
		struct tree_place place = tree_place(NET_NODES, NET_WIDTH, i);
		const struct store_ops ops = { op_send, op_links_wanted, &t->nodes[i] };

		t->nodes[i] = (struct net_node){ .net = t, .position = i };
		assert_int_equal(store_create(&t->nodes[i].store, t->layout, &place, names,
					      options, &ops), 0);
		net_client(t, &t->clients[i], i);
	}
}

void net_close(struct net *t)
{
	for (uint32_t i = 0; i < NET_NODES; i++) {
		store_client_close(t->clients[i].client);
		store_destroy(t->nodes[i].store);
	}
	while (t->count) {
		payload_unref(t->queue[t->first].bytes);
		t->first = (t->first + 1) % NET_QUEUE;
		t->count--;
	}
	layout_destroy(t->layout);
}

struct net net;

int net_setup(void **state)
{
	static const struct store_options options;

	net_open(&net, &options);
	return 0;
}

int net_teardown(void **state)
{
	net_close(&net);
	return 0;
}
