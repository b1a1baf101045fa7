/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Nodes keep the end of a task until they hear DONE, which is sent when the journal is safe
 * so far.
 */
#include "dvm/core/head_private.h"

void done_pack(struct dvm_head *h, uint32_t node, uint64_t task, uint32_t instance)
{
	const struct dvm_msg m = {
		.type = DVM_DONE, .started = { task, instance },
	};

	if (h->nodes[node].lost || dvm_msg_pack(&h->nodes[node].later, &m))
		return; /* without memory for it the node keeps its ends longer */
	h->journal.done_later = true;
	head_list_node(h, NODES_LATER, node);
}

void done_note(struct dvm_head *h, const struct head_task *t)
{
	for (uint32_t i = 0; h->options.keeps && i < t->run->placement->count; i++)
		done_pack(h, t->run->placement->parts[i].node, t->id, t->instance);
}

static void send_done(struct dvm_head *h)
{
	uint32_t i;

	while ((i = head_take_listed(h, NODES_DONE)) != NODE_NONE) {
		struct head_node *n = &h->nodes[i];

		(void)buf_append(&n->out, n->done.data, n->done.len);
		head_list_node(h, NODES_OUT, i);
		buf_clear(&n->done);
	}
	h->journal.done_waits = false;
}

/*
 * Ends that have come up wait for records that were written; those that wait already,
 * for fewer.
 */
static void wait_for_later(struct dvm_head *h)
{
	uint32_t i;

	while ((i = head_take_listed(h, NODES_LATER)) != NODE_NONE) {
		struct head_node *n = &h->nodes[i];

		if (!buf_append(&n->done, n->later.data, n->later.len)) {
			h->journal.done_waits = true;
			head_list_node(h, NODES_DONE, i);
		}
		buf_clear(&n->later); /* without memory for it the node keeps its ends longer */
	}
	h->journal.done_later = false;
	h->journal.done_at = h->journal.written;
}

void done_send(struct dvm_head *h)
{
	struct head_journal *j = &h->journal;

	for (;;) {
		if (!j->done_waits && j->done_later && !j->out.len)
			wait_for_later(h);
		if (!j->done_waits || !journal_is_safe(h, j->done_at))
			return;
		send_done(h);
	}
}
