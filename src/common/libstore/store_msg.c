/* SPDX-License-Identifier: BSD-3-Clause */
/* Packs and unpacks messages of the store. */
#include "libstore/store_msg.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libstore/request.h"
#include "libutil/pack.h"

#define FLAG_LOCAL 1
#define FLAG_GATHER 2

#define STORE_MSG_ASK_FIXED (STORE_MSG_NUMBERED + 27) /* bytes of an ASK without strings */
#define STORE_MSG_PIECE 1024 /* bytes of a value from which on it is not copied */

/* ---- packing ---- */

static int pack_request(struct buf *b, const struct store_msg *m)
{
	const struct store_request *rq = &m->rq;
	int rc = pack_u8(b, (uint8_t)m->space);

	rc = rc ? rc : pack_u8(b, (uint8_t)rq->op);
	rc = rc ? rc : pack_u8(b, (rq->local ? FLAG_LOCAL : 0) |
					  (rq->gather ? FLAG_GATHER : 0));
	rc = rc ? rc : pack_u32(b, rq->rank);
	rc = rc ? rc : pack_u64(b, (uint64_t)rq->number);
	rc = rc ? rc : pack_u32(b, rq->nkeys);
	for (uint32_t i = 0; !rc && i < rq->nkeys; i++)
		rc = pack_bytes(b, rq->keys[i].data, rq->keys[i].len);
	rc = rc ? rc : pack_bytes(b, rq->expected.data, rq->expected.len);
	return rc ? rc : pack_bytes(b, rq->value.data, rq->value.len);
}

/* The part before the values. */
static int pack_answer_head(struct buf *b, const struct store_answer *a)
{
	int rc = pack_u8(b, (uint8_t)a->status);

	rc = rc ? rc : pack_u64(b, (uint64_t)a->number);
	rc = rc ? rc : pack_str(b, a->text);
	return rc ? rc : pack_u32(b, a->nvalues);
}

static int pack_answer(struct buf *b, const struct store_answer *a)
{
	int rc = pack_answer_head(b, a);

	for (uint32_t i = 0; !rc && i < a->nvalues; i++) {
		const struct payload *p = a->values[i];

		rc = pack_u8(b, p != NULL);
		if (p && !rc)
			rc = pack_bytes(b, p->data, p->len);
	}
	return rc;
}

static bool has_number(enum store_msg_type type)
{
	return type <= STORE_MSG_CANCEL || type == STORE_MSG_CREDIT;
}

int store_msg_pack(struct buf *b, const struct store_msg *m)
{
	int rc = pack_u8(b, (uint8_t)m->type);

	if (has_number(m->type))
		rc = rc ? rc : pack_u64(b, m->number);
	if (m->type == STORE_MSG_HELLO)
		rc = rc ? rc : pack_u32(b, m->version);
	if (m->type == STORE_MSG_GONE || m->type == STORE_MSG_HELLO)
		rc = rc ? rc : pack_u32(b, m->rank);
	if (m->type == STORE_MSG_GONE)
		rc = rc ? rc : pack_str(b, m->text);
	if (m->type == STORE_MSG_ASK)
		rc = rc ? rc : pack_request(b, m);
	if (m->type == STORE_MSG_ANSWER)
		rc = rc ? rc : pack_answer(b, &m->answer);
	return rc;
}

int store_msg_pack_client(struct buf *b, const struct store_msg *m)
{
	struct buf length;
	int rc = pack_u32(b, 0);

	rc = rc ? rc : store_msg_pack(b, m);
	if (rc)
		return rc;
	buf_init_in(&length, b->data, STORE_MSG_LENGTH);
	return pack_u32(&length, (uint32_t)(b->len - STORE_MSG_LENGTH));
}

uint32_t store_msg_length(const void *bytes)
{
	struct cursor c;

	cursor_init(&c, bytes, STORE_MSG_LENGTH);
	return unpack_u32(&c);
}

/* Bytes of a packed request, exactly: a buffer that grows may take twice as many. */
static size_t size_of_ask(const struct store_request *rq)
{
	size_t bytes = STORE_MSG_ASK_FIXED + rq->expected.len + rq->value.len;

	for (uint32_t i = 0; i < rq->nkeys; i++)
		bytes += sizeof(uint32_t) + rq->keys[i].len;
	return bytes;
}

static struct payload *make_ask(const struct store_msg *m, struct budget *budget)
{
	struct payload *p = payload_new_in(budget, size_of_ask(&m->rq));
	struct buf b;

	if (!p)
		return NULL;
	buf_init_in(&b, (char *)p->data, p->len);
	if (!store_msg_pack(&b, m) && b.len == p->len)
		return p;
	payload_unref(p);
	return NULL;
}

struct payload *store_msg_make(const struct store_msg *m, struct budget *budget)
{
	struct payload *p = NULL;
	struct buf b;

	if (m->type == STORE_MSG_ASK)
		return make_ask(m, budget);
	buf_init(&b, STORE_MSG_MAX);
	b.budget = budget;
	if (!store_msg_pack(&b, m))
		p = payload_take(&b);
	buf_free(&b);
	return p;
}

/* ---- an answer in pieces ---- */

/* The bytes of `b` become a piece, and `b` is empty. */
static int end_piece(struct payload_vec *out, struct buf *b)
{
	struct payload *p = b->len ? payload_take(b) : NULL;
	int rc = p ? payload_vec_add(out, p) : b->len ? -ENOMEM : 0;

	payload_unref(p);
	return rc;
}

static int add_value(struct payload_vec *out, struct buf *b, struct payload *value)
{
	int rc = pack_u8(b, value != NULL);

	if (rc || !value)
		return rc;
	if (value->len < STORE_MSG_PIECE)
		return pack_bytes(b, value->data, value->len);
	rc = pack_u32(b, (uint32_t)value->len);
	rc = rc ? rc : end_piece(out, b);
	return rc ? rc : payload_vec_add(out, value);
}

/* The first piece has room for the length. */
static void set_length(struct payload_vec *out)
{
	struct buf length;

	buf_init_in(&length, (char *)out->items[0]->data, STORE_MSG_LENGTH);
	(void)pack_u32(&length, (uint32_t)(out->bytes - STORE_MSG_LENGTH));
}

int store_msg_make_answer(struct payload_vec *out, uint64_t number,
			  const struct store_answer *a, bool for_client,
			  struct budget *budget)
{
	struct buf b;
	int rc;

	buf_init(&b, STORE_MSG_MAX);
	b.budget = budget;
	rc = for_client ? pack_u32(&b, 0) : 0;
	rc = rc ? rc : pack_u8(&b, STORE_MSG_ANSWER);
	rc = rc ? rc : pack_u64(&b, number);
	rc = rc ? rc : pack_answer_head(&b, a);
	for (uint32_t i = 0; !rc && i < a->nvalues; i++)
		rc = add_value(out, &b, a->values[i]);
	rc = rc ? rc : end_piece(out, &b);
	if (!rc && for_client)
		set_length(out);
	buf_free(&b);
	return rc;
}

/* ---- unpacking ---- */

static struct store_bytes unpack_string(struct cursor *c, size_t max)
{
	struct store_bytes s = { NULL, 0 };

	s.data = unpack_bytes(c, max, &s.len);
	if (!s.data)
		s.len = 0;
	return s;
}

/* Texts go to terminals, so unprintable bytes become '?'. */
static void unpack_text(struct cursor *c, char out[STORE_TEXT_MAX])
{
	const struct store_bytes s = unpack_string(c, STORE_TEXT_MAX - 1);
	const char *from = s.data;

	for (size_t i = 0; i < s.len; i++)
		out[i] = from[i] >= ' ' && from[i] < 127 ? from[i] : '?';
	out[s.len] = '\0';
}

static int unpack_request(struct cursor *c, struct store_msg *m)
{
	struct store_request *rq = &m->rq;
	struct store_bytes *keys;
	uint8_t flags;

	m->space = unpack_u8(c);
	rq->op = unpack_u8(c);
	flags = unpack_u8(c);
	rq->local = flags & FLAG_LOCAL;
	rq->gather = flags & FLAG_GATHER;
	rq->rank = unpack_u32(c);
	rq->number = (int64_t)unpack_u64(c);
	rq->nkeys = unpack_u32(c);
	if (!cursor_ok(c) || flags > (FLAG_LOCAL | FLAG_GATHER) ||
	    (unsigned)m->space >= STORE_SPACES || rq->nkeys > cursor_left(c) / sizeof(uint32_t))
		return -EPROTO;
	keys = calloc((size_t)rq->nkeys + 1, sizeof(*keys));
	rq->keys = keys;
	if (!keys)
		return -ENOMEM;
	for (uint32_t i = 0; i < rq->nkeys; i++)
		keys[i] = unpack_string(c, STORE_KEY_MAX);
	rq->expected = unpack_string(c, STORE_VALUE_MAX);
	rq->value = unpack_string(c, STORE_VALUE_MAX);
	return cursor_done(c) && !request_check(rq) ? 0 : -EPROTO;
}

static int unpack_value(struct cursor *c, struct payload *bytes, struct payload **out)
{
	uint8_t exists = unpack_u8(c);
	struct store_bytes s;

	if (!cursor_ok(c) || exists > 1)
		return -EPROTO;
	if (!exists)
		return 0;
	s = unpack_string(c, STORE_VALUE_MAX);
	if (!cursor_ok(c))
		return -EPROTO;
	*out = payload_slice(bytes, s.data ? (size_t)((const unsigned char *)s.data - bytes->data) :
					     0, s.len);
	return *out ? 0 : -ENOMEM;
}

static int unpack_answer(struct cursor *c, struct store_msg *m, struct payload *bytes)
{
	struct store_answer *a = &m->answer;
	struct payload **values;
	uint32_t n;
	int rc = 0;

	a->status = unpack_u8(c);
	a->number = (int64_t)unpack_u64(c);
	unpack_text(c, m->text);
	a->text = m->text;
	n = unpack_u32(c);
	if (!cursor_ok(c) || (unsigned)a->status >= STORE_STATUSES || n > cursor_left(c))
		return -EPROTO;
	values = calloc((size_t)n + 1, sizeof(*values));
	a->values = values;
	if (!values)
		return -ENOMEM;
	for (; !rc && a->nvalues < n; a->nvalues++)
		rc = unpack_value(c, bytes, &values[a->nvalues]);
	return rc || cursor_done(c) ? rc : -EPROTO;
}

static int unpack_rest(struct cursor *c, struct store_msg *m, struct payload *bytes)
{
	if (m->type == STORE_MSG_ASK)
		return unpack_request(c, m);
	if (m->type == STORE_MSG_ANSWER)
		return unpack_answer(c, m, bytes);
	if (m->type == STORE_MSG_HELLO)
		m->version = unpack_u32(c);
	if (m->type == STORE_MSG_GONE || m->type == STORE_MSG_HELLO)
		m->rank = unpack_u32(c);
	if (m->type == STORE_MSG_GONE)
		unpack_text(c, m->text);
	return cursor_done(c) ? 0 : -EPROTO;
}

int store_msg_unpack(struct store_msg *m, struct payload *bytes)
{
	struct cursor c;
	int rc;

	memset(m, 0, offsetof(struct store_msg, text) + 1);
	cursor_init(&c, bytes->data, bytes->len);
	m->type = unpack_u8(&c);
	if (!m->type || (unsigned)m->type >= STORE_MSG_TYPES)
		return -EPROTO;
	if (has_number(m->type))
		m->number = unpack_u64(&c);
	rc = unpack_rest(&c, m, bytes);
	if (rc)
		store_msg_free(m);
	return rc;
}

void store_msg_free(struct store_msg *m)
{
	for (uint32_t i = 0; i < m->answer.nvalues; i++)
		payload_unref(m->answer.values[i]);
	free((void *)m->answer.values);
	free((void *)m->rq.keys);
	m->answer = (struct store_answer){ .text = "" };
	m->rq = (struct store_request){ 0 };
}
