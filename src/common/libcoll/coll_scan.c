/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ring: a scan over the tree that carries only edge values. Up go the count of
 * a subtree, the left value of its first rank and the right value of its last;
 * down come the count before it and the two values just outside it.
 */
#include "libcoll/coll_private.h"

#include <errno.h>

static int slice(struct payload *body, size_t offset, size_t len,
		 struct payload **out)
{
	if (len == 0)
		return 0;
	*out = payload_slice(body, offset, len);
	return *out ? 0 : -ENOMEM;
}

int coll_scan_split(const struct coll_msg *msg, struct payload *body,
		    struct coll_edges *edges)
{
	size_t len = body ? body->len : 0;
	int rc;

	*edges = (struct coll_edges){ .count = msg->count };
	if (msg->left_len > len)
		return -EPROTO;
	rc = slice(body, 0, msg->left_len, &edges->left);
	if (!rc)
		rc = slice(body, msg->left_len, len - msg->left_len,
			   &edges->right);
	if (rc)
		coll_edges_clear(edges);
	return rc;
}

static void send_edges(struct coll *c, const struct coll_peer *peer,
		       struct coll_msg *msg, struct payload *left,
		       struct payload *right)
{
	struct payload *items[2];
	struct payload_vec body = { .items = items };

	if (left && left->len)
		items[body.count++] = left;
	if (right && right->len)
		items[body.count++] = right;
	for (size_t i = 0; i < body.count; i++)
		body.bytes += items[i]->len;
	msg->kind = COLL_RING;
	msg->left_len = left ? left->len : 0;
	coll_send(c, peer, msg, &body);
}

/* Gives source `i` its result, when `before` ranks are counted ahead of it. */
static void deliver_one(struct coll *c, uint32_t seq, uint32_t i,
			const struct coll_ring_result *result)
{
	struct coll_msg msg = {
		.type = COLL_MSG_DOWN, .seq = seq,
		.count = result->rank, .total = result->size,
	};

	if (i < c->nslots)
		c->ops->complete_ring(c->arg, seq, i, result, NULL);
	else
		send_edges(c, &c->peers[i - c->nslots], &msg, result->left,
			   result->right);
}

/* `outside` is what surrounds the subtree; its count is what comes before. */
static void deliver(struct coll *c, uint32_t seq, const struct coll_op *op,
		    const struct coll_edges *outside, uint64_t total)
{
	uint32_t last = coll_nparts(c) - 1;
	struct coll_ring_result result = {
		.rank = outside->count, .size = total,
	};

	for (uint32_t i = 0; i <= last; i++) {
		result.left = i ? op->parts[i - 1].edges.right : outside->left;
		result.right = i < last ? op->parts[i + 1].edges.left :
					  outside->right;
		deliver_one(c, seq, i, &result);
		result.rank += op->parts[i].edges.count;
	}
	coll_op_close_first(c, COLL_RING);
}

void coll_scan_ready(struct coll *c, uint32_t seq, struct coll_op *op)
{
	const struct coll_edges *first = &op->parts[0].edges;
	const struct coll_edges *last = &op->parts[coll_nparts(c) - 1].edges;
	struct coll_edges around = {
		.left = last->right, .right = first->left,
	};
	struct coll_msg msg = { .type = COLL_MSG_UP, .seq = seq };

	for (uint32_t i = 0; i < coll_nparts(c); i++)
		msg.count += op->parts[i].edges.count;
	if (coll_is_root(c))
		deliver(c, seq, op, &around, msg.count);
	else
		send_edges(c, coll_parent(c), &msg, first->left, last->right);
}

int coll_scan_down(struct coll *c, const struct coll_msg *msg,
		   struct payload *body)
{
	struct coll_edges outside;
	int rc;

	if (msg->failed)
		return -EPROTO;
	rc = coll_scan_split(msg, body, &outside);
	if (rc == -ENOMEM)
		coll_fault_no_memory(c, COLL_RING, msg->seq);
	if (rc)
		return rc == -ENOMEM ? 0 : rc;
	deliver(c, msg->seq, coll_op_find(c, COLL_RING, msg->seq), &outside,
		msg->total);
	coll_edges_clear(&outside);
	return 0;
}
