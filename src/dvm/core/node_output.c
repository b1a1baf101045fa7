/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Output of the ranks of a part.
 *
 * Forwarded output has a window: the bytes that were sent, and that no client is known to
 * have read. When the window is used up, the host reads the part's pipes no more, and a
 * rank that writes blocks. The head opens the window again. No other part is held up, and
 * no end: then the rest in the pipes goes beyond the window.
 *
 * Output waits here until the link to the head has sent what was given to it before, so that
 * other messages do not wait behind output. The end of a part goes behind its own output.
 */
#include "dvm/core/node_private.h"

#include <stdlib.h>

#define FRAME_FULL ((size_t)64 << 10) /* bytes; no more messages are added */
#define FRAME_MAX ((size_t)4 << 20)   /* limit of the bytes of a frame */

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

/* NULL: no memory. */
static struct bulk_frame *add_frame(struct dvm_node *n)
{
	static const struct dvm_msg bulk = { .type = DVM_BULK };
	struct bulk_frame *f = malloc(sizeof(*f));

	if (!f)
		return NULL;
	buf_init(&f->messages, FRAME_MAX);
	if (dvm_msg_pack(&f->messages, &bulk)) {
		buf_free(&f->messages);
		free(f);
		return NULL;
	}
	DL_APPEND(n->bulk, f);
	return f;
}

void node_send_bulk(struct dvm_node *n, const struct dvm_msg *m)
{
	struct bulk_frame *f = n->bulk ? n->bulk->prev : NULL;

	n->send_ms = 0; /* earlier messages go first */
	if (!f || f->messages.len >= FRAME_FULL)
		f = add_frame(n);
	if (!f || dvm_msg_pack(&f->messages, m))
		node_fail(n);
}

static void drop_frame(struct dvm_node *n, struct bulk_frame *f)
{
	DL_DELETE(n->bulk, f);
	buf_free(&f->messages);
	free(f);
}

void node_bulk_turn(struct dvm_node *n)
{
	struct bulk_frame *f;

	while ((f = n->bulk) && (!n->ops.takes_output || n->ops.takes_output(n->arg))) {
		n->ops.send(n->arg, f->messages.data, f->messages.len);
		drop_frame(n, f);
	}
}

void node_bulk_drop(struct dvm_node *n)
{
	while (n->bulk)
		drop_frame(n, n->bulk);
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
	if (alone)
		node_bulk_drop(n);
	for (p = n->parts; p; p = p->hh.next) {
		if (p->output != DVM_OUTPUT_FORWARD)
			continue;
		p->credit = p->window;
		set_limit(n, p);
	}
}
