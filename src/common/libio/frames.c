/* SPDX-License-Identifier: BSD-3-Clause */
/* Taking frames out of a byte stream. */
#include "libio/frames.h"

#include <errno.h>
#include <string.h>

#include "libutil/pack.h"

void frame_reader_init(struct frame_reader *r)
{
	r->body = NULL;
	r->staged = 0;
}

void frame_reader_free(struct frame_reader *r)
{
	payload_unref(r->body);
	frame_reader_init(r);
}

struct payload *frame_header(enum frame_type type, size_t body_len)
{
	struct payload *p;
	struct buf b;

	buf_init(&b, FRAME_HEADER_BYTES);
	if (pack_u32(&b, body_len) || pack_u32(&b, type))
		p = NULL;
	else
		p = payload_copy(b.data, b.len);
	buf_free(&b);
	return p;
}

size_t frame_reader_room(struct frame_reader *r, void **at)
{
	if (r->body) {
		*at = r->body->data + r->filled;
		return r->body->len - r->filled;
	}
	*at = r->stage + r->staged;
	return sizeof(r->stage) - r->staged;
}

static int read_header(struct frame_reader *r, const unsigned char *at)
{
	struct cursor c;
	uint32_t type;

	cursor_init(&c, at, FRAME_HEADER_BYTES);
	r->body_len = unpack_u32(&c);
	type = unpack_u32(&c); /* the type and its three zero bytes */
	r->type = type;
	if (type >= FRAME_TYPES)
		return -EPROTO;
	return r->body_len > FRAME_BODY_MAX ? -EMSGSIZE : 0;
}

static int deliver(struct frame_reader *r, struct payload *body, frame_fn fn,
		   void *arg)
{
	int rc = fn(arg, r->type, body);

	payload_unref(body);
	return rc;
}

/* The stage holds the first `have` bytes of a body that is longer. */
static int begin_large(struct frame_reader *r, const unsigned char *at,
		       uint32_t have)
{
	uint32_t first = r->body_len;

	if (first > FRAME_FIRST_GROWTH)
		first = FRAME_FIRST_GROWTH;
	r->body = payload_new(first);
	if (!r->body)
		return -ENOMEM;
	memcpy(r->body->data, at, have);
	r->filled = have;
	r->staged = 0;
	return 0;
}

static int continue_large(struct frame_reader *r, size_t n, frame_fn fn,
			  void *arg)
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
	return deliver(r, body, fn, arg);
}

/* A body can wait in the stage only if it fits there behind its header. */
static bool fits_stage(const struct frame_reader *r)
{
	return r->body_len <= FRAME_STAGE_BYTES - FRAME_HEADER_BYTES;
}

static int deliver_staged(struct frame_reader *r, const unsigned char *at,
			  frame_fn fn, void *arg)
{
	struct payload *body = payload_copy(at, r->body_len);

	return body ? deliver(r, body, fn, arg) : -ENOMEM;
}

int frame_reader_input(struct frame_reader *r, size_t n, frame_fn fn,
		       void *arg)
{
	uint32_t at = 0, left;
	int rc;

	if (r->body)
		return continue_large(r, n, fn, arg);
	r->staged += n;
	while ((left = r->staged - at) >= FRAME_HEADER_BYTES) {
		rc = read_header(r, r->stage + at);
		if (rc)
			return rc;
		left -= FRAME_HEADER_BYTES;
		if (left < r->body_len && !fits_stage(r))
			return begin_large(r, r->stage + at +
					   FRAME_HEADER_BYTES, left);
		if (left < r->body_len)
			break;
		rc = deliver_staged(r, r->stage + at + FRAME_HEADER_BYTES, fn,
				    arg);
		if (rc)
			return rc;
		at += FRAME_HEADER_BYTES + r->body_len;
	}
	memmove(r->stage, r->stage + at, r->staged - at);
	r->staged -= at;
	return 0;
}
