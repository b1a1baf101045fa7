/* SPDX-License-Identifier: BSD-3-Clause */
/* Packs and unpacks messages of the store. */
#include "libstore/store_msg.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libstore/request.h"
#include "libutil/coder.h"

#define FLAG_LOCAL 1
#define FLAG_GATHER 2

#define STORE_MSG_ASK_FIXED (STORE_MSG_NUMBERED + 27) /* bytes of an ASK without strings */
#define STORE_MSG_PIECE 1024 /* bytes of a value from which on it is not copied */

/* ---- the fields of a message ---- */

static void code_string(struct coder *c, struct store_bytes *s, size_t max)
{
	code_limited(c, &s->data, &s->len, max);
}

static void code_keys(struct coder *c, struct store_request *rq)
{
	struct store_bytes *keys = (struct store_bytes *)rq->keys;

	code_count(c, &rq->nkeys, UINT32_MAX, sizeof(uint32_t));
	if (!c->out)
		rq->keys = keys = calloc((size_t)rq->nkeys + 1, sizeof(*keys));
	if (!keys && !c->out) {
		rq->nkeys = 0;
		c->rc = -ENOMEM;
	}
	for (uint32_t i = 0; i < rq->nkeys; i++)
		code_string(c, &keys[i], STORE_KEY_MAX);
}

static void code_request(struct coder *c, struct store_msg *m)
{
	struct store_request *rq = &m->rq;
	uint8_t flags = (rq->local ? FLAG_LOCAL : 0) | (rq->gather ? FLAG_GATHER : 0);

	CODE_ENUM(c, &m->space, STORE_SPACES);
	CODE_ENUM(c, &rq->op, STORE_OPS);
	code_u8(c, &flags);
	CODE_CHECK(c, flags <= (FLAG_LOCAL | FLAG_GATHER));
	code_u32(c, &rq->rank);
	code_i64(c, &rq->number);
	code_keys(c, rq);
	code_string(c, &rq->expected, STORE_VALUE_MAX);
	code_string(c, &rq->value, STORE_VALUE_MAX);
	CODE_CHECK(c, !request_check(rq));
	if (c->out)
		return;
	rq->local = flags & FLAG_LOCAL;
	rq->gather = flags & FLAG_GATHER;
}

/* A value that is read is a part of `bytes`. */
static void code_value(struct coder *c, struct payload **value, struct payload *bytes)
{
	struct store_bytes s = { NULL, 0 };
	uint8_t exists = *value != NULL;

	if (*value)
		s = (struct store_bytes){ (*value)->data, (*value)->len };
	code_u8(c, &exists);
	CODE_CHECK(c, exists <= 1);
	if (exists)
		code_string(c, &s, STORE_VALUE_MAX);
	if (c->out || c->rc || !s.data)
		return;
	*value = payload_slice(bytes, (size_t)((const unsigned char *)s.data - bytes->data),
			       s.len);
	if (!*value)
		c->rc = -ENOMEM;
}

/* The part before the values. A text that is read goes to `text`. */
static void code_answer_head(struct coder *c, struct store_answer *a, char *text)
{
	CODE_ENUM(c, &a->status, STORE_STATUSES);
	code_i64(c, &a->number);
	code_clean(c, c->out ? (char *)a->text : text, STORE_TEXT_MAX);
	code_count(c, &a->nvalues, UINT32_MAX, 1);
}

static void code_answer(struct coder *c, struct store_msg *m, struct payload *bytes)
{
	struct store_answer *a = &m->answer;
	struct payload **values = (struct payload **)a->values;

	code_answer_head(c, a, m->text);
	if (!c->out) {
		a->text = m->text;
		a->values = values = calloc((size_t)a->nvalues + 1, sizeof(*values));
	}
	if (!values && !c->out) {
		a->nvalues = 0;
		c->rc = -ENOMEM;
	}
	for (uint32_t i = 0; i < a->nvalues; i++)
		code_value(c, &values[i], bytes);
}

static void code_answered(struct coder *c, struct store_msg *m)
{
	uint64_t *numbers = (uint64_t *)m->numbers;

	code_count(c, &m->nnumbers, UINT32_MAX, sizeof(*numbers));
	if (!c->out)
		m->numbers = numbers = calloc((size_t)m->nnumbers + 1, sizeof(*numbers));
	if (!numbers && !c->out) {
		m->nnumbers = 0;
		c->rc = -ENOMEM;
	}
	for (uint32_t i = 0; i < m->nnumbers; i++)
		code_u64(c, &numbers[i]);
}

static bool has_number(enum store_msg_type type)
{
	return type <= STORE_MSG_CANCEL || type == STORE_MSG_CREDIT ||
	       type == STORE_MSG_RECALL || type == STORE_MSG_RECALLED;
}

/* The type as it is packed: it holds a flag of the request or of the answer. */
static void code_type(struct coder *c, struct store_msg *m)
{
	enum store_msg_type type = m->rq.behind ? STORE_MSG_BEHIND :
				   m->answer.copy ? STORE_MSG_COPY : m->type;

	CODE_ENUM(c, &type, STORE_MSG_TYPES);
	CODE_CHECK(c, type);
	if (c->out)
		return;
	m->rq.behind = type == STORE_MSG_BEHIND;
	m->answer.copy = type == STORE_MSG_COPY;
	m->type = m->rq.behind ? STORE_MSG_ASK : m->answer.copy ? STORE_MSG_ANSWER : type;
}

static void code_recall(struct coder *c, struct store_msg *m)
{
	CODE_ENUM(c, &m->space, STORE_SPACES);
	code_keys(c, &m->rq);
	CODE_CHECK(c, m->rq.nkeys == 1);
}

static void code_message(struct coder *c, struct store_msg *m, struct payload *bytes)
{
	code_type(c, m);
	if (has_number(m->type))
		code_u64(c, &m->number);
	if (m->type == STORE_MSG_HELLO)
		code_u32(c, &m->version);
	if (m->type == STORE_MSG_GONE || m->type == STORE_MSG_HELLO)
		code_u32(c, &m->rank);
	if (m->type == STORE_MSG_GONE)
		code_clean(c, m->text, sizeof(m->text));
	if (m->type == STORE_MSG_ASK)
		code_request(c, m);
	if (m->type == STORE_MSG_RECALL)
		code_recall(c, m);
	if (m->type == STORE_MSG_ANSWERS)
		code_answered(c, m);
	if (m->type == STORE_MSG_ANSWER || m->type == STORE_MSG_ANSWERS)
		code_answer(c, m, bytes);
}

/* ---- messages ---- */

int store_msg_pack(struct buf *b, const struct store_msg *m)
{
	struct coder c = { .out = b };

	code_message(&c, (struct store_msg *)m, NULL);
	return c.rc;
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

/* `m` is without its values; `for_client`: room for its length comes first. */
static int make_answer(struct payload_vec *out, struct store_msg *m,
		       const struct store_answer *a, bool for_client, struct budget *budget)
{
	uint8_t type = (uint8_t)(a->copy && !for_client && m->type == STORE_MSG_ANSWER ?
				  STORE_MSG_COPY : m->type);
	struct buf b;
	struct coder c = { .out = &b };
	int rc;

	buf_init(&b, STORE_MSG_MAX);
	b.budget = budget;
	c.rc = for_client ? pack_u32(&b, 0) : 0;
	code_u8(&c, &type);
	if (m->type == STORE_MSG_ANSWERS)
		code_answered(&c, m);
	else
		code_u64(&c, &m->number);
	code_answer_head(&c, (struct store_answer *)a, NULL);
	rc = c.rc;
	for (uint32_t i = 0; !rc && i < a->nvalues; i++)
		rc = add_value(out, &b, a->values[i]);
	rc = rc ? rc : end_piece(out, &b);
	if (!rc && for_client)
		set_length(out);
	buf_free(&b);
	return rc;
}

int store_msg_make_answer(struct payload_vec *out, const uint64_t *numbers, uint32_t n,
			  const struct store_answer *a, struct budget *budget)
{
	struct store_msg m = {
		.type = n > 1 ? STORE_MSG_ANSWERS : STORE_MSG_ANSWER,
		.number = *numbers, .numbers = numbers, .nnumbers = n,
	};

	return make_answer(out, &m, a, false, budget);
}

int store_msg_make_client_answer(struct payload_vec *out, uint64_t number,
				 const struct store_answer *a, struct budget *budget)
{
	struct store_msg m = { .type = STORE_MSG_ANSWER, .number = number };

	return make_answer(out, &m, a, true, budget);
}

int store_msg_unpack(struct store_msg *m, struct payload *bytes)
{
	struct coder c = { .out = NULL };
	int rc;

	memset(m, 0, offsetof(struct store_msg, text) + 1);
	cursor_init(&c.in, bytes->data, bytes->len);
	code_message(&c, m, bytes);
	rc = coder_end(&c);
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
	free((void *)m->numbers);
	m->numbers = NULL;
	m->answer = (struct store_answer){ .text = "" };
	m->rq = (struct store_request){ 0 };
}
