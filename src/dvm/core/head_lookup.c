/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The head's nodes, tasks and clients by name and number, and messages to nodes. All other
 * files of the head may call these functions, which call none of them.
 */
#include "dvm/core/head_private.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BUCKETS_MIN 64

bool head_refuse(struct head_refusal *no, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(no->why, sizeof(no->why), fmt, ap);
	va_end(ap);
	return false;
}

/* ---- nodes ---- */

const char *head_node_name(const struct dvm_head *h, uint32_t node)
{
	return h->nodes[node].name;
}

static struct head_name *find_name(const struct dvm_head *h, const char *name)
{
	struct head_name *n;

	HASH_FIND_STR(h->names, name, n);
	return n;
}

int head_add_name(struct dvm_head *h, uint32_t node)
{
	const char *name = h->nodes[node].name;
	struct head_name *n = find_name(h, name);

	h->nodes[node].namesake = NODE_NONE;
	if (n) {
		h->nodes[n->last].namesake = node;
		n->last = node;
		return 0;
	}
	n = calloc(1, sizeof(*n));
	if (!n)
		return -ENOMEM;
	n->name = name;
	n->first = n->last = node;
	HASH_ADD_KEYPTR(hh, h->names, name, strlen(name), n);
	if (n->hh.tbl)
		return 0;
	free(n);
	return -ENOMEM;
}

void head_drop_name(struct dvm_head *h, uint32_t node)
{
	struct head_name *n = find_name(h, h->nodes[node].name);
	uint32_t before = n->first;

	if (before == node) {
		HASH_DEL(h->names, n);
		free(n);
		return;
	}
	while (h->nodes[before].namesake != node)
		before = h->nodes[before].namesake;
	h->nodes[before].namesake = NODE_NONE;
	n->last = before;
}

void head_forget_names(struct dvm_head *h)
{
	struct head_name *n, *next;

	HASH_ITER(hh, h->names, n, next) {
		HASH_DEL(h->names, n);
		free(n);
	}
}

uint32_t head_find_node(const struct dvm_head *h, const char *name)
{
	const struct head_name *n = head_is_ready(h) ? find_name(h, name) : NULL;
	uint32_t found = n ? n->first : NODE_NONE;

	while (found != NODE_NONE && h->nodes[found].lost &&
	       h->nodes[found].namesake != NODE_NONE)
		found = h->nodes[found].namesake;
	return found;
}

bool head_has_lost_name(const struct dvm_head *h, const char *name)
{
	const struct head_name *n = find_name(h, name);
	uint32_t i = n ? n->first : NODE_NONE;

	while (i != NODE_NONE && !h->nodes[i].lost)
		i = h->nodes[i].namesake;
	return i != NODE_NONE;
}

/* ---- lists of nodes, and messages ---- */

void head_list_node(struct dvm_head *h, enum node_list list, uint32_t node)
{
	struct head_node *n = &h->nodes[node];

	if (n->listed[list])
		return;
	n->listed[list] = true;
	n->next[list] = NODE_NONE;
	if (h->list_first[list] == NODE_NONE)
		h->list_first[list] = node;
	else
		h->nodes[h->list_last[list]].next[list] = node;
	h->list_last[list] = node;
}

uint32_t head_take_listed(struct dvm_head *h, enum node_list list)
{
	uint32_t node = h->list_first[list];

	if (node == NODE_NONE)
		return NODE_NONE;
	h->nodes[node].listed[list] = false;
	h->list_first[list] = h->nodes[node].next[list];
	return node;
}

void head_queue_msg(struct dvm_head *h, uint32_t node, const struct dvm_msg *m)
{
	struct head_node *n = &h->nodes[node];
	size_t had = n->out.len;
	int rc = n->lost ? 0 : dvm_msg_pack(&n->out, m);

	h->traffic.messages += n->out.len > had;
	h->traffic.bytes += n->out.len - had;
	head_list_node(h, NODES_OUT, node);
	if (rc)
		h->ops.node_break(h->arg, node, strerror(-rc));
}

void dvm_head_traffic(const struct dvm_head *h, struct dvm_traffic *out)
{
	*out = h->traffic;
}

uint32_t dvm_head_registered(const struct dvm_head *h)
{
	return h->registered;
}

bool head_is_ready(const struct dvm_head *h)
{
	return h->registered == h->options.nodes;
}

bool dvm_head_is_unheard(const struct dvm_head *h)
{
	return h->unheard_ms;
}

bool head_has_lost_all(const struct dvm_head *h)
{
	for (uint32_t i = 0; i < h->options.nodes; i++)
		if (!h->nodes[i].lost)
			return false;
	return true;
}

bool dvm_head_node_may_run(const struct dvm_head *h, uint32_t node)
{
	return h->nodes[node].until_ms;
}

uint32_t dvm_head_positions(const struct dvm_head *h)
{
	return h->options.nodes + h->growth.nodes;
}

const char *dvm_head_node_name(const struct dvm_head *h, uint32_t node)
{
	return h->nodes[node].lost ? NULL : h->nodes[node].name;
}

const char *dvm_head_node_where(const struct dvm_head *h, uint32_t node,
				struct dvm_address *address)
{
	*address = h->nodes[node].address;
	return h->nodes[node].name;
}

/* ---- numbers of tasks ---- */

static uint64_t step_of(const struct dvm_head *h)
{
	return h->options.members ? h->options.members : 1;
}

bool head_is_own_id(const struct dvm_head *h, uint64_t id)
{
	uint64_t first = h->options.member ? h->options.member : 1;

	return id >= first && (id - first) % step_of(h) == 0;
}

uint64_t head_id_after(const struct dvm_head *h, uint64_t id)
{
	uint64_t first = h->options.member ? h->options.member : 1;

	return id < first ? first : id + step_of(h) - (id - first) % step_of(h);
}

/* ---- tasks and clients ---- */

/* Numbers follow each other, so that buckets have few tasks more than one. */
static struct head_task **bucket_of(const struct dvm_head *h, uint64_t id)
{
	return &h->buckets[id / step_of(h) & (h->nbuckets - 1)];
}

static void put_in_bucket(struct dvm_head *h, struct head_task *t)
{
	struct head_task **bucket = bucket_of(h, t->id);

	t->same_hash = *bucket;
	*bucket = t;
}

/* Without memory for more buckets they have more tasks. */
static void double_buckets(struct dvm_head *h)
{
	struct head_task **old = h->buckets, *t, *next;
	size_t count = h->nbuckets;

	h->buckets = calloc(2 * count, sizeof(struct head_task *));
	if (!h->buckets) {
		h->buckets = old;
		return;
	}
	h->nbuckets = 2 * count;
	for (size_t i = 0; i < count; i++)
		for (t = old[i]; t; t = next) {
			next = t->same_hash;
			put_in_bucket(h, t);
		}
	free(old);
}

int tasks_init(struct dvm_head *h)
{
	h->nbuckets = BUCKETS_MIN;
	h->buckets = calloc(h->nbuckets, sizeof(struct head_task *));
	return h->buckets ? 0 : -ENOMEM;
}

void task_add(struct dvm_head *h, struct head_task *t)
{
	if (h->nqueued + h->nrunning + h->nended >= 2 * h->nbuckets)
		double_buckets(h);
	put_in_bucket(h, t);
}

void task_remove(struct dvm_head *h, struct head_task *t)
{
	struct head_task **at = bucket_of(h, t->id);

	while (*at != t)
		at = &(*at)->same_hash;
	*at = t->same_hash;
}

struct head_task *task_find(struct dvm_head *h, uint64_t id)
{
	struct head_task *t = *bucket_of(h, id);

	while (t && t->id != id)
		t = t->same_hash;
	return t;
}

struct head_client *client_find(struct dvm_head *h, uint32_t number)
{
	struct head_client *c;

	HASH_FIND(hh, h->clients, &number, sizeof(number), c);
	return c;
}
