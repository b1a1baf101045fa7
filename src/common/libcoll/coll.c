/* SPDX-License-Identifier: BSD-3-Clause */
/* Collectives of a node: what enters, what comes in, who goes. */
#include "libcoll/coll_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void coll_send(struct coll *c, const struct coll_peer *peer,
	       const struct coll_msg *msg, const struct payload_vec *body)
{
	if (!peer->lost)
		c->ops->send(c->arg, peer->position, msg, body);
}

static void peer_init(struct coll_peer *peer, uint32_t position)
{
	peer->position = position;
	peer->lost = position == TREE_NONE;
	for (int kind = 0; kind < COLL_KINDS; kind++)
		peer->told[kind] = COLL_NEVER;
}

static void coll_init(struct coll *c)
{
	for (uint32_t i = 0; i < c->place.children; i++)
		peer_init(&c->peers[i],
			  tree_child(&c->place, c->width, i).first);
	peer_init(coll_parent(c), c->place.parent);
	for (int kind = 0; kind < COLL_KINDS; kind++)
		c->fault[kind].from = COLL_NEVER;
}

int coll_create(struct coll **out, const struct layout *layout,
		uint32_t position, uint32_t tree_width,
		const struct coll_ops *ops, void *arg)
{
	struct coll *c;

	if (position >= layout_nodes(layout) || tree_width < TREE_WIDTH_MIN ||
	    tree_width > TREE_WIDTH_MAX)
		return -EINVAL;
	c = calloc(1, sizeof(*c));
	if (!c)
		return -ENOMEM;
	c->place = tree_place(layout_nodes(layout), tree_width, position);
	c->width = tree_width;
	c->ops = ops;
	c->arg = arg;
	c->ranks = layout_ranks_at(layout, position, &c->nslots);
	c->slots = calloc(c->nslots, sizeof(*c->slots));
	c->peers = calloc(c->place.children + 1, sizeof(*c->peers));
	if (!c->slots || !c->peers) {
		coll_destroy(c);
		return -ENOMEM;
	}
	coll_init(c);
	*out = c;
	return 0;
}

void coll_destroy(struct coll *c)
{
	if (!c)
		return;
	for (int kind = 0; kind < COLL_KINDS; kind++)
		coll_table_free(c, kind);
	coll_fault_free(c);
	free(c->peers);
	free(c->slots);
	free(c);
}

const struct tree_place *coll_place(const struct coll *c)
{
	return &c->place;
}

/* ---- contributions ---- */

/* `index`: own slots, then children. Takes the references of `part`. */
static void contribute(struct coll *c, enum coll_kind kind, uint32_t seq,
		       uint32_t index, const struct coll_part *part)
{
	struct coll_op *op = coll_op_find(c, kind, seq);

	op->parts[index] = *part;
	if (--op->missing)
		return;
	if (kind == COLL_RING)
		coll_scan_ready(c, seq, op);
	else
		coll_gather_ready(c, kind, seq, op);
}

uint32_t coll_entered(const struct coll *c, enum coll_kind kind, uint32_t slot)
{
	return c->slots[slot].entered[kind];
}

/* The slot has entered what is covered by a fault: tell it alone. */
static void refuse(struct coll *c, enum coll_kind kind, uint32_t seq,
		   uint32_t slot)
{
	struct coll_fault fault;

	coll_fault_describe(c, kind, &fault);
	if (kind == COLL_RING)
		c->ops->complete_ring(c->arg, seq, slot, NULL, &fault);
	else
		c->ops->complete(c->arg, kind, seq, NULL, &fault);
}

static int may_enter(const struct coll *c, enum coll_kind kind, uint32_t slot)
{
	uint32_t seq;

	if (slot >= c->nslots)
		return -EINVAL;
	if (c->slots[slot].gone)
		return -ESHUTDOWN;
	seq = c->slots[slot].entered[kind];
	if (seq == COLL_NEVER)
		return -EOVERFLOW;
	if (!coll_covered(c, kind, seq) &&
	    seq - c->tables[kind].first >= COLL_IN_FLIGHT_MAX)
		return -EAGAIN;
	return 0;
}

/* Takes no references when it fails or nobody needs them any more. */
static int enter(struct coll *c, enum coll_kind kind, uint32_t slot,
		 const struct coll_part *part, uint32_t *seq)
{
	int rc = may_enter(c, kind, slot);
	struct coll_op *op;

	if (rc)
		return rc;
	*seq = c->slots[slot].entered[kind];
	if (coll_covered(c, kind, *seq)) {
		c->slots[slot].entered[kind]++;
		refuse(c, kind, *seq, slot);
		return 0;
	}
	op = coll_op_open(c, kind, *seq);
	if (!op)
		return -ENOMEM;
	c->slots[slot].entered[kind]++;
	if (op->entrants++ == 0)
		c->pending++;
	payload_ref(part->left);
	payload_ref(part->right);
	contribute(c, kind, *seq, slot, part);
	return 0;
}

int coll_enter(struct coll *c, enum coll_kind kind, uint32_t slot,
	       struct payload *contribution, uint32_t *seq)
{
	struct coll_part part = { .data = contribution };

	if (kind != COLL_FENCE && kind != COLL_GATHER)
		return -EINVAL;
	return enter(c, kind, slot, &part, seq);
}

int coll_enter_ring(struct coll *c, uint32_t slot, uint64_t count,
		    struct payload *left, struct payload *right, uint32_t *seq)
{
	struct coll_part part = {
		.left = left, .right = right, .count = count,
	};

	return enter(c, COLL_RING, slot, &part, seq);
}

/* ---- messages ---- */

/* NULL for what is no neighbour, or one whose link is lost. */
static struct coll_peer *peer_at(const struct coll *c, uint32_t position)
{
	struct coll_peer *peer = coll_parent(c);

	if (position != c->place.parent) {
		uint32_t i = tree_child_index(&c->place, c->width, position);

		if (i == TREE_NONE)
			return NULL;
		peer = &c->peers[i];
	}
	return peer->position == position && !peer->lost ? peer : NULL;
}

static void accept_up(struct coll *c, uint32_t index,
		      const struct coll_msg *msg, struct coll_part *part)
{
	if (coll_covered(c, msg->kind, msg->seq)) {
		coll_part_clear(part);
		return;
	}
	if (!coll_op_open(c, msg->kind, msg->seq)) {
		coll_part_clear(part);
		coll_fault_no_memory(c, msg->kind, msg->seq);
		return;
	}
	contribute(c, msg->kind, msg->seq, c->nslots + index, part);
}

static int receive_up(struct coll *c, struct coll_peer *peer,
		      const struct coll_msg *msg, struct payload *body)
{
	struct coll_part part = { .data = body };
	int rc = 0;

	if (peer == coll_parent(c) || msg->seq != peer->ups[msg->kind])
		return -EPROTO;
	if (!coll_covered(c, msg->kind, msg->seq) &&
	    msg->seq - c->tables[msg->kind].first >= COLL_IN_FLIGHT_MAX)
		return -EPROTO;
	if (msg->kind == COLL_RING)
		rc = coll_scan_split(msg, body, &part);
	else
		payload_ref(body);
	if (rc == -EPROTO)
		return rc;
	peer->ups[msg->kind]++;
	if (rc)
		coll_fault_no_memory(c, msg->kind, msg->seq);
	else
		accept_up(c, peer - c->peers, msg, &part);
	return 0;
}

static int receive_down(struct coll *c, struct coll_peer *peer,
			const struct coll_msg *msg, struct payload *body)
{
	uint32_t first = c->tables[msg->kind].first;
	const struct coll_op *op = coll_op_find(c, msg->kind, msg->seq);

	if (peer != coll_parent(c))
		return -EPROTO;
	if (coll_covered(c, msg->kind, msg->seq))
		return 0; /* it has failed here while the result was coming */
	if (msg->seq != first || !op || op->missing)
		return -EPROTO;
	if (msg->kind == COLL_RING)
		return coll_scan_down(c, msg, body);
	coll_gather_down(c, msg, body);
	return 0;
}

static int receive_fault(struct coll *c, struct coll_peer *peer,
			 const struct coll_fault *fault)
{
	for (int kind = 0; kind < COLL_KINDS; kind++)
		if (fault->from[kind] < peer->told[kind])
			peer->told[kind] = fault->from[kind];
	coll_fault_raise(c, fault->from, fault->reason);
	return 0;
}

int coll_receive(struct coll *c, uint32_t from, const struct coll_msg *msg,
		 struct payload *body)
{
	struct coll_peer *peer = peer_at(c, from);

	if (!peer)
		return -EPROTO;
	if (msg->type == COLL_MSG_FAULT)
		return receive_fault(c, peer, &msg->fault);
	if ((unsigned int)msg->kind >= COLL_KINDS || msg->seq == COLL_NEVER)
		return -EPROTO;
	if (msg->type == COLL_MSG_UP)
		return receive_up(c, peer, msg, body);
	if (msg->type == COLL_MSG_DOWN)
		return receive_down(c, peer, msg, body);
	return -EPROTO;
}

/* ---- departures ---- */

void coll_rank_gone(struct coll *c, uint32_t slot, const char *why)
{
	if (slot >= c->nslots || c->slots[slot].gone)
		return;
	c->slots[slot].gone = true;
	coll_fault_raise(c, c->slots[slot].entered, why);
}

void coll_link_lost(struct coll *c, uint32_t position, const char *why)
{
	struct coll_peer *peer = peer_at(c, position);
	uint32_t from[COLL_KINDS];

	if (!peer)
		return;
	peer->lost = true;
	for (int kind = 0; kind < COLL_KINDS; kind++)
		from[kind] = peer == coll_parent(c) ? c->tables[kind].first :
						      peer->ups[kind];
	coll_fault_raise(c, from, why);
}

void coll_link_up(struct coll *c, uint32_t position)
{
	struct coll_peer *peer = peer_at(c, position);

	if (peer)
		coll_fault_tell(c, peer);
}

/* ---- state ---- */

size_t coll_pending(const struct coll *c)
{
	return c->pending;
}

static void list_missing(const struct coll *c, enum coll_kind kind,
			 uint32_t seq, uint32_t *ranks, uint32_t *nranks,
			 uint32_t *children, uint32_t *nchildren)
{
	*nranks = 0;
	*nchildren = 0;
	for (uint32_t i = 0; i < c->nslots; i++)
		if (c->slots[i].entered[kind] <= seq)
			ranks[(*nranks)++] = c->ranks[i];
	for (uint32_t i = 0; i < c->place.children; i++)
		if (c->peers[i].ups[kind] <= seq)
			children[(*nchildren)++] = c->peers[i].position;
}

bool coll_next_pending(const struct coll *c, enum coll_kind *kind,
		       uint32_t *seq, uint32_t *missing_ranks, uint32_t *nranks,
		       uint32_t *missing_children, uint32_t *nchildren,
		       bool *waits_parent)
{
	for (; *kind < COLL_KINDS; (*kind)++, *seq = 0) {
		const struct coll_table *t = &c->tables[*kind];

		if (*seq < t->first)
			*seq = t->first;
		if (!coll_op_find(c, *kind, *seq))
			continue;
		list_missing(c, *kind, *seq, missing_ranks, nranks,
			     missing_children, nchildren);
		*waits_parent = *nranks == 0 && *nchildren == 0;
		return true;
	}
	return false;
}
