/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Output of the ranks of a part.
 *
 * Forwarded output has a window: the bytes that were sent, and that no client is known to
 * have read. When the window is used up, the host reads the part's pipes no more, and a
 * rank that writes blocks. The head opens the window again. No other part is held up, and
 * no end: then the rest in the pipes goes beyond the window.
 */
#include "dvm/core/node_private.h"

static void set_limit(struct dvm_node *n, const struct part *p)
{
	size_t left = p->credit > DVM_OUTPUT_EXTRA ? p->credit - DVM_OUTPUT_EXTRA : 0;

	if (n->ops.limit_output)
		n->ops.limit_output(n->arg, p->number, n->alone ? SIZE_MAX : left);
}

void part_output_begin(struct dvm_node *n, struct part *p, uint32_t window)
{
	p->window = p->credit = window;
	set_limit(n, p);
}

void node_send_bulk(struct dvm_node *n, const struct dvm_msg *m)
{
	static const struct dvm_msg bulk = { .type = DVM_BULK };

	n->send_ms = 0; /* earlier messages go first */
	if ((!n->bulk.len && dvm_msg_pack(&n->bulk, &bulk)) || dvm_msg_pack(&n->bulk, m))
		node_fail(n);
}

static void forward(struct dvm_node *n, struct part *p, int fd, const void *data, size_t len)
{
	const uint64_t cost = dvm_output_cost(len);
	const struct dvm_msg m = {
		.type = DVM_OUTPUT,
		.output = { p->task, p->first_rank, (uint32_t)fd, { data, len } },
	};

	if (n->alone)
		return;
	p->spoke = true;
	p->credit = cost < p->credit ? p->credit - (uint32_t)cost : 0;
	node_send_bulk(n, &m);
	set_limit(n, p);
}

void dvm_node_output(struct dvm_node *n, uint32_t part, int fd, const void *data,
		     size_t len)
{
	struct part *p = node_part(n, part);

	if (!p || fd < 1 || fd > 2)
		return;
	if (p->output == DVM_OUTPUT_FORWARD) {
		forward(n, p, fd, data, len);
		return;
	}
	part_keep(n, p, fd, data, len);
	tail_add(&p->tails[fd - 1], data, len);
}

void node_credit(struct dvm_node *n, const struct dvm_credit *m)
{
	struct part *p = node_find_part(n, m->task, m->instance);

	if (!p || p->output != DVM_OUTPUT_FORWARD)
		return;
	p->credit = m->bytes < p->window - p->credit ? p->credit + m->bytes : p->window;
	set_limit(n, p);
}

void dvm_node_alone(struct dvm_node *n)
{
	node_set_alone(n, true);
}

void node_set_alone(struct dvm_node *n, bool alone)
{
	struct part *p;

	n->alone = alone;
	for (p = n->parts; p; p = p->hh.next) {
		if (p->output != DVM_OUTPUT_FORWARD)
			continue;
		p->credit = p->window;
		set_limit(n, p);
	}
}
