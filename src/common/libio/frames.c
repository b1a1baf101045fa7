/* SPDX-License-Identifier: BSD-3-Clause */
/* Taking frames out of a byte stream. */
#include "libio/frames.h"

#include <errno.h>
#include <string.h>

#include "libutil/pack.h"

void frame_reader_init(struct frame_reader *r)
{
	r->body = NULL;
	r->budget = NULL;
	r->staged = 0;
	r->peek = false;
}

void frame_reader_free(struct frame_reader *r)
{
	payload_unref(r->body);
	frame_reader_init(r);
}

static void put_le(unsigned char *at, uint32_t value, int bytes)
{
	for (int i = 0; i < bytes; i++)
		at[i] = value >> (8 * i);
}

static void put_header(unsigned char *at, enum frame_type type, size_t head_len,
		       size_t body_len)
{
	put_le(at, head_len + body_len, 4);
	put_le(at + 4, type, 2); /* the type and a zero byte */
	put_le(at + 6, head_len, 2);
}

struct payload *frame_header(enum frame_type type, const void *head,
			     size_t head_len, size_t body_len)
{
	struct payload *p = payload_new(FRAME_HEADER_BYTES + head_len);

	if (!p)
		return NULL;
	put_header(p->data, type, head_len, body_len);
	if (head_len)
		memcpy(p->data + FRAME_HEADER_BYTES, head, head_len);
	return p;
}

struct payload *frame_whole(enum frame_type type, const void *body, size_t len)
{
	struct payload *p = payload_new(FRAME_HEADER_BYTES + len);

	if (!p)
		return NULL;
	put_header(p->data, type, 0, len);
	memcpy(p->data + FRAME_HEADER_BYTES, body, len);
	return p;
}

size_t frame_reader_room(struct frame_reader *r, void **at)
{
	if (r->body) {
		*at = r->body->data + r->filled;
		return r->body->len - r->filled;
	}
	*at = r->stage + r->staged;
	if (r->peek && r->staged < FRAME_PEEK_BYTES)
		return FRAME_PEEK_BYTES - r->staged;
	return sizeof(r->stage) - r->staged;
}

static int read_header(struct frame_reader *r, const unsigned char *at)
{
	struct cursor c;
	uint32_t len;
	uint16_t type;

	cursor_init(&c, at, FRAME_HEADER_BYTES);
	len = unpack_u32(&c);
	type = unpack_u16(&c); /* the type and a zero byte */
	r->head_len = unpack_u16(&c);
	r->type = type;
	if (type >= FRAME_TYPES || r->head_len > FRAME_HEAD_MAX ||
	    r->head_len > len || (r->head_len && type != FRAME_COLLECTIVE))
		return -EPROTO;
	r->body_len = len - r->head_len;
	return r->body_len > FRAME_BODY_MAX ? -EMSGSIZE : 0;
}

static int deliver(struct frame_reader *r, const void *head,
		   struct payload *body, const struct frame_ops *ops, void *arg)
{
	int rc;

	if (!r->head_len)
		rc = ops->frame(arg, r->type, body);
	else if (ops->message)
		rc = ops->message(arg, head, r->head_len, body);
	else
		rc = -EPROTO;
	payload_unref(body);
	return rc;
}

/* Messages of the store have a limit of their own: libstore/window.h. */
static struct budget *budget_of(const struct frame_reader *r)
{
	return r->type == FRAME_STORE ? NULL : r->budget;
}

static struct payload *room_for(const struct frame_reader *r,
				const unsigned char *head,
				const struct frame_ops *ops, void *arg)
{
	struct payload *p = NULL;
	uint32_t first = r->body_len;

	if (r->head_len && ops->room)
		p = ops->room(arg, head, r->head_len, r->body_len);
	if (p)
		return p;
	if (first > FRAME_FIRST_GROWTH)
		first = FRAME_FIRST_GROWTH;
	return payload_new_in(budget_of(r), first);
}

/*
 * The stage holds the head and the first `have` bytes of a body that is longer.
 * The head stays there, at the start, until the body is whole.
 */
static int begin_large(struct frame_reader *r, const unsigned char *head,
		       uint32_t have, const struct frame_ops *ops, void *arg)
{
	const unsigned char *at = head + r->head_len;

	r->body = room_for(r, head, ops, arg);
	if (!r->body)
		return -ENOMEM;
	memcpy(r->body->data, at, have);
	memmove(r->stage, head, r->head_len);
	r->filled = have;
	r->staged = 0;
	r->peek = true;
	return 0;
}

static int continue_large(struct frame_reader *r, size_t n,
			  const struct frame_ops *ops, void *arg)
{
	struct payload *body = r->body;
	uint32_t grown;

	r->filled += n;
	if (r->filled < body->len)
		return 0;
	if (r->filled < r->body_len) {
		grown = r->body_len - r->filled > r->filled ? 2 * r->filled :
							      r->body_len;
		body = payload_resize(body, grown);
		if (!body)
			return -ENOMEM;
		r->body = body;
		return 0;
	}
	r->body = NULL;
	return deliver(r, r->stage, body, ops, arg);
}

/* A body can wait in the stage only if it fits there behind what precedes it. */
static bool fits_stage(const struct frame_reader *r)
{
	return r->body_len + r->head_len <=
	       (uint32_t)(FRAME_STAGE_BYTES - FRAME_HEADER_BYTES);
}

static int deliver_staged(struct frame_reader *r, const unsigned char *head,
			  const struct frame_ops *ops, void *arg)
{
	struct payload *body = payload_copy_in(budget_of(r), head + r->head_len,
					       r->body_len);

	r->peek = false;
	return body ? deliver(r, head, body, ops, arg) : -ENOMEM;
}

int frame_reader_input(struct frame_reader *r, size_t n,
		       const struct frame_ops *ops, void *arg)
{
	uint32_t at = 0, left;
	int rc;

	if (r->body)
		return continue_large(r, n, ops, arg);
	r->staged += n;
	while ((left = r->staged - at) >= FRAME_HEADER_BYTES) {
		const unsigned char *head = r->stage + at + FRAME_HEADER_BYTES;

		rc = read_header(r, r->stage + at);
		if (rc)
			return rc;
		left -= FRAME_HEADER_BYTES;
		if (left < r->head_len)
			break;
		left -= r->head_len;
		if (left < r->body_len && !fits_stage(r))
			return begin_large(r, head, left, ops, arg);
		if (left < r->body_len)
			break;
		rc = deliver_staged(r, head, ops, arg);
		if (rc)
			return rc;
		at += FRAME_HEADER_BYTES + r->head_len + r->body_len;
	}
	memmove(r->stage, r->stage + at, r->staged - at);
	r->staged -= at;
	return 0;
}
