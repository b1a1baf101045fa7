/* SPDX-License-Identifier: BSD-3-Clause */
/* One list of fields for both directions. */
#include "libutil/coder.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int coder_end(const struct coder *c)
{
	if (c->rc)
		return c->rc;
	return cursor_done(&c->in) ? 0 : -EPROTO;
}

int coder_leave(const struct coder *c, struct cursor *in)
{
	*in = c->in;
	if (c->rc)
		return c->rc;
	return cursor_ok(in) ? 0 : -EPROTO;
}

int coder_wrote(const struct coder *c, size_t start)
{
	if (c->rc)
		c->out->len = start;
	return c->rc;
}

void code_u8(struct coder *c, uint8_t *v)
{
	if (!c->out)
		*v = unpack_u8(&c->in);
	else if (!c->rc)
		c->rc = pack_u8(c->out, *v);
}

void code_flag(struct coder *c, bool *v)
{
	uint8_t byte = *v;

	code_u8(c, &byte);
	if (!c->out)
		*v = byte != 0;
}

void code_u16(struct coder *c, uint16_t *v)
{
	if (!c->out)
		*v = unpack_u16(&c->in);
	else if (!c->rc)
		c->rc = pack_u16(c->out, *v);
}

void code_u32(struct coder *c, uint32_t *v)
{
	if (!c->out)
		*v = unpack_u32(&c->in);
	else if (!c->rc)
		c->rc = pack_u32(c->out, *v);
}

void code_i32(struct coder *c, int32_t *v)
{
	uint32_t bits = (uint32_t)*v;

	code_u32(c, &bits);
	if (!c->out)
		*v = (int32_t)bits;
}

void code_port(struct coder *c, uint16_t *v)
{
	uint32_t wide = *v;

	code_u32(c, &wide);
	if (!c->out)
		*v = (uint16_t)wide;
}

void code_bool(struct coder *c, bool *v)
{
	uint32_t wide = *v;

	code_u32(c, &wide);
	if (!c->out)
		*v = wide != 0;
}

void code_u64(struct coder *c, uint64_t *v)
{
	if (!c->out)
		*v = unpack_u64(&c->in);
	else if (!c->rc)
		c->rc = pack_u64(c->out, *v);
}

void code_i64(struct coder *c, int64_t *v)
{
	uint64_t bits = (uint64_t)*v;

	code_u64(c, &bits);
	if (!c->out)
		*v = (int64_t)bits;
}

void code_raw(struct coder *c, void *at, size_t len)
{
	const void *from;

	if (c->out) {
		c->rc = c->rc ? c->rc : buf_append(c->out, at, len);
		return;
	}
	from = unpack_raw(&c->in, len);
	if (from)
		memcpy(at, from, len);
	else
		memset(at, 0, len);
}

void code_limited(struct coder *c, const void **at, size_t *len, size_t max)
{
	if (!c->out)
		*at = unpack_bytes(&c->in, max, len);
	else if (!c->rc)
		c->rc = pack_bytes(c->out, *at, *len);
}

void code_clean(struct coder *c, char *text, size_t size)
{
	size_t len = c->out ? strlen(text) : 0;
	const void *at = text;

	code_limited(c, &at, &len, size - 1);
	if (c->out)
		return;
	for (size_t i = 0; i < len; i++) {
		char byte = ((const char *)at)[i];

		text[i] = byte >= ' ' && byte <= '~' ? byte : '?';
	}
	text[len] = '\0';
}

void code_bytes(struct coder *c, const void **at, size_t *len)
{
	code_limited(c, at, len, CODER_BYTES_MAX);
	if (!c->out && !*len)
		*at = NULL;
}

void code_text(struct coder *c, const char **text)
{
	size_t len = c->out && *text ? strlen(*text) + 1 : 0;
	const void *at = *text;

	code_bytes(c, &at, &len);
	if (c->out)
		return;
	CODE_CHECK(c, !len || !((const char *)at)[len - 1]);
	*text = at;
}

void code_count(struct coder *c, uint32_t *count, uint32_t max, size_t bytes)
{
	code_u32(c, count);
	CODE_CHECK(c, *count <= max && *count <= cursor_left(&c->in) / bytes);
	if (!c->out && !cursor_ok(&c->in))
		*count = 0;
}

void code_u32s(struct coder *c, uint32_t *numbers, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		code_u32(c, &numbers[i]);
}

void code_numbers(struct coder *c, uint32_t **numbers, uint32_t count)
{
	if (!count)
		return;
	if (!c->out && count > cursor_left(&c->in) / sizeof(uint32_t)) {
		c->in.failed = true;
		return;
	}
	if (!c->out && !(*numbers = calloc(count + 1, sizeof(**numbers))))
		c->rc = -ENOMEM;
	else
		code_u32s(c, *numbers, count);
}

void code_numbers_if(struct coder *c, uint32_t **numbers, uint32_t count)
{
	bool there = *numbers != NULL;

	code_bool(c, &there);
	code_numbers(c, numbers, there ? count : 0);
}

void code_names(struct coder *c, const char ***names, uint32_t count)
{
	if (!c->out && count > cursor_left(&c->in) / sizeof(uint32_t)) {
		c->in.failed = true;
		return;
	}
	if (!c->out && !(*names = calloc(count + 1, sizeof(**names))))
		c->rc = -ENOMEM;
	for (uint32_t i = 0; i < count && !c->rc; i++) {
		code_text(c, &(*names)[i]);
		if (!(*names)[i])
			c->in.failed = !c->out;
	}
}
