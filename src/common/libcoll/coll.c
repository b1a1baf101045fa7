/* SPDX-License-Identifier: BSD-3-Clause */
/* Collectives of a node: entries of its ranks, messages of neighbours, and losses. */
#include "libcoll/coll_private.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

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
	coll_no_fault(peer->told);
}

static void coll_init(struct coll *c)
{
	for (uint32_t i = 0; i < c->place.children; i++)
		peer_init(&c->peers[i],
			  tree_child(&c->place, i).first);
	peer_init(coll_parent(c), c->place.parent);
	for (int kind = 0; kind < COLL_KINDS; kind++)
		c->fault[kind].from = COLL_NEVER;
}

int coll_create(struct coll **out, const struct layout *layout,
		uint32_t position, const struct coll_options *options,
		const struct coll_ops *ops, void *arg)
{
	uint32_t width = options->tree_width == TREE_WIDTH_AUTO ?
				 tree_width(layout_ranks(layout)) :
				 options->tree_width;
	struct coll *c;

	if (position >= layout_nodes(layout) || width < TREE_WIDTH_MIN ||
	    width > TREE_WIDTH_MAX)
		return -EINVAL;
	c = calloc(1, sizeof(*c));
	if (!c)
		return -ENOMEM;
	c->place = tree_place(layout_nodes(layout), width, position);
	c->piece = options->piece ? options->piece : COLL_PIECE;
	c->ops = ops;
	c->arg = arg;
	c->layout = layout;
	c->budget = options->budget;
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
	coll_subsets_free(c);
	coll_fetches_free(c);
	coll_fault_free(c);
	coll_series_free(c);
	for (uint32_t i = 0; c->slots && i < c->nslots; i++)
		for (int side = 0; side < COLL_SIDES; side++)
			payload_unref(c->slots[i].why[side]);
	for (uint32_t i = 0; c->peers && i <= c->place.children; i++) {
		payload_unref(c->peers[i].why);
		payload_unref(c->peers[i].said);
	}
	free(c->peers);
	free(c->slots);
	free(c);
}

const struct tree_place *coll_place(const struct coll *c)
{
	return &c->place;
}

uint32_t coll_ranks_within(const struct coll *c, struct tree_range range)
{
	uint32_t count;
	const uint32_t *last = layout_ranks_at(c->layout, range.end - 1, &count);

	return last + count -
	       layout_ranks_at(c->layout, range.first, &(uint32_t){ 0 });
}

/* ---- contributions ---- */

/* `index`: own slots, then children. The references are taken over. */
static void contribute_edges(struct coll *c, uint32_t seq, uint32_t index,
			     const struct coll_edges *edges)
{
	struct coll_op *op = coll_op_find(c, COLL_RING, seq);

	op->parts[index].edges = *edges;
	if (--op->missing == 0)
		coll_scan_ready(c, seq, op);
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

	coll_fault_describe(c, kind, seq, &fault);
	if (kind == COLL_RING)
		c->ops->complete_ring(c->arg, seq, slot, NULL, &fault);
	else
		c->ops->complete(c->arg, kind, seq, NULL, &fault);
}

int coll_may_enter(const struct coll *c, enum coll_kind kind, uint32_t slot)
{
	uint32_t seq;

	if (slot >= c->nslots)
		return -EINVAL;
	if (c->slots[slot].gone & coll_side_of_kind(kind))
		return -ESHUTDOWN;
	seq = c->slots[slot].entered[kind];
	if (seq == COLL_NEVER)
		return -EOVERFLOW;
	if (!coll_covered(c, kind, seq) &&
	    seq - c->tables[kind].first >= COLL_IN_FLIGHT_MAX)
		return -EAGAIN;
	return 0;
}

/* A rank that goes on in a series which has ended does not enter the next one by that. */
static void count_refused(struct coll *c, enum coll_kind kind, uint32_t slot)
{
	uint32_t *entered = &c->slots[slot].entered[kind];

	if (kind != COLL_PMIX || *entered + 1 != c->past.from)
		++*entered;
}

/*
 * 0, with *op NULL when it has failed already and the slot has been told; or why
 * the slot may not enter.
 */
static int enter(struct coll *c, enum coll_kind kind, uint32_t slot,
		 uint32_t *seq, struct coll_op **op)
{
	int rc = coll_may_enter(c, kind, slot);

	if (rc)
		return rc;
	*op = NULL;
	*seq = c->slots[slot].entered[kind];
	if (coll_covered(c, kind, *seq)) {
		count_refused(c, kind, slot);
		refuse(c, kind, *seq, slot);
		return 0;
	}
	*op = coll_op_open(c, kind, *seq);
	if (!*op)
		return -ENOMEM;
	c->slots[slot].entered[kind]++;
	if ((*op)->entrants++ == 0)
		c->pending++;
	return 0;
}

int coll_enter(struct coll *c, enum coll_kind kind, uint32_t slot,
	       struct payload *contribution, uint32_t *seq)
{
	struct coll_op *op;
	int rc;

	if (kind == COLL_RING || (unsigned int)kind >= COLL_KINDS)
		return -EINVAL;
	rc = enter(c, kind, slot, seq, &op);
	if (!rc && op)
		coll_gather_add(c, kind, *seq, slot, contribution, false);
	return rc;
}

int coll_enter_ring(struct coll *c, uint32_t slot, uint64_t count,
		    struct payload *left, struct payload *right, uint32_t *seq)
{
	struct coll_edges edges = {
		.left = left, .right = right, .count = count,
	};
	struct coll_op *op;
	int rc = enter(c, COLL_RING, slot, seq, &op);

	if (rc || !op)
		return rc;
	payload_ref(left);
	payload_ref(right);
	contribute_edges(c, *seq, slot, &edges);
	return 0;
}

/* ---- messages ---- */

struct coll_peer *coll_peer_at(const struct coll *c, uint32_t position)
{
	struct coll_peer *peer = coll_parent(c);
	uint32_t i = tree_child_index(&c->place, position);

	if (i != TREE_NONE)
		peer = &c->peers[i];
	return peer->position == position && !peer->lost ? peer : NULL;
}

static bool is_child(const struct coll *c, const struct coll_peer *peer)
{
	return peer >= c->peers && peer < coll_parent(c);
}

/* False: it has failed here, or there is no memory, and all have been told. */
static bool open_for_child(struct coll *c, const struct coll_msg *msg)
{
	if (coll_covered(c, msg->kind, msg->seq))
		return false;
	if (coll_op_open(c, msg->kind, msg->seq))
		return true;
	coll_fault_no_memory(c, msg->kind, msg->seq);
	return false;
}

static int receive_edges(struct coll *c, struct coll_peer *child,
			 const struct coll_msg *msg, struct payload *body)
{
	struct coll_edges edges;
	int rc = coll_scan_split(msg, body, &edges);

	if (rc == -EPROTO)
		return rc;
	child->ups[COLL_RING]++;
	if (rc)
		coll_fault_no_memory(c, COLL_RING, msg->seq);
	else if (open_for_child(c, msg))
		contribute_edges(c, msg->seq, c->nslots + (child - c->peers),
				 &edges);
	else
		coll_edges_clear(&edges);
	return 0;
}

static void too_much(struct coll *c, const struct coll_msg *msg)
{
	char why[COLL_REASON_MAX];

	snprintf(why, sizeof(why),
		 "the contributions to %s %u are over %llu MiB",
		 coll_kind_name(msg->kind), msg->seq,
		 (unsigned long long)(COLL_BYTES_MAX >> 20));
	coll_fault_raise_from(c, msg->kind, msg->seq, why);
}

static int receive_data(struct coll *c, struct coll_peer *child,
			const struct coll_msg *msg, struct payload *body)
{
	uint32_t index = c->nslots + (child - c->peers);
	const struct coll_op *op;

	if (msg->seq == child->ups[msg->kind]) {
		child->ups[msg->kind] += !msg->more;
		if (!open_for_child(c, msg))
			return 0;
	}
	if (coll_covered(c, msg->kind, msg->seq))
		return 0;
	op = coll_op_find(c, msg->kind, msg->seq);
	if (!op || op->parts[index].data.in)
		return -EPROTO;
	if (body && body->len > COLL_BYTES_MAX - op->parts[index].data.total)
		too_much(c, msg);
	else
		coll_gather_add(c, msg->kind, msg->seq, index, body, msg->more);
	return 0;
}

/* Far ahead of what has ended here. */
static bool too_early(const struct coll *c, const struct coll_msg *msg)
{
	return !coll_covered(c, msg->kind, msg->seq) &&
	       msg->seq - c->tables[msg->kind].first >= COLL_IN_FLIGHT_MAX;
}

static int receive_up(struct coll *c, struct coll_peer *peer,
		      const struct coll_msg *msg, struct payload *body)
{
	if (!is_child(c, peer))
		return -EPROTO;
	if (coll_series_skips(c, msg) && msg->seq > peer->ups[msg->kind])
		peer->ups[msg->kind] = msg->seq;
	if (msg->seq > peer->ups[msg->kind])
		return -EPROTO;
	if (msg->seq == peer->ups[msg->kind] && too_early(c, msg))
		return -EPROTO;
	if (msg->kind == COLL_RING)
		return msg->seq == peer->ups[COLL_RING] ?
			       receive_edges(c, peer, msg, body) : -EPROTO;
	if (msg->more && (!body || !body->len))
		return -EPROTO; /* the sender could go on forever */
	return receive_data(c, peer, msg, body);
}

/* The collective to which the parent may send a result now, or NULL. */
static struct coll_op *awaits_down(const struct coll *c,
				   const struct coll_peer *peer,
				   const struct coll_msg *msg)
{
	struct coll_op *op = coll_op_find(c, msg->kind, msg->seq);

	return peer == coll_parent(c) && op && !op->missing &&
	       !op->result.ended ? op : NULL;
}

static int receive_down(struct coll *c, struct coll_peer *peer,
			const struct coll_msg *msg, struct payload *body)
{
	struct coll_op *op = awaits_down(c, peer, msg);

	if (peer == coll_parent(c) && coll_covered(c, msg->kind, msg->seq))
		return 0; /* it failed here while the result was under way */
	if (!op)
		return -EPROTO;
	if (msg->kind != COLL_RING)
		return coll_gather_down(c, msg, op, body);
	if (msg->type != COLL_MSG_DOWN || msg->seq != c->tables[COLL_RING].first)
		return -EPROTO;
	return coll_scan_down(c, msg, body);
}

struct payload *coll_body_room(struct coll *c, uint32_t from,
			       const struct coll_msg *msg, size_t len)
{
	struct coll_peer *peer = coll_peer_at(c, from);
	struct coll_op *op;

	if (!peer || !coll_msg_has_kind(msg) || msg->kind == COLL_RING ||
	    (unsigned int)msg->kind >= COLL_KINDS)
		return NULL;
	if (msg->type != COLL_MSG_DOWN && msg->type != COLL_MSG_REST)
		return NULL;
	op = awaits_down(c, peer, msg);
	return op ? coll_gather_room(c, msg, op, len) : NULL;
}

static int receive_fault(struct coll *c, struct coll_peer *peer,
			 const struct coll_fault *fault)
{
	for (int kind = 0; kind < COLL_KINDS; kind++)
		if (fault->from[kind] < peer->told[kind])
			peer->told[kind] = fault->from[kind];
	payload_unref(peer->said);
	peer->said = coll_reason_new(fault->reason);
	coll_fault_raise(c, fault->from, fault->reason);
	return 0;
}

/* From the neighbour `from` (NULL: this node) to all others. */
static int flood(struct coll *c, const struct coll_peer *from, struct payload *what)
{
	const struct coll_msg msg = { .type = COLL_MSG_FLOOD };
	struct payload_vec body;
	int rc;

	payload_vec_init(&body);
	rc = payload_vec_add(&body, what);
	for (uint32_t i = 0; !rc && i <= c->place.children; i++)
		if (&c->peers[i] != from)
			coll_send(c, &c->peers[i], &msg, &body);
	payload_vec_clear(&body);
	return rc;
}

int coll_flood(struct coll *c, struct payload *what)
{
	if (!what->len || what->len > COLL_FLOOD_BYTES_MAX)
		return -EMSGSIZE;
	return flood(c, NULL, what);
}

/* Without memory it ends here: nobody waits for it. */
static int receive_flood(struct coll *c, const struct coll_peer *peer,
			 struct payload *what)
{
	if (!what || !what->len || what->len > COLL_FLOOD_BYTES_MAX)
		return -EPROTO;
	(void)flood(c, peer, what);
	if (c->ops->flooded)
		c->ops->flooded(c->arg, what);
	return 0;
}

int coll_receive(struct coll *c, uint32_t from, const struct coll_msg *msg,
		 struct payload *body)
{
	struct coll_peer *peer = coll_peer_at(c, from);

	if (!peer)
		return -EPROTO;
	if (msg->type == COLL_MSG_FAULT)
		return receive_fault(c, peer, &msg->fault);
	if (coll_msg_is_subset(msg))
		return coll_subset_receive(c, peer, msg, body);
	if (msg->type == COLL_MSG_FETCH || msg->type == COLL_MSG_FETCHED)
		return coll_fetch_receive(c, peer, msg, body);
	if (msg->type == COLL_MSG_FLOOD)
		return receive_flood(c, peer, body);
	if (msg->type == COLL_MSG_SERIES)
		return coll_series_receive(c, peer, msg);
	if ((unsigned int)msg->kind >= COLL_KINDS || msg->seq == COLL_NEVER)
		return -EPROTO;
	switch (msg->type) {
	case COLL_MSG_UP:
		return receive_up(c, peer, msg, body);
	case COLL_MSG_DOWN:
	case COLL_MSG_REST:
		return receive_down(c, peer, msg, body);
	default:
		return -EPROTO;
	}
}

/* ---- departures ---- */

static void note_gone(struct coll_slot *slot, enum coll_side side, const char *why)
{
	slot->gone |= side;
	slot->why[side == COLL_OF_PMIX] = coll_reason_new(why);
}

void coll_rank_gone(struct coll *c, uint32_t slot, enum coll_side sides,
		    const char *why)
{
	uint32_t from[COLL_KINDS];
	unsigned news;

	if (slot >= c->nslots)
		return;
	news = sides & ~c->slots[slot].gone;
	if (!news)
		return;
	for (unsigned side = COLL_OF_PMI; side <= COLL_OF_PMIX; side <<= 1)
		if (news & side)
			note_gone(&c->slots[slot], side, why);
	for (int kind = 0; kind < COLL_KINDS; kind++)
		from[kind] = news & coll_side_of_kind(kind) ?
				     c->slots[slot].entered[kind] : COLL_NEVER;
	coll_fault_raise(c, from, why);
	coll_fetches_rank_gone(c, slot, news);
}

/* The first that cannot complete without the parent. */
static uint32_t needs_parent(const struct coll *c, enum coll_kind kind)
{
	const struct coll_table *t = &c->tables[kind];
	uint32_t i = 0;

	while (i < t->count &&
	       coll_op_find(c, kind, t->first + i)->result.ended)
		i++;
	return t->first + i;
}

/* The first to which a child's contribution is not whole. */
static uint32_t needs_child(const struct coll *c, enum coll_kind kind,
			    const struct coll_peer *child)
{
	uint32_t index = c->nslots + (child - c->peers);
	uint32_t seq = c->tables[kind].first;

	for (; kind != COLL_RING && seq < child->ups[kind]; seq++) {
		const struct coll_op *op = coll_op_find(c, kind, seq);

		if (op && !op->parts[index].data.in)
			return seq;
	}
	return child->ups[kind];
}

/*
 * A neighbour that has left in order cannot be asked any more which members of a subset
 * fail: it has told before that its ranks have gone.
 */
static struct payload *why_lost(const struct coll_peer *peer, bool in_order,
				const char *why)
{
	char both[COLL_REASON_MAX];

	if (!in_order || !peer->said)
		return coll_reason_new(why);
	if (snprintf(both, sizeof(both), "%s; before that, %s", why,
		     (const char *)peer->said->data) < 0)
		return NULL;
	return coll_reason_new(both);
}

void coll_link_lost(struct coll *c, uint32_t position, bool in_order,
		    const char *why)
{
	struct coll_peer *peer = coll_peer_at(c, position);
	uint32_t from[COLL_KINDS];

	if (!peer)
		return;
	peer->lost = true;
	peer->why = why_lost(peer, in_order, why);
	for (int kind = 0; kind < COLL_KINDS; kind++)
		from[kind] = is_child(c, peer) ? needs_child(c, kind, peer) :
						 needs_parent(c, kind);
	coll_fault_raise(c, from, why);
	coll_fetches_link_lost(c, peer);
}

void coll_link_up(struct coll *c, uint32_t position)
{
	struct coll_peer *peer = coll_peer_at(c, position);

	if (!peer)
		return;
	coll_fault_tell(c, peer);
	coll_series_tell(c, peer);
}

/* ---- state ---- */

size_t coll_pending(const struct coll *c)
{
	return c->pending + c->subset_entries;
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
