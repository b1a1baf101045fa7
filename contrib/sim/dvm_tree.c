/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The tree of control of a simulated DVM, with the code of real heads and daemons: nodes
 * that are to have children connect to the head. When these have registered, the others get
 * their addresses, and connect to them.
 */
#include <stdlib.h>
#include <string.h>

#include "dvm_sim.h"

static const uint8_t no_ip[16];

/* ---- the head ---- */

static void head_send(void *arg, uint32_t link, const void *data, size_t len)
{
	struct sim_head *h = arg;

	h->cost += h->sim->scenario->dvm.place;
	dvm_frames_add(&h->out, dvm_frame_new(h->sim, h->members[link], TREE_HEAD, data, len));
}

static void head_attached(void *arg, uint32_t position, const uint8_t ip[16])
{
}

static void head_input(void *arg, uint32_t position, const void *data, size_t len)
{
	sim_head_node_says(arg, position, data, len);
}

static void head_lost(void *arg, uint32_t position, const char *why)
{
	struct sim_head *h = arg;

	dvm_head_node_lost(h->head, position, why, dvm_sim_time(h->sim->now));
}

static void no_memory(struct dvm_sim *s)
{
	dvm_sim_fail(s, "not enough memory");
}

static void head_fails(void *arg, uint32_t link)
{
	no_memory(((struct sim_head *)arg)->sim);
}

int sim_tree_head_begin(struct sim_head *h)
{
	static const struct tree_head_ops ops = {
		.send = head_send, .attached = head_attached, .input = head_input,
		.lost = head_lost, .fail = head_fails,
	};
	uint64_t width = h->sim->scenario->dvm.width;

	h->relays = width ? tree_relays(h->nmembers, (uint32_t)width) : 0;
	h->told = false;
	if (!h->relays)
		return 0;
	h->tree = calloc(1, sizeof(*h->tree));
	if (!h->tree)
		return dvm_sim_fail(h->sim, "not enough memory");
	tree_head_init(h->tree, &ops, h);
	return 0;
}

void sim_tree_head_end(struct sim_head *h)
{
	if (h->tree)
		tree_head_free(h->tree);
	free(h->tree);
	h->tree = NULL;
}

void sim_tree_head_input(struct sim_head *h, const struct dvm_frame *f, sim_time at)
{
	if (f->opens && tree_head_link(h->tree, f->from))
		no_memory(h->sim);
	if (f->lost) {
		tree_head_gone(h->tree, f->from);
		tree_head_link_lost(h->tree, f->from, "the node is lost", dvm_sim_time(at).ms);
	} else if (tree_head_input(h->tree, f->from, f->data, f->len, no_ip,
				   dvm_sim_time(at).ms)) {
		dvm_sim_fail(h->sim, "the head cannot take a bundle");
	}
}

/* Deeper relays move below their parents. */
static void send_parents(struct sim_head *h, uint32_t position)
{
	const uint32_t width = (uint32_t)h->sim->scenario->dvm.width;
	struct tree_ancestor list[TREE_ANCESTORS_MAX];
	uint32_t count = 0, at = tree_parent(position, width);

	for (; at != TREE_HEAD && count < TREE_ANCESTORS_MAX; at = tree_parent(at, width))
		list[count++] = (struct tree_ancestor){ .position = at };
	if (count)
		tree_head_parents(h->tree, position, list, count);
}

bool sim_tree_head_turn(struct sim_head *h)
{
	bool tells = !h->told && dvm_head_registered(h->head) >= h->relays;

	for (uint32_t i = 0; tells && i < h->relays; i++)
		send_parents(h, i);
	h->told |= tells;
	tree_head_turn(h->tree, dvm_sim_time(h->sim->now).ms);
	tree_head_flush(h->tree);
	return tells;
}

/* ---- a node ---- */

static struct sim_dvm_node *at_position(const struct sim_dvm_node *n, uint32_t position)
{
	return &n->sim->nodes[n->head->members[position]];
}

static void send_to_node(struct sim_dvm_node *n, uint32_t to, uint32_t link, const void *data,
			 size_t len, bool opens)
{
	struct dvm_frame *f = dvm_frame_new(n->sim, at_position(n, to)->number, link, data, len);

	if (f)
		f->opens = opens;
	dvm_sim_send(n->sim, n->sent_at + n->sim->scenario->dvm.latency, EVENT_DVM_TO_NODE, f);
}

static void send_to_head(struct sim_dvm_node *n, const void *data, size_t len, bool opens)
{
	struct dvm_frame *f = dvm_frame_new(n->sim, n->head->number, n->position, data, len);

	if (f)
		f->opens = opens;
	dvm_sim_send(n->sim, n->sent_at + n->sim->scenario->dvm.latency, EVENT_DVM_TO_HEAD, f);
}

static void node_send(void *arg, uint32_t link, const void *data, size_t len)
{
	struct sim_dvm_node *n = arg;
	bool opens = n->opens && link == RELAY_UP;

	n->opens &= link != RELAY_UP;
	if (link != RELAY_UP)
		send_to_node(n, link, RELAY_UP, data, len, false);
	else if (n->parent == TREE_HEAD)
		send_to_head(n, data, len, opens);
	else
		send_to_node(n, n->parent, n->position, data, len, opens);
}

static void node_input(void *arg, const void *data, size_t len)
{
	sim_node_head_says(arg, data, len);
}

static void node_attached(void *arg)
{
}

static void node_leaving(void *arg)
{
}

static void node_fails(void *arg, uint32_t link)
{
	no_memory(((struct sim_dvm_node *)arg)->sim);
}

static void connect_to(struct sim_dvm_node *n, uint32_t parent)
{
	n->parent = parent;
	n->opens = true;
	sim_node_spend(n, n->sim->scenario->dvm.connect);
	if (tree_node_up(n->tree))
		no_memory(n->sim);
	sim_tree_node_changed(n);
}

/* The nearest living ancestor. */
static uint32_t parent_of(const struct sim_dvm_node *n)
{
	const uint32_t width = (uint32_t)n->sim->scenario->dvm.width;
	uint32_t at = tree_parent(n->position, width);

	while (at != TREE_HEAD && !at_position(n, at)->node)
		at = tree_parent(at, width);
	return at;
}

static void node_parents(void *arg, const struct tree_ancestor *list, uint32_t count)
{
	struct sim_dvm_node *n = arg;

	connect_to(n, parent_of(n));
}

int sim_tree_node_begin(struct sim_dvm_node *n)
{
	static const struct tree_node_ops ops = {
		.send = node_send, .input = node_input, .attached = node_attached,
		.parents = node_parents, .leaving = node_leaving, .fail = node_fails,
	};

	n->flushes = false;
	n->parent = TREE_HEAD;
	if (!n->head->tree)
		return 0;
	n->tree = calloc(1, sizeof(*n->tree));
	if (!n->tree)
		return dvm_sim_fail(n->sim, "not enough memory");
	tree_node_init(n->tree, n->position, &ops, n);
	if (n->position < n->head->relays)
		connect_to(n, TREE_HEAD);
	return 0;
}

void sim_tree_node_end(struct sim_dvm_node *n)
{
	if (n->tree)
		tree_node_free(n->tree);
	free(n->tree);
	n->tree = NULL;
}

void sim_tree_node_send(struct sim_dvm_node *n, const void *data, size_t len)
{
	if (tree_node_send(n->tree, data, len))
		no_memory(n->sim);
	sim_tree_node_changed(n);
}

void sim_tree_node_changed(struct sim_dvm_node *n)
{
	if (n->flushes)
		return;
	n->flushes = true;
	dvm_sim_add(n->sim, n->free, EVENT_DVM_FLUSH, n->number);
}

/* Messages that came while it was busy leave together. */
void sim_tree_node_flush(struct dvm_sim *s, uint32_t node)
{
	struct sim_dvm_node *n = &s->nodes[node];

	n->flushes = false;
	if (!n->node || !n->tree)
		return;
	n->sent_at = s->now;
	tree_node_turn(n->tree);
}

/* ---- what comes to a node ---- */

static void link_lost(struct sim_dvm_node *n, uint32_t link)
{
	if (link != RELAY_UP) {
		tree_node_child_gone(n->tree, link);
		tree_node_child_lost(n->tree, link, "the node is lost");
		return;
	}
	if (n->parent == TREE_HEAD || at_position(n, n->parent)->node)
		return; /* it has another one */
	tree_node_down(n->tree);
	connect_to(n, parent_of(n));
}

void sim_tree_node_take(struct sim_dvm_node *n, const struct dvm_frame *f)
{
	const struct dvm_params *p = &n->sim->scenario->dvm;
	uint64_t before = n->tree->relay.items;

	if (f->opens) {
		sim_node_spend(n, p->connect);
		if (tree_node_child(n->tree, f->from))
			no_memory(n->sim);
	}
	if (f->told)
		connect_to(n, parent_of(n));
	else if (f->lost)
		link_lost(n, f->from);
	else if (tree_node_input(n->tree, f->from, f->data, f->len, no_ip))
		dvm_sim_fail(n->sim, "node %u cannot take a bundle", n->number);
	sim_node_spend(n, (sim_time)(n->tree->relay.items - before) * p->relay);
	sim_tree_node_changed(n);
}

/* ---- the DVM ---- */

static void send_event(struct sim_dvm_node *n, sim_time at, uint32_t link, bool told)
{
	struct dvm_frame *f = dvm_frame_new(n->sim, n->number, link, NULL, 0);

	if (f) {
		f->told = told;
		f->lost = !told;
	}
	dvm_sim_send(n->sim, at, EVENT_DVM_TO_NODE, f);
}

/* The addresses go to each node, one after another, over the head's network. */
void sim_tree_tell(struct sim_head *h, sim_time at)
{
	const struct dvm_params *p = &h->sim->scenario->dvm;

	for (uint32_t i = h->relays; i < h->nmembers; i++) {
		sim_time bytes = (sim_time)(i + 1) * h->relays * SIM_TREE_ADDRESS_BYTES;

		send_event(&h->sim->nodes[h->members[i]],
			   at + p->latency + sim_time_of((double)bytes / (double)p->input * (double)SIM_S),
			   RELAY_UP, true);
	}
}

void sim_tree_node_lost(struct sim_dvm_node *n)
{
	struct dvm_sim *s = n->sim;
	const sim_time at = s->now + s->scenario->dvm.detect;

	for (uint32_t i = 0; i < n->head->nmembers; i++) {
		struct sim_dvm_node *other = at_position(n, i);

		if (other->node && other->parent == n->position)
			send_event(other, s->now + s->scenario->dvm.latency, RELAY_UP, false);
	}
	if (n->parent != TREE_HEAD && at_position(n, n->parent)->node)
		send_event(at_position(n, n->parent), at, n->position, false);
}
