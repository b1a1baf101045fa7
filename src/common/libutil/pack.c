/* SPDX-License-Identifier: BSD-3-Clause */
/* Checked packing and unpacking of little-endian fields. */
#include "libutil/pack.h"

#include <errno.h>
#include <string.h>

static int pack_le(struct buf *b, uint64_t v, size_t width)
{
	unsigned char bytes[8];

	for (size_t i = 0; i < width; i++)
		bytes[i] = v >> (8 * i);
	return buf_append(b, bytes, width);
}

int pack_u8(struct buf *b, uint8_t v)
{
	return pack_le(b, v, 1);
}

int pack_u16(struct buf *b, uint16_t v)
{
	return pack_le(b, v, 2);
}

int pack_u32(struct buf *b, uint32_t v)
{
	return pack_le(b, v, 4);
}

int pack_u64(struct buf *b, uint64_t v)
{
	return pack_le(b, v, 8);
}

int pack_bytes(struct buf *b, const void *data, size_t n)
{
	size_t start = b->len;
	int rc;

	if (n > UINT32_MAX)
		return -EMSGSIZE;
	rc = pack_u32(b, n);
	if (!rc)
		rc = buf_append(b, data, n);
	if (rc)
		b->len = start;
	return rc;
}

int pack_str(struct buf *b, const char *s)
{
	return pack_bytes(b, s, s ? strlen(s) : 0);
}

void cursor_init(struct cursor *c, const void *data, size_t n)
{
	c->at = data;
	c->end = n ? c->at + n : c->at; /* `data` may be NULL then */
	c->failed = false;
}

bool cursor_ok(const struct cursor *c)
{
	return !c->failed;
}

bool cursor_done(const struct cursor *c)
{
	return !c->failed && c->at == c->end;
}

size_t cursor_left(const struct cursor *c)
{
	return c->failed ? 0 : (size_t)(c->end - c->at);
}

const void *unpack_raw(struct cursor *c, size_t n)
{
	const unsigned char *at = c->at;

	if (c->failed || n > (size_t)(c->end - c->at)) {
		c->failed = true;
		return NULL;
	}
	c->at += n;
	return at;
}

static uint64_t unpack_le(struct cursor *c, size_t width)
{
	const unsigned char *bytes = unpack_raw(c, width);
	uint64_t v = 0;

	if (!bytes)
		return 0;
	for (size_t i = 0; i < width; i++)
		v |= (uint64_t)bytes[i] << (8 * i);
	return v;
}

uint8_t unpack_u8(struct cursor *c)
{
	return unpack_le(c, 1);
}

uint16_t unpack_u16(struct cursor *c)
{
	return unpack_le(c, 2);
}

uint32_t unpack_u32(struct cursor *c)
{
	return unpack_le(c, 4);
}

uint64_t unpack_u64(struct cursor *c)
{
	return unpack_le(c, 8);
}

const void *unpack_bytes(struct cursor *c, size_t max, size_t *n)
{
	size_t len = unpack_u32(c);

	*n = 0;
	if (len > max)
		c->failed = true;
	const void *at = unpack_raw(c, len);
	if (at)
		*n = len;
	return at;
}
