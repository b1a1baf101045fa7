/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The tree of control at the head: hosts core/tree_head.h. At the start each node that is
 * to have children connects to the head. When all of them have registered, their addresses
 * go to the other daemons, behind the welcome (bootstrap.h), and the deeper ones of them
 * move below their parents.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "dvm/core/tree_head.h"
#include "dvm/head/head_main.h"

struct head_tree {
	struct head_main *head;
	struct tree_head tree;
	uint32_t relays;   /* nodes that have children at the start */
	uint32_t known;    /* ... of which the first ones have registered */
	bool told;         /* their addresses have been sent */
};

/* ---- operations ---- */

static void on_send(void *arg, uint32_t link, const void *data, size_t len)
{
	struct head_tree *t = arg;

	nodes_send_frame(t->head, link, data, len);
}

static void on_attached(void *arg, uint32_t position, const uint8_t ip[16])
{
	struct head_tree *t = arg;

	if (position < dvm_head_positions(t->head->head))
		dvm_head_node_address(t->head->head, position, ip);
	else
		tree_head_end(&t->tree, position, "it cannot join");
}

static void on_input(void *arg, uint32_t position, const void *data, size_t len)
{
	struct head_tree *t = arg;

	if (dvm_msg_is_lease(data, len)) /* a slow disk may have delayed it */
		uv_update_time(loop_uv(t->head->loop));
	dvm_head_node_input(t->head->head, position, data, len, head_now(t->head));
}

static void on_lost(void *arg, uint32_t position, const char *why)
{
	struct head_tree *t = arg;
	struct head_main *h = t->head;

	if (position >= dvm_head_positions(h->head))
		return;
	if (!h->ready) {
		launch_daemon_lost(h);
		return;
	}
	dvm_head_node_lost(h->head, position, why, head_now(h));
	ends_begin(h, position);
}

static void on_fail(void *arg, uint32_t link)
{
	struct head_tree *t = arg;

	tree_head_end(&t->tree, link, "no memory");
}

/* ---- life ---- */

/* A launcher may read its standard input to the end before it starts any daemon. */
static uint32_t choose_width(const struct head_main *h)
{
	if (h->norphans)
		return 0;
	if (h->options.width != WIDTH_DEFAULT)
		return h->options.width;
	return h->options.launcher ? 0 : tree_default_width(h->options.nodes);
}

int head_tree_open(struct head_main *h)
{
	static const struct tree_head_ops ops = {
		.send = on_send, .attached = on_attached, .input = on_input,
		.lost = on_lost, .fail = on_fail,
	};
	uint32_t width = choose_width(h);
	uint32_t relays = width ? tree_relays(h->options.nodes, width) : 0;

	h->welcome.width = relays ? width : 0;
	h->welcome.relays = relays;
	if (!relays)
		return 0;
	h->tree = calloc(1, sizeof(*h->tree));
	if (!h->tree)
		return -ENOMEM;
	h->tree->head = h;
	h->tree->relays = relays;
	tree_head_init(&h->tree->tree, &ops, h->tree);
	return 0;
}

void head_tree_free(struct head_main *h)
{
	if (h->tree)
		tree_head_free(&h->tree->tree);
	free(h->tree);
	h->tree = NULL;
}

/* ---- links ---- */

int head_tree_link(struct head_main *h, uint32_t position)
{
	return tree_head_link(&h->tree->tree, position);
}

void head_tree_link_lost(struct head_main *h, uint32_t position, const char *why)
{
	tree_head_link_lost(&h->tree->tree, position, why, head_now(h).ms);
}

int head_tree_frame(struct head_main *h, uint32_t position, const struct payload *body,
		    const uint8_t ip[16])
{
	if (bundle_is(body->data, body->len))
		return tree_head_input(&h->tree->tree, position, body->data, body->len, ip,
				       head_now(h).ms);
	if (body->len != 1 || *(const uint8_t *)body->data != DVM_GONE)
		return -EPROTO;
	tree_head_gone(&h->tree->tree, position);
	return 0;
}

/* ---- nodes ---- */

void head_tree_send(struct head_main *h, uint32_t position, const void *data, size_t len)
{
	if (tree_head_send(&h->tree->tree, position, data, len))
		tree_head_end(&h->tree->tree, position, "no memory");
}

bool head_tree_end(struct head_main *h, uint32_t position, const char *why)
{
	tree_head_end(&h->tree->tree, position, why);
	tree_head_flush(&h->tree->tree);
	return tree_head_leads_nowhere(&h->tree->tree, position);
}

void head_tree_forget(struct head_main *h, uint32_t first)
{
	for (uint32_t i = first; i < dvm_head_positions(h->head); i++)
		tree_head_forget(&h->tree->tree, i);
}

bool head_tree_has(const struct head_main *h, uint32_t position)
{
	return tree_head_has(&h->tree->tree, position);
}

/* ---- addresses ---- */

static bool is_relay(const struct head_main *h, uint32_t position, uint32_t nodes)
{
	return position < tree_relays(nodes, h->welcome.width) &&
	       dvm_head_node_name(h->head, position);
}

char *head_tree_addresses(const struct head_main *h, uint32_t nodes)
{
	char ip[INET6_ADDRSTRLEN], *text = NULL;
	struct dvm_address where;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return NULL;
	for (uint32_t i = 0; is_relay(h, i, nodes); i++) {
		(void)dvm_head_node_where(h->head, i, &where);
		inet_ntop(AF_INET6, where.ip, ip, sizeof(ip));
		fprintf(out, "relay %u %s %u\n", i, ip, where.port);
	}
	fputc('\n', out);
	if (fclose(out) == 0)
		return text;
	free(text);
	return NULL;
}

bool head_tree_knows_addresses(const struct head_main *h)
{
	return h->tree->told;
}

/* A node below the first level gets the addresses of its ancestors. */
static void send_parents(struct head_tree *t, uint32_t position)
{
	const uint32_t width = t->head->welcome.width;
	struct tree_ancestor list[TREE_ANCESTORS_MAX];
	uint32_t count = 0, at = tree_parent(position, width);

	for (; at != TREE_HEAD && count < TREE_ANCESTORS_MAX; at = tree_parent(at, width)) {
		list[count].position = at;
		(void)dvm_head_node_where(t->head->head, at, &list[count++].where);
	}
	if (count)
		tree_head_parents(&t->tree, position, list, count);
}

static void tell(struct head_tree *t)
{
	while (t->known < t->relays && dvm_head_node_name(t->head->head, t->known))
		t->known++;
	if (t->known < t->relays)
		return;
	t->told = true;
	launch_tell_addresses(t->head);
	for (uint32_t i = 0; i < t->relays; i++)
		send_parents(t, i);
}

/* ---- turns ---- */

void head_tree_turn(struct head_main *h)
{
	if (!h->tree->told && !h->leaving)
		tell(h->tree);
	tree_head_turn(&h->tree->tree, head_now(h).ms);
}

void head_tree_flush(struct head_main *h)
{
	tree_head_flush(&h->tree->tree);
}

uint64_t head_tree_deadline(const struct head_main *h)
{
	return h->tree ? tree_head_deadline(&h->tree->tree) : UINT64_MAX;
}
