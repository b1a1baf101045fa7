/* SPDX-License-Identifier: BSD-3-Clause */
/* The tree of control at a head: a short form of src/dvm/head/head_tree.c. */
#include "head_private.h"

#include <stdlib.h>

/* Before events that may break the ways of nodes. */
static void note_routed(struct head_process *h)
{
	uint32_t by;

	for (uint32_t i = 0; i < dvm_head_positions(h->head); i++)
		if (dvm_relay_route(&h->tree->relay, i, &by))
			h->routed_ms[i] = h->w->ms;
}

/* ---- operations ---- */

static void on_send(void *arg, uint32_t link, const void *data, size_t len)
{
	struct head_process *h = arg;

	if (h->nodes[link])
		link_send(h->nodes[link]->link, 0, data, len);
}

static void on_attached(void *arg, uint32_t position, const uint8_t ip[16])
{
	struct head_process *h = arg;

	trace(h->w, "head %u: node %u has attached", h->number, position);
}

static void on_input(void *arg, uint32_t position, const void *data, size_t len)
{
	struct head_process *h = arg;

	h->given_up[position] |= len == 1 && *(const uint8_t *)data == DVM_GONE;
	dvm_head_node_input(h->head, position, data, len, head_now_of(h));
}

static void on_lost(void *arg, uint32_t position, const char *why)
{
	struct head_process *h = arg;

	trace(h->w, "head %u: node %u is lost: %s", h->number, position, why);
	promise_patience(h->w, h, position, h->given_up[position] ? 0 : h->routed_ms[position]);
	dvm_head_node_lost(h->head, position, why, head_now_of(h));
	head_call_to_end(h, position);
}

static void on_fail(void *arg, uint32_t link)
{
	abort();
}

/* ---- life ---- */

void head_tree_open(struct head_process *h)
{
	static const struct tree_head_ops ops = {
		.send = on_send, .attached = on_attached, .input = on_input,
		.lost = on_lost, .fail = on_fail,
	};
	const uint32_t width = h->w->plan.width;

	h->relays = width ? tree_relays(dvm_head_positions(h->head), width) : 0;
	if (!h->relays)
		return;
	h->tree = calloc(1, sizeof(*h->tree));
	if (!h->tree)
		abort();
	tree_head_init(h->tree, &ops, h);
}

void head_tree_free(struct head_process *h)
{
	if (h->tree)
		tree_head_free(h->tree);
	free(h->tree);
	h->tree = NULL;
}

/* ---- links ---- */

void head_tree_link(struct head_process *h, uint32_t position)
{
	if (tree_head_link(h->tree, position))
		abort();
}

void head_tree_link_lost(struct head_process *h, uint32_t position, const char *why)
{
	note_routed(h);
	tree_head_link_lost(h->tree, position, why, head_now_of(h).ms);
}

void head_tree_frame(struct head_process *h, uint32_t position, const void *data, size_t len)
{
	static const uint8_t no_ip[16];

	note_routed(h);
	if (!bundle_is(data, len))
		tree_head_gone(h->tree, position);
	else if (tree_head_input(h->tree, position, data, len, no_ip, head_now_of(h).ms))
		failed(h->w, "head %u cannot read a frame of node %u", h->number, position);
}

void head_tree_send(struct head_process *h, uint32_t position, const void *data, size_t len)
{
	if (tree_head_send(h->tree, position, data, len))
		abort();
}

/* ---- giving up ---- */

static void on_finish(struct world *w, void *arg, uint64_t position)
{
	struct head_process *h = arg;
	struct peer *p = h->nodes[position];

	if (h->state == DEAD || !p || !tree_head_leads_nowhere(h->tree, (uint32_t)position))
		return;
	h->nodes[position] = NULL;
	link_close(p->link, 0);
	p->link = NULL;
	head_tree_link_lost(h, (uint32_t)position, "the head has ended it");
	head_turn(h);
}

/* Its link stays while others are behind it. */
void head_tree_end(struct head_process *h, uint32_t position, const char *why)
{
	h->given_up[position] = true;
	tree_head_end(h->tree, position, why);
	tree_head_flush(h->tree);
	after(h->w, 0, on_finish, h, position);
}

void head_tree_end_all(struct head_process *h)
{
	for (uint32_t i = 0; i < dvm_head_positions(h->head); i++)
		tree_head_end(h->tree, i, "the head ends");
	tree_head_flush(h->tree);
}

/* ---- turns ---- */

/* Nodes below the first level get the addresses of their ancestors. */
static void send_parents(struct head_process *h, uint32_t position)
{
	struct tree_ancestor list[TREE_ANCESTORS_MAX];
	uint32_t count = 0, at = position;

	while ((at = tree_parent(at, h->w->plan.width)) != TREE_HEAD)
		list[count++] = (struct tree_ancestor){ .position = at };
	if (count)
		tree_head_parents(h->tree, position, list, count);
}

/* When all nodes that are to have children have registered. */
static void tell(struct head_process *h)
{
	for (uint32_t i = 0; i < h->relays; i++)
		if (!dvm_head_node_name(h->head, i))
			return;
	h->told = true;
	for (uint32_t i = 0; i < h->relays; i++)
		send_parents(h, i);
}

void head_tree_turn(struct head_process *h)
{
	if (!h->told)
		tell(h);
	tree_head_turn(h->tree, head_now_of(h).ms);
}

void head_tree_flush(struct head_process *h)
{
	tree_head_flush(h->tree);
}

uint64_t head_tree_deadline(const struct head_process *h)
{
	return h->tree ? tree_head_deadline(h->tree) : UINT64_MAX;
}
