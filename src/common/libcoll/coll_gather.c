/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fence and gather over the tree: contributions are strung together on the way
 * up, combined once at the root, and the result is shared on the way down. Both
 * ways messages are cut at about coll_options.piece bytes, and what is large is
 * passed on while it still comes:
 *
 *   up:   what is at the front in tree order goes as soon as it fills a message;
 *   down: each message goes on to the children as it comes; its bytes lie in
 *         the result, once, and are sent from there.
 */
#include "libcoll/coll_private.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- up ---- */

static int add_rest(struct coll_data *d, struct payload *data)
{
	if (!d->rest)
		d->rest = calloc(1, sizeof(*d->rest));
	return d->rest ? payload_vec_add(d->rest, data) : -ENOMEM;
}

int coll_gather_add(struct coll_op *op, uint32_t index, struct payload *data,
		    bool more)
{
	struct coll_data *d = &op->parts[index].data;
	size_t len = data ? data->len : 0;

	if (len && !d->first)
		d->first = payload_ref(data);
	else if (len && add_rest(d, data))
		return -ENOMEM;
	d->bytes += len;
	d->total += len;
	op->held += len;
	if (!more) {
		d->in = true;
		op->missing--;
	}
	return 0;
}

/* Bytes that are next in tree order. */
static uint64_t in_order(const struct coll *c, const struct coll_op *op)
{
	uint64_t bytes = 0;

	for (uint32_t i = op->next; i < coll_nparts(c); i++) {
		bytes += op->parts[i].data.bytes;
		if (!op->parts[i].data.in)
			break;
	}
	return bytes;
}

int coll_data_list(const struct coll_data *d, struct payload_vec *out)
{
	int rc = payload_vec_add(out, d->first);

	return !rc && d->rest ? payload_vec_add_all(out, d->rest) : rc;
}

/* Move what is next in tree order into a list. */
static int take_in_order(struct coll *c, struct coll_op *op,
			 struct payload_vec *out)
{
	for (; op->next < coll_nparts(c); op->next++) {
		struct coll_data *d = &op->parts[op->next].data;
		int rc = d->first ? coll_data_list(d, out) : 0;

		if (rc)
			return rc;
		op->held -= d->bytes;
		coll_data_clear(d);
		if (!d->in)
			break;
	}
	return 0;
}

void coll_gather_send_up(struct coll *c, enum coll_kind kind, uint32_t seq,
			 const struct payload_vec *all, bool more)
{
	struct coll_msg msg = {
		.type = COLL_MSG_UP, .kind = kind, .seq = seq,
	};
	size_t i = 0;

	do {
		struct payload_vec body = { .items = NULL };

		if (i < all->count)
			body.items = all->items + i;
		while (i < all->count && body.bytes < c->piece) {
			body.bytes += all->items[i++]->len;
			body.count++;
		}
		msg.more = more || i < all->count;
		coll_send(c, coll_parent(c), &msg, &body);
	} while (i < all->count);
}

static void combine(struct coll *c, enum coll_kind kind, uint32_t seq,
		    struct coll_op *op, const struct payload_vec *parts,
		    int error);

/* The references go, so that the bytes do not wait for the result as well. */
static void collect(struct coll *c, enum coll_kind kind, uint32_t seq,
		    struct coll_op *op)
{
	bool all = !op->missing;
	struct payload_vec parts;
	int rc;

	payload_vec_init(&parts);
	rc = take_in_order(c, op, &parts);
	c->sent[kind] += all && !op->announced;
	if (coll_is_root(c))
		combine(c, kind, seq, op, &parts, rc);
	else if (rc)
		coll_fault_no_memory(c, kind, seq);
	else
		coll_gather_send_up(c, kind, seq, &parts, !all);
	payload_vec_clear(&parts);
}

/* Unless the parent knows that they come, they must not mix with earlier ones. */
static bool may_stream(const struct coll *c, enum coll_kind kind, uint32_t seq,
		       const struct coll_op *op)
{
	return !coll_is_root(c) && (op->announced || seq == c->sent[kind]) &&
	       op->held >= c->piece && in_order(c, op) >= c->piece;
}

void coll_gather_advance(struct coll *c, enum coll_kind kind, uint32_t seq,
			 struct coll_op *op)
{
	if (op->route == COLL_OPEN && !op->missing)
		coll_plan_ready(c, kind, seq, op);
	else if (op->route == COLL_TREE &&
		 (!op->missing || may_stream(c, kind, seq, op)))
		collect(c, kind, seq, op);
}

/* ---- the end ---- */

static void affect_no_other(struct coll_fault *fault)
{
	for (int kind = 0; kind < COLL_KINDS; kind++)
		fault->from[kind] = COLL_NEVER;
}

/* One reference to it as the host wants it, or NULL and why it failed. */
static struct payload *result_of(struct coll *c, const struct coll_result *r,
				 char why[COLL_REASON_MAX])
{
	if (!r->bytes)
		coll_reason_copy(why, r->reason);
	else if (r->raw)
		return c->ops->unpack(c->arg, r->bytes, r->raw, why);
	return payload_ref(r->bytes);
}

void coll_gather_end(struct coll *c, enum coll_kind kind)
{
	uint32_t seq = c->tables[kind].first;
	struct coll_op *op;

	while ((op = coll_op_find(c, kind, seq)) && op->result.ended) {
		struct coll_fault fault;
		struct payload *bytes = result_of(c, &op->result, fault.reason);

		affect_no_other(&fault);
		coll_op_close_first(c, kind);
		c->ops->complete(c->arg, kind, seq++, bytes,
				 bytes ? NULL : &fault);
		payload_unref(bytes);
	}
}

static void to_children(struct coll *c, const struct coll_msg *msg,
			struct payload *bytes)
{
	struct payload_vec body = { .items = &bytes };

	if (bytes && bytes->len) {
		body.count = 1;
		body.bytes = bytes->len;
	}
	for (uint32_t i = 0; i < c->place.children; i++)
		coll_send(c, &c->peers[i], msg, &body);
}

void coll_gather_fail(struct coll *c, enum coll_kind kind, uint32_t seq,
		      struct coll_op *op, const char *reason)
{
	struct coll_msg msg = {
		.type = COLL_MSG_DOWN, .kind = kind, .seq = seq, .failed = true,
	};

	affect_no_other(&msg.fault);
	snprintf(msg.fault.reason, sizeof(msg.fault.reason), "%s", reason);
	to_children(c, &msg, NULL);
	payload_unref(op->result.bytes);
	op->result.bytes = NULL;
	op->result.reason = coll_reason_new(reason);
	op->result.ended = true;
	coll_gather_end(c, kind);
}

struct payload *coll_gather_combine(struct coll *c, enum coll_kind kind,
				    uint32_t seq,
				    const struct payload_vec *parts,
				    char why[COLL_REASON_MAX])
{
	int error = -ENOMEM;
	struct payload *result = c->ops->combine(c->arg, kind, seq, parts,
						 &error);

	if (!result)
		snprintf(why, COLL_REASON_MAX,
			 "the contributions to %s %u could not be combined: %s",
			 coll_kind_name(kind), seq, strerror(-error));
	return result;
}

/* ---- down: the root ---- */

static int send_pieces(struct coll *c, struct coll_msg *msg,
		       struct payload *result)
{
	size_t at = 0;

	msg->size = result->len;
	do {
		size_t len = result->len - at;
		struct payload *piece;

		if (len > c->piece)
			len = c->piece;
		piece = payload_slice(result, at, len);
		if (!piece)
			return -ENOMEM;
		to_children(c, msg, piece);
		payload_unref(piece);
		msg->type = COLL_MSG_REST;
		at += len;
	} while (at < result->len);
	return 0;
}

/* Packed, if the host wants that. */
static int send_result(struct coll *c, struct coll_msg *msg,
		       struct payload *result)
{
	struct payload *packed = NULL;
	int rc;

	if (c->ops->pack && c->place.children)
		packed = c->ops->pack(c->arg, result);
	msg->raw = packed ? result->len : 0;
	rc = send_pieces(c, msg, packed ? packed : result);
	payload_unref(packed);
	return rc;
}

static void combine(struct coll *c, enum coll_kind kind, uint32_t seq,
		    struct coll_op *op, const struct payload_vec *parts,
		    int error)
{
	struct coll_msg msg = {
		.type = COLL_MSG_DOWN, .kind = kind, .seq = seq,
	};
	char why[COLL_REASON_MAX] = "out of memory";
	struct payload *result = NULL;

	if (!error)
		result = coll_gather_combine(c, kind, seq, parts, why);
	if (!result) {
		coll_gather_fail(c, kind, seq, op, why);
		return;
	}
	op->result.bytes = result;
	if (send_result(c, &msg, result)) {
		coll_fault_no_memory(c, kind, seq);
		return;
	}
	op->result.ended = true;
	coll_gather_end(c, kind);
}

/* ---- down: the others ---- */

/* It is not packed, or to something longer that may be. */
static bool may_be_packed(const struct coll *c, const struct coll_msg *msg)
{
	return !msg->raw || (c->ops->unpack && msg->size > 0 &&
			     msg->raw > msg->size && msg->raw <= COLL_BYTES_MAX);
}

/* A message of `len` bytes fits what has come before. */
static bool fits(const struct coll *c, const struct coll_result *r,
		 const struct coll_msg *msg, size_t len)
{
	if (len > c->piece)
		return false;
	if (msg->type == COLL_MSG_DOWN)
		return !r->begun && msg->size <= COLL_BYTES_MAX &&
		       len <= msg->size && (len > 0) == (msg->size > 0) &&
		       may_be_packed(c, msg);
	return r->begun && !r->ended && len > 0 &&
	       len <= r->size - r->received;
}

/*
 * Where the next `len` bytes belong in the host's memory for the result; NULL:
 * it has none for it, or no more.
 */
static struct payload *place_in_room(struct coll *c, const struct coll_msg *msg,
				     struct coll_result *r, size_t len)
{
	if (!c->ops->room || msg->raw || len == 0)
		return NULL;
	if (!r->room && !r->received)
		r->room = c->ops->room(c->arg, msg->kind, msg->seq, msg->size);
	if (!r->room || (c->ops->extend && c->ops->extend(c->arg, r->room,
							  r->received + len)))
		return NULL;
	return payload_slice(r->room, r->received, len);
}

struct payload *coll_gather_room(struct coll *c, const struct coll_msg *msg,
				 struct coll_op *op, size_t len)
{
	struct coll_result *r = &op->result;

	if (msg->failed || !fits(c, r, msg, len))
		return NULL;
	return place_in_room(c, msg, r, len);
}

/* The room cannot take all: what is in it becomes a piece like any other. */
static int leave_room(struct coll_result *r)
{
	struct payload *piece = NULL;
	int rc;

	if (!r->room)
		return 0;
	if (r->received) {
		piece = payload_slice(r->room, 0, r->received);
		if (!piece)
			return -ENOMEM;
	}
	rc = payload_vec_add(&r->pieces, piece);
	payload_unref(piece);
	payload_unref(r->room);
	r->room = NULL;
	return rc;
}

/* Copy the bytes, unless they came there. */
static void put(const struct payload *place, const struct payload *body)
{
	if (place->data && body->data && place->data != body->data)
		memcpy(place->data, body->data, body->len);
}

/*
 * Keep bytes (NULL: none): in the room, or as they are. One reference to them
 * there, or NULL: no memory.
 */
static struct payload *keep(struct coll *c, const struct coll_msg *msg,
			    struct coll_result *r, struct payload *body)
{
	struct payload *place;

	if (!body)
		return payload_virtual(0);
	/* What is all of it needs no other place. */
	if (body->len == r->size)
		place = NULL;
	else
		place = place_in_room(c, msg, r, body->len);
	if (place) {
		put(place, body);
		return place;
	}
	if (leave_room(r) || payload_vec_add(&r->pieces, body))
		return NULL;
	return payload_ref(body);
}

/* All has come: make one of it. 0 or -ENOMEM. */
static int complete(struct coll_result *r)
{
	if (r->room) {
		r->bytes = r->room;
		r->room = NULL;
	} else {
		r->bytes = r->size ? payload_vec_join(&r->pieces) :
				     payload_virtual(0);
	}
	payload_vec_clear(&r->pieces);
	r->ended = r->bytes != NULL;
	return r->bytes ? 0 : -ENOMEM;
}

int coll_gather_down(struct coll *c, const struct coll_msg *msg,
		     struct coll_op *op, struct payload *body)
{
	struct coll_result *r = &op->result;
	struct payload *piece;

	if (msg->failed && !r->begun) {
		coll_gather_fail(c, msg->kind, msg->seq, op, msg->fault.reason);
		return 0;
	}
	if (msg->failed || !fits(c, r, msg, body ? body->len : 0))
		return -EPROTO;
	if (msg->type == COLL_MSG_DOWN) {
		r->begun = true;
		r->size = msg->size;
		r->raw = msg->raw;
	}
	piece = keep(c, msg, r, body);
	if (!piece) {
		coll_fault_no_memory(c, msg->kind, msg->seq);
		return 0;
	}
	to_children(c, msg, piece);
	r->received += piece->len;
	payload_unref(piece);
	if (r->received < r->size)
		return 0;
	if (complete(r))
		coll_fault_no_memory(c, msg->kind, msg->seq);
	else
		coll_gather_end(c, msg->kind);
	return 0;
}
