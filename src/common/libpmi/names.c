/* SPDX-License-Identifier: BSD-3-Clause */
/* The wire form of requests and answers: fields, u32 count of the items, and the items. */
#include "libpmi/names.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libutil/coder.h"

/* A look-up has no value. */
static void code_item(struct coder *c, struct names_item *item, bool look_up)
{
	code_text(c, &item->key);
	if (look_up)
		code_bytes(c, &item->ranks, &item->ranks_len);
	else
		code_bytes(c, &item->value, &item->len);
	code_text(c, &item->from.nspace);
	code_u32(c, &item->from.rank);
}

static bool is_key(const char *key)
{
	return key && key[0] && strlen(key) <= NAMES_KEY_MAX;
}

static int pack_items(struct coder *c, const struct names_item *items, uint32_t count,
		      bool look_up)
{
	if (count > NAMES_KEYS_MAX)
		return -EMSGSIZE;
	code_u32(c, &count);
	for (uint32_t i = 0; i < count; i++) {
		struct names_item item = items[i];

		if (!is_key(item.key))
			return -EMSGSIZE;
		code_item(c, &item, look_up);
	}
	return c->rc;
}

/* All or nothing; the limit of the buffer is its caller's. */
static int pack_end(struct buf *b, size_t start, int rc)
{
	if (!rc && b->len - start > NAMES_BYTES_MAX)
		rc = -EMSGSIZE;
	if (rc)
		b->len = start;
	return rc;
}

static void code_request(struct coder *c, struct names_request *r)
{
	uint32_t op = r->op, range = r->range;

	code_u32(c, &op);
	code_u32(c, &range);
	code_bool(c, &r->once);
	code_u32(c, &r->wait);
	code_u32(c, &r->timeout_ms);
	r->op = op;
	r->range = range;
}

int names_pack_request(struct buf *b, const struct names_request *r)
{
	struct names_request copy = *r; /* its fields are only read */
	struct coder c = { .out = b };
	size_t start = b->len;

	code_request(&c, &copy);
	return pack_end(b, start, pack_items(&c, r->items, r->count,
					     r->op == NAMES_LOOKUP));
}

int names_pack_answer(struct buf *b, const struct names_answer *a)
{
	struct coder c = { .out = b };
	size_t start = b->len;
	uint32_t error = (uint32_t)a->error;

	code_u32(&c, &error);
	return pack_end(b, start, pack_items(&c, a->items, a->count, false));
}

/* Memory grows with what is there: an item has more bytes than that. */
static int unpack_items(struct coder *c, struct names_item **items, uint32_t *count,
			bool look_up)
{
	int rc;

	code_u32(c, count);
	if (*count > NAMES_KEYS_MAX || *count > cursor_left(&c->in))
		return -EPROTO;
	*items = calloc(*count ? *count : 1, sizeof(**items));
	if (!*items)
		return -ENOMEM;
	for (uint32_t i = 0; i < *count; i++) {
		code_item(c, &(*items)[i], look_up);
		if (!is_key((*items)[i].key))
			c->in.failed = true;
	}
	rc = coder_end(c);
	if (rc)
		free(*items);
	return rc;
}

static bool is_sound(const struct names_request *r)
{
	return r->op > 0 && r->op < NAMES_OPS && r->range > 0 &&
	       r->range < NAMES_RANGES &&
	       (r->count || r->op == NAMES_UNPUBLISH || r->op == NAMES_ENDED) &&
	       r->wait <= r->count;
}

int names_unpack_request(struct names_request *r, const void *data, size_t len)
{
	struct coder c = { .out = NULL };
	int rc;

	memset(r, 0, sizeof(*r));
	cursor_init(&c.in, data, len);
	code_request(&c, r);
	rc = unpack_items(&c, &r->items, &r->count, r->op == NAMES_LOOKUP);
	if (!rc && !is_sound(r)) {
		free(r->items);
		rc = -EPROTO;
	}
	return rc;
}

int names_unpack_answer(struct names_answer *a, const void *data, size_t len)
{
	struct coder c = { .out = NULL };
	uint32_t error;

	cursor_init(&c.in, data, len);
	code_u32(&c, &error);
	a->error = (int32_t)error;
	return unpack_items(&c, &a->items, &a->count, false);
}
