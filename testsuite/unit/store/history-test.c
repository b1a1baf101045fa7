/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Histories of the store are linearizable: in random orders of messages on seven nodes, also when a
 * leaf of the tree is lost, and in all orders of a small step. They keep the order of each client.
 * All clients of nodes that live get their answers. The checker finds recalls that are
 * skipped, copies that nobody recalls, requests that overtake others, and links that reorder.
 *
 * A failure prints its seed; HISTORY_SEED=n HISTORY_RUNS=1 runs that one again. HISTORY_DEEP=1 has
 * another read in the small step.
 */
#include "unit.h"

#include <stdio.h>

#include "history.h"
#include "libstore/store_msg.h"

#define NODES_MAX 7
#define CLIENTS_MAX 8
#define IN_FLIGHT 3   /* requests of a client */
#define QUEUE 256     /* messages of a link */
#define CHOICES_MAX 256
#define EVENT_LOST (CLIENTS_MAX + NODES_MAX * NODES_MAX) /* see step */
#define EVENTS_MAX (EVENT_LOST + 1)

enum mutant {
	MUTANT_NONE,
	MUTANT_COPIES, /* a node answers GET from the last answer that it has seen */
	MUTANT_LINKS,  /* a link delivers any of its messages next */
	MUTANT_RECALLS, /* a node answers a recall, and does not drop its copy */
	MUTANT_BEHIND, /* a request does not say that its client has asked others before it */
};

struct link {
	struct payload *queue[QUEUE];
	uint32_t n;
};

struct client {
	struct world *world;
	struct store_client *client;
	uint32_t node, index, in_flight, left;
};

/* The events of a run: a client asks, or a link delivers. */
struct world {
	uint32_t nodes, width, nclients, keys;
	uint32_t lost; /* a node that is lost; NODES_MAX: none */
	bool dead, noticed; /* it is, and its parent knows that */
	enum mutant mutant;
	uint32_t (*choose)(struct world *w, uint32_t n); /* below n */
	uint64_t random;
	uint32_t choices[CHOICES_MAX], of[CHOICES_MAX], depth; /* of a run of all orders */
	struct layout *layout;
	struct store *stores[NODES_MAX];
	struct link links[NODES_MAX * NODES_MAX]; /* from * NODES_MAX + to */
	struct client clients[CLIENTS_MAX];
	int64_t copies[NODES_MAX][HISTORY_MAX]; /* by key; 0: none */
	struct history history;
};

struct sender {
	struct world *world;
	uint32_t node;
};

static struct sender senders[NODES_MAX];
static const char *const names[NODES_MAX] = { "n0", "n1", "n2", "n3", "n4", "n5", "n6" };
static const char *const keys[] = { "a", "b", "c" };

/* ---- choices ---- */

static uint32_t choose_random(struct world *w, uint32_t n)
{
	w->random = w->random * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)((w->random >> 33) % n);
}

/* The choices of the run before, and then 0. */
static uint32_t choose_next(struct world *w, uint32_t n)
{
	assert_true(w->depth < CHOICES_MAX);
	if (!w->of[w->depth])
		w->choices[w->depth] = 0;
	w->of[w->depth] = n;
	return w->choices[w->depth++];
}

/* Prepare the next run of all orders; false: there is none. */
static bool next_order(struct world *w)
{
	while (w->depth && w->choices[w->depth - 1] + 1 == w->of[w->depth - 1])
		w->depth--;
	if (!w->depth)
		return false;
	w->choices[w->depth - 1]++;
	memset(&w->of[w->depth], 0, sizeof(w->of) - w->depth * sizeof(*w->of));
	w->depth = 0;
	return true;
}

/* ---- links ---- */

static void op_send(void *arg, uint32_t position, const struct payload_vec *message)
{
	struct sender *s = arg;
	struct link *l = &s->world->links[s->node * NODES_MAX + position];

	if (s->world->dead && (s->node == s->world->lost || position == s->world->lost))
		return;
	assert_true(l->n < QUEUE);
	l->queue[l->n++] = payload_vec_join(message);
}

/* The parent gets the answer to a recall that its child has not had. */
static void skip_recall(struct world *w, uint32_t which, struct payload *recall)
{
	struct store_msg m;
	struct payload *p;

	assert_int_equal(store_msg_unpack(&m, recall), 0);
	store_msg_free(&m);
	m.type = STORE_MSG_RECALLED;
	p = store_msg_make(&m, NULL);
	assert_int_equal(store_input(w->stores[which / NODES_MAX], which % NODES_MAX, p), 0);
	payload_unref(p);
}

static void deliver(struct world *w, uint32_t which)
{
	struct link *l = &w->links[which];
	uint32_t at = w->mutant == MUTANT_LINKS ? w->choose(w, l->n) : 0;
	struct payload *p = l->queue[at];

	if (w->mutant == MUTANT_BEHIND && p->data[0] == STORE_MSG_BEHIND)
		p->data[0] = STORE_MSG_ASK;
	l->n--;
	memmove(&l->queue[at], &l->queue[at + 1], (l->n - at) * sizeof(*l->queue));
	if (w->mutant == MUTANT_RECALLS && p->data[0] == STORE_MSG_RECALL)
		skip_recall(w, which, p);
	else
		assert_int_equal(store_input(w->stores[which % NODES_MAX], which / NODES_MAX, p), 0);
	payload_unref(p);
}

/* ---- a node that is lost ---- */

static void drop_messages(struct link *l, uint32_t n)
{
	while (n--)
		payload_unref(l->queue[--l->n]);
}

/* Its last messages may not arrive. */
static void lose_node(struct world *w)
{
	w->dead = true;
	for (uint32_t i = 0; i < w->nclients; i++) {
		struct client *c = &w->clients[i];

		if (c->node != w->lost)
			continue;
		store_client_close(c->client);
		c->client = NULL;
		c->left = 0;
	}
	store_destroy(w->stores[w->lost]);
	w->stores[w->lost] = NULL;
	for (uint32_t i = 0; i < w->nodes; i++) {
		struct link *from = &w->links[w->lost * NODES_MAX + i];
		struct link *to = &w->links[i * NODES_MAX + w->lost];

		drop_messages(to, to->n);
		drop_messages(from, from->n ? w->choose(w, from->n + 1) : 0);
	}
}

static uint32_t parent_of(const struct world *w, uint32_t node)
{
	return tree_place(w->nodes, w->width, node).parent;
}

/* The parent may notice when it has all messages that have arrived. */
static bool can_notice(const struct world *w)
{
	return w->dead && !w->noticed &&
	       !w->links[w->lost * NODES_MAX + parent_of(w, w->lost)].n;
}

static void notice(struct world *w)
{
	w->noticed = true;
	store_neighbour_gone(w->stores[parent_of(w, w->lost)], w->lost, "was lost with its node");
}

/* ---- clients ---- */

static int64_t number_of(const struct store_answer *a)
{
	char text[24] = "";

	if (!a->nvalues || !a->values[0])
		return HISTORY_NONE;
	memcpy(text, a->values[0]->data, a->values[0]->len);
	return atoll(text);
}

static void on_answer(void *arg, uint64_t token, const struct store_answer *a)
{
	struct client *c = arg;
	struct world *w = c->world;
	struct history_op *o = &w->history.ops[token];
	bool counts = o->op == STORE_ADD || o->op == STORE_DELETE;

	assert_int_equal(a->status, STORE_OK);
	o->answered = ++w->history.time;
	o->result = counts ? a->number : number_of(a);
	if (o->op == STORE_GET || o->op == STORE_FETCH)
		w->copies[c->node][o->key] = o->result;
	c->in_flight--;
}

static void send_request(struct client *c, const struct history_op *o, uint64_t token)
{
	const struct store_bytes key = { keys[o->key], 1 };
	char value[24], expected[24];
	struct store_request rq = { .op = o->op, .keys = &key, .nkeys = 1 };

	snprintf(value, sizeof(value), "%d", (int)o->value);
	snprintf(expected, sizeof(expected), "%d", (int)o->expected);
	if (o->op == STORE_ADD)
		rq.number = o->value;
	else if (o->op == STORE_SET || o->op == STORE_COMPARE_SET)
		rq.value = (struct store_bytes){ value, strlen(value) };
	if (o->op == STORE_COMPARE_SET)
		rq.expected = (struct store_bytes){ expected, strlen(expected) };
	store_ask(c->client, token, &rq);
}

static void ask(struct client *c, struct history_op o)
{
	struct world *w = c->world;
	uint32_t token = w->history.n++;
	int64_t copy = w->copies[c->node][o.key];

	o.client = c->index;
	o.asked = ++w->history.time;
	w->history.ops[token] = o;
	c->left--;
	if (w->mutant == MUTANT_COPIES && o.op == STORE_GET && copy > 0) {
		w->history.ops[token].answered = ++w->history.time;
		w->history.ops[token].result = copy;
		return;
	}
	c->in_flight++;
	send_request(c, &o, token);
}

static void ask_any(struct client *c)
{
	static const enum store_op ops[] = {
		STORE_GET, STORE_GET, STORE_GET, STORE_SET, STORE_ADD, STORE_COMPARE_SET,
		STORE_DELETE, STORE_FETCH,
	};
	struct world *w = c->world;

	ask(c, (struct history_op){
		.op = ops[w->choose(w, sizeof(ops) / sizeof(*ops))],
		.key = w->choose(w, w->keys),
		.value = 1 + w->choose(w, 5), .expected = 1 + w->choose(w, 5),
	});
}

/* One reads a key twice; one changes it and reads it; one at the root changes it. */
static void ask_planned(struct client *c)
{
	static const enum store_op plan[3][3] = {
		{ STORE_GET, STORE_GET, STORE_GET }, { STORE_OPS, STORE_SET, STORE_GET },
		{ STORE_OPS, STORE_OPS, STORE_SET },
	};

	ask(c, (struct history_op){
		.op = plan[c->index][3 - c->left], .value = 1 + c->index,
	});
}

/* ---- runs ---- */

static void open_world(struct world *w)
{
	static const struct store_client_ops client_ops = { .answer = on_answer };
	static const struct store_options options;
	uint32_t counts[NODES_MAX], ranks[NODES_MAX];
	const uint32_t *lists[NODES_MAX];

	for (uint32_t i = 0; i < w->nodes; i++) {
		counts[i] = 1;
		ranks[i] = i;
		lists[i] = &ranks[i];
	}
	memset(&w->history, 0, sizeof(w->history));
	memset(w->copies, 0, sizeof(w->copies));
	w->dead = w->noticed = false;
	assert_int_equal(layout_create(&w->layout, w->nodes, w->nodes, counts, lists), 0);
	for (uint32_t i = 0; i < w->nodes; i++) {
		struct tree_place place = tree_place(w->nodes, w->width, i);
		const struct store_ops ops = { op_send, NULL, &senders[i] };

		senders[i] = (struct sender){ w, i };
		assert_int_equal(store_create(&w->stores[i], w->layout, &place, names,
					      &options, &ops), 0);
	}
	for (uint32_t i = 0; i < w->nclients; i++) {
		struct client *c = &w->clients[i];

		c->world = w;
		c->index = i;
		c->in_flight = 0;
		c->client = store_client_open(w->stores[c->node], STORE_SYNC, &client_ops, c);
	}
}

static void close_world(struct world *w)
{
	for (uint32_t i = 0; i < w->nclients; i++)
		store_client_close(w->clients[i].client);
	for (uint32_t i = 0; i < NODES_MAX * NODES_MAX; i++)
		while (w->links[i].n)
			payload_unref(w->links[i].queue[--w->links[i].n]);
	for (uint32_t i = 0; i < w->nodes; i++)
		store_destroy(w->stores[i]);
	layout_destroy(w->layout);
}

/* One event; false: none is possible. */
static bool step(struct world *w, uint32_t in_flight, void (*ask_one)(struct client *c))
{
	uint32_t events[EVENTS_MAX], n = 0, chosen;

	for (uint32_t i = 0; i < w->nclients; i++)
		if (w->clients[i].left && w->clients[i].in_flight < in_flight)
			events[n++] = i;
	for (uint32_t i = 0; i < NODES_MAX * NODES_MAX; i++)
		if (w->links[i].n)
			events[n++] = CLIENTS_MAX + i;
	if (can_notice(w) || (w->lost < NODES_MAX && !w->dead))
		events[n++] = EVENT_LOST;
	if (!n)
		return false;
	chosen = events[n > 1 ? w->choose(w, n) : 0];
	if (chosen < CLIENTS_MAX)
		ask_one(&w->clients[chosen]);
	else if (chosen == EVENT_LOST)
		(w->dead ? notice : lose_node)(w);
	else
		deliver(w, chosen - CLIENTS_MAX);
	return true;
}

/* Only a request that waits for a key may have no answer, and only if the key does not exist. */
static void check_end(struct world *w)
{
	bool waits[3] = { false };

	for (uint32_t i = 0; i < w->history.n; i++) {
		const struct history_op *o = &w->history.ops[i];

		if (w->dead && w->clients[o->client].node == w->lost)
			continue;
		assert_true(o->answered || o->op == STORE_FETCH);
		waits[o->key] |= !o->answered;
	}
	for (uint32_t key = 0; key < w->keys && w->history.n < HISTORY_MAX; key++) {
		struct client root = { .world = w, .left = 1, .client = w->clients[0].client };

		if (w->clients[0].node || !waits[key])
			continue;
		ask(&root, (struct history_op){ .op = STORE_GET, .key = key });
		assert_int_equal(w->history.ops[w->history.n - 1].result, HISTORY_NONE);
	}
}

static bool run_random(uint64_t seed, enum mutant mutant, uint32_t lost)
{
	struct world *w = calloc(1, sizeof(*w));
	bool good;

	assert_non_null(w);
	w->nodes = NODES_MAX;
	w->width = 2;
	w->nclients = CLIENTS_MAX;
	w->keys = 1 + seed % 3;
	w->mutant = mutant;
	w->lost = lost;
	w->choose = choose_random;
	w->random = seed;
	for (uint32_t i = 0; i < w->nclients; i++) {
		w->clients[i].node = i % NODES_MAX;
		w->clients[i].left = 7;
	}
	open_world(w);
	while (step(w, 1 + seed % IN_FLIGHT, ask_any))
		;
	good = history_is_linearizable(&w->history) && history_is_in_order(&w->history);
	if (mutant == MUTANT_NONE)
		check_end(w);
	close_world(w);
	free(w);
	return good;
}

static uint64_t number_in(const char *variable, uint64_t otherwise)
{
	const char *text = getenv(variable);

	return text ? strtoull(text, NULL, 10) : otherwise;
}

TEST(random_orders_are_linearizable)
{
	uint64_t first = number_in("HISTORY_SEED", 1), runs = number_in("HISTORY_RUNS", 1000);

	for (uint64_t seed = first; seed < first + runs; seed++) {
		if (!run_random(seed, MUTANT_NONE, NODES_MAX))
			fail_msg("HISTORY_SEED=%llu is not linearizable, or a client's order is lost",
				 (unsigned long long)seed);
	}
}

/* A leaf: no other node is cut off with it. All other clients get their answers. */
TEST(random_orders_with_a_lost_leaf_are_linearizable)
{
	static const uint32_t leaves[] = { 2, 3, 5, 6 };
	uint64_t first = number_in("HISTORY_SEED", 1), runs = number_in("HISTORY_RUNS", 1000);

	for (uint64_t seed = first; seed < first + runs; seed++) {
		if (!run_random(seed, MUTANT_NONE, leaves[seed / 3 % 4]))
			fail_msg("HISTORY_SEED=%llu is not linearizable with a lost leaf",
				 (unsigned long long)seed);
	}
}

static bool is_found(enum mutant mutant)
{
	for (uint64_t seed = 1; seed < 100; seed++)
		if (!run_random(seed, mutant, NODES_MAX))
			return true;
	return false;
}

TEST(copy_that_is_not_recalled_is_found)
{
	assert_true(is_found(MUTANT_COPIES));
}

TEST(recall_that_is_skipped_is_found)
{
	assert_true(is_found(MUTANT_RECALLS));
}

TEST(request_that_overtakes_another_of_its_client_is_found)
{
	assert_true(is_found(MUTANT_BEHIND));
}

TEST(link_that_reorders_is_found)
{
	assert_true(is_found(MUTANT_LINKS));
}

/* Two nodes and three clients. Returns how many orders there are; 0: a bad one was found. */
static uint32_t run_all(enum mutant mutant)
{
	struct world *w = calloc(1, sizeof(*w));
	uint32_t orders = 0, reads = number_in("HISTORY_DEEP", 0) ? 3 : 2;
	bool good = true;

	assert_non_null(w);
	w->nodes = w->width = 2;
	w->nclients = 3;
	w->keys = 1;
	w->mutant = mutant;
	w->lost = NODES_MAX;
	w->choose = choose_next;
	w->clients[0].node = w->clients[1].node = 1;
	do {
		for (uint32_t i = 0; i < 3; i++)
			w->clients[i].left = i == 2 ? 1 : i == 0 ? reads : 2;
		open_world(w);
		while (step(w, 1, ask_planned))
			;
		good = history_is_linearizable(&w->history);
		close_world(w);
		orders++;
	} while (good && next_order(w));
	free(w);
	return good ? orders : 0;
}

TEST(all_orders_of_a_small_step_are_linearizable)
{
	uint32_t orders = run_all(MUTANT_NONE);

	assert_true(orders > 100);
	print_message("%u orders\n", orders);
}

TEST(small_step_with_a_recall_that_is_skipped_is_found)
{
	assert_int_equal(run_all(MUTANT_RECALLS), 0);
}

TEST(small_step_with_a_copy_that_is_not_recalled_is_found)
{
	assert_int_equal(run_all(MUTANT_COPIES), 0);
}
