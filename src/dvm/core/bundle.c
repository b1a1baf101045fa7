/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Items of bundles as bytes. Data is packed as
 *
 *   u32 length, u32 `copied`: UINT32_MAX, and then the bytes; else the number of bytes at the
 *   end that are those of the item before; the bytes in front of these are given as
 *   u16 number of pieces, each u32 bytes to copy from the same place of the item before,
 *   u32 new bytes, and these
 */
#include "dvm/core/bundle.h"

#include <errno.h>
#include <string.h>

#define WHOLE UINT32_MAX
#define EQUAL_MIN 12   /* equal bytes in a row that end a piece: more than it costs */
#define SHORT 24       /* shorter data is not compared */
#define PIECES_MAX 64

void bundle_init(struct bundle *b)
{
	*b = (struct bundle){ .whole = true };
	buf_init(&b->bytes, BUNDLE_MAX);
	buf_init(&b->previous, BUNDLE_DATA_MAX);
}

void bundle_free(struct bundle *b)
{
	buf_free(&b->bytes);
	buf_free(&b->previous);
}

void bundle_clear(struct bundle *b)
{
	buf_clear(&b->bytes);
	buf_clear(&b->previous);
	b->last_len = 0;
	b->whole = true;
}

bool bundle_is_empty(const struct bundle *b)
{
	return !b->bytes.len;
}

bool bundle_is(const void *data, size_t len)
{
	return len && *(const uint8_t *)data == DVM_BUNDLE;
}

/* ---- writing ---- */

/* Data of which a part has been compared with the item before. */
struct compared {
	const char *old, *now;
	size_t old_len, now_len; /* without the common end */
	size_t at;
};

static struct dvm_bytes last_data(const struct bundle *b)
{
	return b->whole ? (struct dvm_bytes){ b->bytes.data + b->last, b->last_len } :
			  (struct dvm_bytes){ b->previous.data, b->previous.len };
}

static size_t common_end(const struct dvm_bytes *a, const struct dvm_bytes *b)
{
	const char *p = (const char *)a->data + a->len, *q = (const char *)b->data + b->len;
	size_t max = a->len < b->len ? a->len : b->len, n = 0;

	while (n < max && p[-1 - (ptrdiff_t)n] == q[-1 - (ptrdiff_t)n])
		n++;
	return n;
}

/* The number of equal bytes at a place. */
static size_t equal_at(const struct compared *c, size_t at)
{
	size_t max = c->old_len < c->now_len ? c->old_len : c->now_len, end = at;

	while (end < max && c->old[end] == c->now[end])
		end++;
	return end - at;
}

/* The place behind the new bytes that begin here. */
static size_t end_of_new(const struct compared *c, size_t at)
{
	size_t same;

	while (at < c->now_len) {
		same = equal_at(c, at);
		if (same >= EQUAL_MIN || (same && at + same == c->now_len))
			return at;
		at += same ? same : 1;
	}
	return at;
}

/* 0, or an error; -E2BIG: there are too many pieces. */
static int put_pieces(struct buf *out, struct compared *c)
{
	size_t count_at = out->len;
	uint16_t count = 0;
	int rc = pack_u16(out, 0);

	while (!rc && c->at < c->now_len) {
		size_t same = equal_at(c, c->at), begin = c->at + same;
		size_t end = end_of_new(c, begin);

		if (++count > PIECES_MAX)
			return -E2BIG;
		rc = pack_u32(out, (uint32_t)same);
		rc = rc ? rc : pack_bytes(out, c->now + begin, end - begin);
		c->at = end;
	}
	if (!rc)
		memcpy(out->data + count_at, (uint8_t[]){ (uint8_t)count, 0 }, 2);
	return rc;
}

/* 0, or an error; -E2BIG: the whole data is shorter. */
static int put_difference(struct bundle *b, const struct dvm_bytes *data)
{
	const struct dvm_bytes old = last_data(b);
	size_t begin = b->bytes.len, end;
	struct compared c;
	int rc;

	if (data->len < SHORT || old.len < SHORT)
		return -E2BIG;
	/* The bytes move when the bundle grows: make room first. */
	rc = buf_reserve(&b->bytes, data->len + 16 + PIECES_MAX * 8);
	if (rc)
		return rc;
	c = (struct compared){ .old = last_data(b).data, .now = data->data };
	end = common_end(&(struct dvm_bytes){ c.old, old.len }, data);
	c.old_len = old.len - end;
	c.now_len = data->len - end;
	rc = pack_u32(&b->bytes, (uint32_t)data->len);
	rc = rc ? rc : pack_u32(&b->bytes, (uint32_t)end);
	rc = rc ? rc : put_pieces(&b->bytes, &c);
	return rc ? rc : b->bytes.len - begin >= data->len + 8 ? -E2BIG : 0;
}

static int put_whole(struct bundle *b, const struct dvm_bytes *data)
{
	int rc = pack_u32(&b->bytes, (uint32_t)data->len);

	rc = rc ? rc : pack_u32(&b->bytes, WHOLE);
	return rc ? rc : buf_append(&b->bytes, data->data, data->len);
}

static int put_data(struct bundle *b, const struct dvm_bytes *data)
{
	size_t begin = b->bytes.len;
	int rc = put_difference(b, data);

	if (!rc) {
		b->whole = false;
		buf_clear(&b->previous);
		return buf_append(&b->previous, data->data, data->len);
	}
	b->bytes.len = begin;
	if (rc == -E2BIG)
		rc = put_whole(b, data);
	b->whole = true;
	b->last = b->bytes.len - data->len;
	b->last_len = data->len;
	return rc;
}

static int put_head(struct buf *out, const struct bundle_item *i)
{
	int rc = out->len ? 0 : pack_u8(out, DVM_BUNDLE);

	rc = rc ? rc : pack_u8(out, (uint8_t)i->kind);
	rc = rc ? rc : pack_u32(out, i->position);
	rc = rc ? rc : pack_u32(out, i->attach);
	rc = rc ? rc : pack_u64(out, i->seq);
	return rc ? rc : pack_u64(out, i->ack);
}

int bundle_add(struct bundle *b, const struct bundle_item *item)
{
	size_t begin = b->bytes.len;
	int rc = item->data.len > BUNDLE_DATA_MAX ? -EMSGSIZE : put_head(&b->bytes, item);

	rc = rc ? rc : put_data(b, &item->data);
	if (!rc)
		return 0;
	b->bytes.len = begin;
	buf_clear(&b->previous); /* the next item is packed whole */
	b->whole = false;
	return rc;
}

/* ---- reading ---- */

/* Never a null pointer, to which the next difference adds. */
static struct dvm_bytes bytes_of(const void *data, size_t len)
{
	return (struct dvm_bytes){ len ? data : "", len };
}

void bundle_reader_init(struct bundle_reader *r, const void *data, size_t len)
{
	cursor_init(&r->in, data, len);
	(void)unpack_u8(&r->in);
	buf_init(&r->now, BUNDLE_DATA_MAX);
	buf_init(&r->previous, BUNDLE_DATA_MAX);
	r->last = bytes_of(NULL, 0);
}

void bundle_reader_free(struct bundle_reader *r)
{
	buf_free(&r->now);
	buf_free(&r->previous);
}

static int take_piece(struct bundle_reader *r, size_t limit)
{
	size_t same = unpack_u32(&r->in), len;
	const void *bytes = unpack_bytes(&r->in, BUNDLE_DATA_MAX, &len);
	int rc;

	if (!cursor_ok(&r->in) || r->now.len > r->last.len ||
	    same > r->last.len - r->now.len || r->now.len + same + len > limit ||
	    !(same + len))
		return -EPROTO;
	rc = buf_append(&r->now, (const char *)r->last.data + r->now.len, same);
	return rc ? rc : buf_append(&r->now, bytes, len);
}

static int take_difference(struct bundle_reader *r, size_t len, size_t end)
{
	uint16_t pieces = unpack_u16(&r->in);
	struct buf swap = r->previous;
	int rc;

	if (len > BUNDLE_DATA_MAX || end > len || end > r->last.len)
		return -EPROTO;
	r->previous = r->now; /* which may have the last data */
	r->now = swap;
	buf_clear(&r->now);
	rc = buf_reserve(&r->now, len);
	for (uint16_t i = 0; !rc && i < pieces; i++)
		rc = take_piece(r, len - end);
	if (rc || r->now.len != len - end)
		return rc ? rc : -EPROTO;
	rc = buf_append(&r->now, (const char *)r->last.data + r->last.len - end, end);
	r->last = bytes_of(r->now.data, r->now.len);
	return rc;
}

static int take_data(struct bundle_reader *r)
{
	uint32_t len = unpack_u32(&r->in), end = unpack_u32(&r->in);
	const void *bytes;

	if (end != WHOLE)
		return take_difference(r, len, end);
	bytes = unpack_raw(&r->in, len);
	r->last = bytes_of(bytes, len);
	return len > BUNDLE_DATA_MAX ? -EPROTO : 0;
}

int bundle_next(struct bundle_reader *r, struct bundle_item *out)
{
	uint8_t kind;
	int rc;

	if (cursor_ok(&r->in) && !cursor_left(&r->in))
		return 0;
	kind = unpack_u8(&r->in);
	out->kind = (enum bundle_kind)kind;
	out->position = unpack_u32(&r->in);
	out->attach = unpack_u32(&r->in);
	out->seq = unpack_u64(&r->in);
	out->ack = unpack_u64(&r->in);
	rc = take_data(r);
	if (rc || !cursor_ok(&r->in) || kind >= BUNDLE_KINDS)
		return rc ? rc : -EPROTO;
	out->data = r->last;
	return 1;
}
