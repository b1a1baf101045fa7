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

static int add_later(struct coll_data *d, struct payload *data)
{
	if (!d->first) {
		d->first = payload_ref(data);
		return 0;
	}
	if (!d->rest)
		d->rest = calloc(1, sizeof(*d->rest));
	return d->rest ? payload_vec_add(d->rest, data) : -ENOMEM;
}

/* Move what is next in tree order behind what is ready. */
static int make_ready(struct coll *c, struct coll_op *op)
{
	while (op->parts[op->next].data.in && ++op->next < coll_nparts(c)) {
		struct coll_data *d = &op->parts[op->next].data;
		int rc = payload_vec_add(&op->ready, d->first);

		if (!rc && d->rest)
			rc = payload_vec_add_all(&op->ready, d->rest);
		if (rc)
			return rc;
		coll_data_clear(d);
	}
	return 0;
}

static int add(struct coll *c, struct coll_op *op, uint32_t index,
	       struct payload *data, bool more)
{
	struct coll_data *d = &op->parts[index].data;
	int rc = 0;

	if (data && data->len)
		rc = index == op->next ? payload_vec_add(&op->ready, data) :
					 add_later(d, data);
	if (rc)
		return rc;
	d->total += data ? data->len : 0;
	if (more)
		return 0;
	d->in = true;
	op->missing--;
	return index == op->next ? make_ready(c, op) : 0;
}

/* In messages of a piece or more; what is less waits, unless it is the end. */
static void send_up(struct coll *c, enum coll_kind kind, uint32_t seq,
		    struct coll_op *op)
{
	struct coll_msg msg = {
		.type = COLL_MSG_UP, .kind = kind, .seq = seq, .more = true,
	};
	struct payload_vec *ready = &op->ready;

	while (msg.more && (!op->missing || ready->bytes >= c->piece)) {
		struct payload_vec body = { .items = ready->items };

		while (body.count < ready->count && body.bytes < c->piece)
			body.bytes += ready->items[body.count++]->len;
		msg.more = op->missing || body.count < ready->count;
		coll_send(c, coll_parent(c), &msg, &body);
		payload_vec_drop(ready, body.count);
	}
	c->sent[kind] += !op->missing;
}

static void combine(struct coll *c, enum coll_kind kind, uint32_t seq,
		    struct coll_op *op);

/* Not before all of the earlier ones, with which its messages must not mix. */
void coll_gather_add(struct coll *c, enum coll_kind kind, uint32_t seq,
		     uint32_t index, struct payload *data, bool more)
{
	struct coll_op *op = coll_op_find(c, kind, seq);

	if (add(c, op, index, data, more))
		coll_fault_no_memory(c, kind, seq);
	else if (!coll_is_root(c) && seq == c->sent[kind])
		send_up(c, kind, seq, op);
	else if (coll_is_root(c) && !op->missing)
		combine(c, kind, seq, op);
}

/* ---- the end ---- */

/* One reference to the result in the host's form; or NULL, and why it failed. */
static struct payload *result_of(const struct coll_result *r,
				 char why[COLL_REASON_MAX])
{
	if (!r->bytes)
		coll_reason_copy(why, r->reason);
	return payload_ref(r->bytes);
}

static void gather_end(struct coll *c, enum coll_kind kind)
{
	uint32_t seq = c->tables[kind].first;
	struct coll_op *op;

	while ((op = coll_op_find(c, kind, seq)) && op->result.ended) {
		struct coll_fault fault = {};
		struct payload *bytes = result_of(&op->result, fault.reason);

		coll_no_fault(fault.from);
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

/*
 * This collective failed, and later ones go on: send `reason` to the host and to all
 * children.
 */
static void fail_alone(struct coll *c, enum coll_kind kind, uint32_t seq,
		       struct coll_op *op, const char *reason)
{
	struct coll_msg msg = {
		.type = COLL_MSG_DOWN, .kind = kind, .seq = seq, .failed = true,
	};

	coll_no_fault(msg.fault.from);
	snprintf(msg.fault.reason, sizeof(msg.fault.reason), "%s", reason);
	to_children(c, &msg, NULL);
	payload_unref(op->result.bytes);
	op->result.bytes = NULL;
	op->result.reason = coll_reason_new(reason);
	op->result.ended = true;
	gather_end(c, kind);
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

/* The references go, so that the bytes do not wait for the result as well. */
static void combine(struct coll *c, enum coll_kind kind, uint32_t seq,
		    struct coll_op *op)
{
	struct coll_msg msg = {
		.type = COLL_MSG_DOWN, .kind = kind, .seq = seq,
	};
	char why[COLL_REASON_MAX];
	struct payload *result = NULL;
	int error = -EMSGSIZE;

	if (op->ready.bytes <= COLL_BYTES_MAX)
		result = c->ops->combine(c->arg, kind, seq, &op->ready, &error);
	payload_vec_clear(&op->ready);
	if (!result) {
		snprintf(why, sizeof(why),
			 "the contributions to %s %u could not be combined: %s",
			 coll_kind_name(kind), seq,
			 strerror(-error));
		fail_alone(c, kind, seq, op, why);
		return;
	}
	op->result.bytes = result;
	if (send_pieces(c, &msg, result)) {
		coll_fault_no_memory(c, kind, seq);
		return;
	}
	op->result.ended = true;
	gather_end(c, kind);
}

/* ---- down: the others ---- */

/* A message of `len` bytes fits what has come before. */
static bool fits(const struct coll *c, const struct coll_result *r,
		 const struct coll_msg *msg, size_t len)
{
	if (len > c->piece)
		return false;
	if (msg->type == COLL_MSG_DOWN)
		return !r->begun && msg->size <= COLL_BYTES_MAX &&
		       len <= msg->size && (len > 0) == (msg->size > 0);
	return r->begun && !r->ended && len > 0 &&
	       len <= r->size - r->received;
}

/*
 * The place of the next `len` bytes in the host's memory for the result; NULL: there is
 * none, or no more.
 */
static struct payload *place_in_room(struct coll *c, const struct coll_msg *msg,
				     struct coll_result *r, size_t len)
{
	if (!c->ops->room || len == 0)
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
	/* A body that is the whole result needs no other place. */
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
		fail_alone(c, msg->kind, msg->seq, op, msg->fault.reason);
		return 0;
	}
	if (msg->failed || !fits(c, r, msg, body ? body->len : 0))
		return -EPROTO;
	if (msg->type == COLL_MSG_DOWN) {
		r->begun = true;
		r->size = msg->size;
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
		gather_end(c, msg->kind);
	return 0;
}
