/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The wire form of a message: u32 length of what follows; u32 type, nspace, rank, status,
 * number, op; u64 id; text as pack_bytes; the data are the rest.
 */
#include "libpmi/pmix_msg.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libutil/coder.h"

#define NSPACE_AT (2 * sizeof(uint32_t)) /* behind length and type */
#define FIXED_BYTES (7 * sizeof(uint32_t) + sizeof(uint64_t))

/* An enum or an int32_t is such a u32. */
static void code_head(struct coder *c, struct pmix_msg *m)
{
	uint32_t type = m->type, status = (uint32_t)m->status, op = m->op;
	const void *text = m->text;

	code_u32(c, &type);
	code_u32(c, &m->nspace);
	code_u32(c, &m->rank);
	code_u32(c, &status);
	code_u32(c, &m->number);
	code_u32(c, &op);
	code_u64(c, &m->id);
	code_bytes(c, &text, &m->text_len);
	m->type = type;
	m->status = (int32_t)status;
	m->op = op;
	m->text = text;
}

int pmix_msg_pack_head(struct buf *b, const struct pmix_msg *m)
{
	struct pmix_msg copy = *m; /* its fields are only read */
	struct coder c = { .out = b };
	size_t start = b->len;

	if (m->text_len > PMIX_MSG_TEXT_MAX ||
	    m->len > PMIX_MSG_BYTES_MAX - FIXED_BYTES - m->text_len)
		return -EMSGSIZE;
	c.rc = pack_u32(b, FIXED_BYTES + m->text_len + m->len);
	code_head(&c, &copy);
	if (c.rc)
		b->len = start;
	return c.rc;
}

int pmix_msg_pack(struct buf *b, const struct pmix_msg *m)
{
	size_t start = b->len;
	int rc = pmix_msg_pack_head(b, m);

	if (!rc && m->len)
		rc = buf_append(b, m->data, m->len);
	if (rc)
		b->len = start;
	return rc;
}

void pmix_msg_set_nspace(void *message, uint32_t nspace)
{
	struct buf b;

	buf_init_in(&b, (char *)message + NSPACE_AT, sizeof(nspace));
	(void)pack_u32(&b, nspace);
}

static bool is_sound(const struct coder *c, const struct pmix_msg *m)
{
	return !c->rc && cursor_ok(&c->in) && m->type > 0 &&
	       m->type < PMIX_MSG_TYPES && m->text_len <= PMIX_MSG_TEXT_MAX;
}

int64_t pmix_msg_size(const void *length)
{
	struct cursor c;
	uint32_t size;

	cursor_init(&c, length, PMIX_MSG_LENGTH_BYTES);
	size = unpack_u32(&c);
	if (size < FIXED_BYTES || size > PMIX_MSG_BYTES_MAX)
		return -EPROTO;
	return PMIX_MSG_LENGTH_BYTES + (int64_t)size;
}

int64_t pmix_msg_unpack(struct pmix_msg *m, const void *data, size_t len)
{
	struct coder c = { .out = NULL };
	int64_t size;

	memset(m, 0, sizeof(*m));
	if (len < PMIX_MSG_LENGTH_BYTES)
		return 0;
	size = pmix_msg_size(data);
	if (size < 0)
		return size;
	if (len < (size_t)size)
		return 0;
	cursor_init(&c.in, data, (size_t)size);
	unpack_raw(&c.in, PMIX_MSG_LENGTH_BYTES);
	code_head(&c, m);
	if (!is_sound(&c, m))
		return -EPROTO;
	m->len = cursor_left(&c.in);
	m->data = m->len ? unpack_raw(&c.in, m->len) : NULL;
	return size;
}

/* ---- members and entries ---- */

int pmix_members_pack(struct buf *b, const uint32_t *ranks, uint32_t count)
{
	struct coder c = { .out = b };
	size_t start = b->len;

	code_u32(&c, &count);
	code_numbers(&c, (uint32_t **)&ranks, count);
	if (c.rc)
		b->len = start;
	return c.rc;
}

int pmix_members_unpack(struct cursor *in, uint32_t **ranks, uint32_t *count,
			uint32_t max)
{
	struct coder c = { .in = *in };

	*ranks = NULL;
	code_u32(&c, count);
	if (*count > max)
		return -EPROTO;
	code_numbers(&c, ranks, *count);
	*in = c.in;
	if (c.rc || !cursor_ok(in)) {
		free(*ranks);
		*ranks = NULL;
	}
	return c.rc ? c.rc : cursor_ok(in) ? 0 : -EPROTO;
}

int pmix_entry_pack_head(struct buf *b, const struct pmix_entry *e)
{
	size_t start = b->len;
	int rc = pack_u32(b, e->rank);

	rc = rc ? rc : pack_u32(b, e->len);
	if (rc)
		b->len = start;
	return rc;
}

int pmix_entry_pack(struct buf *b, const struct pmix_entry *e)
{
	size_t start = b->len;
	int rc = pmix_entry_pack_head(b, e);

	rc = rc ? rc : buf_append(b, e->bytes, e->len);
	if (rc)
		b->len = start;
	return rc;
}

bool pmix_entry_next(struct cursor *c, struct pmix_entry *e)
{
	size_t len;

	if (!cursor_left(c))
		return false;
	e->rank = unpack_u32(c);
	e->bytes = unpack_bytes(c, PMIX_MSG_BYTES_MAX, &len);
	e->len = (uint32_t)len;
	return cursor_ok(c);
}
