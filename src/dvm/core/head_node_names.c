/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Names of nodes, for the PMI of tasks on several nodes. They are packed once. A node gets
 * them before its first such task, and later those of nodes that have joined: the names
 * are a list of messages to which others are added, and a node is sent the rest of it.
 */
#include "dvm/core/dvm_places.h"
#include "dvm/core/head_private.h"

#include <string.h>

#define MESSAGE_BYTES ((size_t)64 << 10) /* a message is not extended beyond */

static struct dvm_bytes name_at(const struct dvm_head *h, uint32_t node)
{
	return (struct dvm_bytes){ h->nodes[node].name, strlen(h->nodes[node].name) };
}

/* The longest run of names from a node on. */
static struct dvm_name_run run_from(const struct dvm_head *h, uint32_t node)
{
	struct dvm_name_run r = { LEDGER_NODES_MAX, name_at(h, node) };
	char next[DVM_TEXT_MAX];
	uint32_t count = 1;

	while (node + count < h->options.nodes && dvm_name_of_run(&r, count, next) &&
	       !strcmp(next, h->nodes[node + count].name))
		count++;
	r.count = count;
	return r;
}

/* Append a message with the next names. */
static int add_names(struct dvm_head *h)
{
	struct dvm_msg m = { .type = DVM_NODES, .nodes.first = h->named };
	struct dvm_name_run r;
	struct buf names;
	int rc = 0;

	buf_init(&names, DVM_NODES_MAX);
	for (uint32_t i = h->named; !rc && i < h->options.nodes && names.len < MESSAGE_BYTES;
	     i += r.count) {
		r = run_from(h, i);
		rc = dvm_name_run_pack(&names, &r);
	}
	m.nodes.names = (struct dvm_bytes){ names.data, names.len };
	rc = rc ? rc : dvm_msg_pack(&h->node_names, &m);
	if (!rc)
		h->named += dvm_names_count(&m.nodes.names);
	buf_free(&names);
	return rc;
}

int head_send_names(struct dvm_head *h, uint32_t node)
{
	struct head_node *n = &h->nodes[node];
	int rc = 0;

	while (!rc && h->named < h->options.nodes)
		rc = add_names(h);
	if (rc || n->names_sent == h->node_names.len)
		return rc;
	rc = buf_append(&n->out, h->node_names.data + n->names_sent,
			h->node_names.len - n->names_sent);
	if (rc)
		return rc;
	h->traffic.messages++;
	h->traffic.bytes += h->node_names.len - n->names_sent;
	n->names_sent = h->node_names.len;
	return 0;
}
