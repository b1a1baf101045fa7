/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Nodes that are libstore's object, as the agent has it: keys of the step at the root, requests
 * that are combined on their way, copies of values. Messages go through the wire form, and values
 * have bytes, which each rank compares.
 *
 * In a share, some ranks set a key each. Every rank, also one that has set a key, fetches all keys
 * in the same order. It asks for the next one when it has the answer, as PyTorch's TCPStore does.
 * A set has no answer that the rank waits for.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libstore/store.h"
#include "libstore/store_msg.h"
#include "sim.h"

#define KEY_BYTES_MAX 1024
#define SET_TOKEN ((uint64_t)1 << 63) /* in the token of a set */

/* A rank's connection to its node. */
struct sharer {
	struct sim_node *node;
	struct store_client *client;
	uint32_t slot;
	uint32_t key; /* that it waits for */
};

struct store_node {
	struct store *store;
	struct sharer *sharers; /* by slot */
	uint32_t phase;         /* of the messages that it sends */
};

static struct store_node *store_of(const struct sim_node *n)
{
	return n->state;
}

/* ---- keys and values ---- */

/* The name of a key of an operation: as long as the scenario says. */
static struct store_bytes key_name(const struct sim *s, uint32_t op, uint32_t key,
				   char text[KEY_BYTES_MAX])
{
	size_t len = s->scenario->key_bytes;
	int n = snprintf(text, KEY_BYTES_MAX, "%u.%u", op, key);

	if ((size_t)n < len)
		memset(text + n, '.', len - n);
	return (struct store_bytes){ text, len };
}

static unsigned char value_byte(uint32_t op, uint32_t key)
{
	return op + key;
}

static bool is_value(const struct payload *p, uint32_t len, unsigned char byte)
{
	return p && p->len == len &&
	       (!len || (p->data[0] == byte && !memcmp(p->data, p->data + 1, len - 1)));
}

/* ---- requests of ranks ---- */

static void ask(struct sharer *r, uint32_t op, uint64_t token, struct store_request *rq)
{
	char text[KEY_BYTES_MAX];
	const struct store_bytes name = key_name(r->node->sim, op, (uint32_t)token, text);

	rq->keys = &name;
	rq->nkeys = 1;
	node_spend(r->node, r->node->sim->scenario->node.request);
	store_ask(r->client, token, rq);
}

/* No two operations have the same tokens: a set may be answered in a later one. */
static uint64_t token_of(uint32_t op, uint32_t key)
{
	return (uint64_t)op << 32 | key;
}

static void set(struct sharer *r, uint32_t op, uint32_t key)
{
	uint32_t len = r->node->sim->scenario->ops[op].bytes;
	void *value = malloc(len + 1);

	if (!value) {
		sim_fail(r->node->sim, "not enough memory");
		return;
	}
	memset(value, value_byte(op, key), len);
	ask(r, op, SET_TOKEN | token_of(op, key),
	    &(struct store_request){ .op = STORE_SET, .value = { value, len } });
	free(value);
}

/* The keys are shared out evenly: key k is set by rank k * ranks / keys. */
static void set_own(struct sharer *r, uint32_t op)
{
	const struct sim *s = r->node->sim;
	uint64_t rank = r->node->first + r->slot, keys = s->scenario->ops[op].keys;

	for (uint64_t k = (rank * keys + s->nranks - 1) / s->nranks;
	     k < keys && k * s->nranks / keys == rank; k++)
		set(r, op, k);
}

static void fetch(struct sim_node *n, uint32_t slot, uint32_t op)
{
	struct sharer *r = &store_of(n)->sharers[slot];

	store_of(n)->phase = op;
	ask(r, op, token_of(op, r->key), &(struct store_request){ .op = STORE_FETCH });
}

static void enter(struct sim_node *n, uint32_t slot, uint32_t op)
{
	struct sharer *r = &store_of(n)->sharers[slot];

	store_of(n)->phase = op;
	r->key = 0;
	set_own(r, op);
	fetch(n, slot, op);
}

/* Must not call back into the store: the next key is asked for in an event. */
static void on_answer(void *arg, uint64_t token, const struct store_answer *a)
{
	struct sharer *r = arg;
	struct sim *s = r->node->sim;
	uint32_t op = s->ranks[r->node->first + r->slot].next;

	if (a->status != STORE_OK)
		sim_fail(s, "the store of node %u answered: %s", r->node->id, a->text);
	if (a->status != STORE_OK || token & SET_TOKEN)
		return;
	if (token != token_of(op, r->key) || a->nvalues != 1 ||
	    !is_value(a->values[0], s->scenario->ops[op].bytes, value_byte(op, r->key))) {
		sim_fail(s, "rank %u got another value than the one that was set, of key %u in operation %u",
			 rank_number(s, r->node->first + r->slot), r->key, op + 1);
		return;
	}
	if (++r->key == s->scenario->ops[op].keys)
		rank_exits(r->node, r->slot, NULL);
	else
		rank_asks_on(r->node, r->slot);
}

static const struct store_client_ops client_ops = { .answer = on_answer };

/* ---- messages ---- */

static void op_send(void *arg, uint32_t position, const struct payload_vec *message)
{
	struct sim_node *n = arg;
	struct payload *body = payload_vec_join(message);

	if (body)
		message_send(n, position, store_of(n)->phase, "", 0, body->len, body);
	else
		sim_fail(n->sim, "not enough memory");
	payload_unref(body);
}

/* All links are there. */
static void op_links_wanted(void *arg)
{
}

/* Values that the sender has let out, to one child. */
static int count_values(const struct sim_node *n, const struct sim_message *m)
{
	struct store_msg msg;
	int rc = m->from == n->parent ? store_msg_unpack(&msg, m->body) : -1;

	if (rc)
		return m->from == n->parent ? rc : 0;
	for (uint32_t i = 0; i < msg.answer.nvalues; i++)
		stats_node(n->sim, m->phase, m->from)->values += msg.answer.values[i] != NULL;
	store_msg_free(&msg);
	return 0;
}

static void receive(struct sim_node *n, struct sim_message *m)
{
	store_of(n)->phase = m->phase;
	if (count_values(n, m) || store_input(store_of(n)->store, m->from, m->body))
		sim_fail(n->sim, "node %u refused a message of node %u in operation %u", n->id,
			 n->sim->nodes[m->from].id, m->phase + 1u);
}

/* ---- a node ---- */

static int open_sharers(struct sim_node *n)
{
	struct store_node *p = store_of(n);

	p->sharers = calloc(n->nranks, sizeof(*p->sharers));
	if (!p->sharers)
		return -1;
	for (uint32_t i = 0; i < n->nranks; i++) {
		struct sharer *r = &p->sharers[i];

		r->node = n;
		r->slot = i;
		r->client = store_client_open(p->store, STORE_TORCH, &client_ops, r);
		if (!r->client)
			return -1;
	}
	return 0;
}

/* Nodes have no names: only meetings and reports use these. */
static int create(struct sim *s, struct sim_node *n)
{
	const struct tree_place place = tree_place(s->nnodes, s->width, n->position);
	const struct store_options options = { .seed = s->scenario->seed };
	const struct store_ops ops = { op_send, op_links_wanted, n };
	struct store_node *p = calloc(1, sizeof(*p));

	if (!p)
		return -1;
	n->state = p;
	if (store_create(&p->store, s->layout, &place, NULL, &options, &ops))
		return -1;
	return open_sharers(n);
}

static void destroy(struct sim_node *n)
{
	struct store_node *p = store_of(n);

	for (uint32_t i = 0; p->sharers && i < n->nranks; i++)
		store_client_close(p->sharers[i].client);
	store_destroy(p->store);
	free(p->sharers);
	free(p);
}

static void describe(const struct sim_node *n, char *out, size_t len)
{
	snprintf(out, len, "%u requests wait at its store", store_waiting(store_of(n)->store));
}

const struct sim_protocol protocol_store = {
	.create = create,
	.destroy = destroy,
	.enter = enter,
	.more = fetch,
	.receive = receive,
	.describe = describe,
};
