/* SPDX-License-Identifier: BSD-3-Clause */
/* Copies of values, by key, and who has one. */
#include "libstore/copies.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#include "libstore/request.h"
#include "libutil/array.h"
#include "libutil/hash.h"

#define COPY_OVERHEAD 192 /* bytes of a copy beside its key and value */

struct copy {
	UT_hash_handle hh;     /* in copies.keys, by name */
	enum store_space space;
	struct payload *value; /* NULL: no copy */
	uint32_t reads;        /* on their way */
	uint64_t changes;
	struct holders children;
	size_t len;
	char name[];
};

struct copies {
	struct copy *keys[STORE_SPACES];
	uint64_t seed, bytes, most;
};

/* ---- holders ---- */

int holders_add(struct holders *h, uint32_t position)
{
	for (size_t i = 0; i < h->n; i++)
		if (h->positions[i] == position)
			return 0;
	if (array_grow(&h->positions, h->n, &h->room, sizeof(*h->positions)))
		return -ENOMEM;
	h->positions[h->n++] = position;
	return 0;
}

void holders_take(struct holders *h, void (*fn)(void *arg, uint32_t position), void *arg)
{
	const struct holders all = *h;

	*h = (struct holders){ .positions = NULL };
	for (size_t i = 0; i < all.n; i++)
		fn(arg, all.positions[i]);
	free(all.positions);
}

/* ---- copies ---- */

static struct copy *find(const struct copies *c, enum store_space space,
			 const struct store_bytes *name)
{
	uint32_t hash = hash_seeded(c->seed, name->data, name->len);
	struct copy *copy;

	HASH_FIND_BYHASHVALUE(hh, c->keys[space], name->data, name->len, hash, copy);
	return copy;
}

static bool has_room(const struct copies *c, uint64_t bytes)
{
	return bytes <= c->most - c->bytes;
}

static struct copy *add(struct copies *c, enum store_space space,
			const struct store_bytes *name)
{
	uint32_t hash = hash_seeded(c->seed, name->data, name->len);
	struct copy *copy = has_room(c, COPY_OVERHEAD + name->len) ?
				    calloc(1, sizeof(*copy) + name->len) : NULL;

	if (!copy)
		return NULL;
	copy->space = space;
	copy->len = name->len;
	if (name->len)
		memcpy(copy->name, name->data, name->len);
	HASH_ADD_KEYPTR_BYHASHVALUE(hh, c->keys[space], copy->name, copy->len, hash, copy);
	if (!copy->hh.tbl) {
		free(copy);
		return NULL;
	}
	c->bytes += COPY_OVERHEAD + copy->len;
	return copy;
}

static void drop_value(struct copies *c, struct copy *copy)
{
	if (copy->value)
		c->bytes -= copy->value->len;
	payload_unref(copy->value);
	copy->value = NULL;
}

static void free_copy(struct copies *c, struct copy *copy)
{
	drop_value(c, copy);
	HASH_DELETE(hh, c->keys[copy->space], copy);
	c->bytes -= COPY_OVERHEAD + copy->len;
	free(copy->children.positions);
	free(copy);
}

static void drop_unused(struct copies *c, struct copy *copy)
{
	if (!copy->value && !copy->reads && !copy->children.n)
		free_copy(c, copy);
}

struct payload *copies_find(const struct copies *c, enum store_space space,
			    const struct store_request *rq)
{
	const struct copy *copy = request_reads_key(rq) ? find(c, space, rq->keys) : NULL;

	return copy ? copy->value : NULL;
}

/* ---- reads on their way ---- */

struct copy *copies_read(struct copies *c, enum store_space space,
			 const struct store_request *rq)
{
	struct copy *copy;

	if (!request_reads_key(rq))
		return NULL;
	copy = find(c, space, rq->keys);
	return copies_ref(copy ? copy : add(c, space, rq->keys));
}

struct copy *copies_ref(struct copy *copy)
{
	if (copy)
		copy->reads++;
	return copy;
}

void copies_release(struct copies *c, struct copy *copy)
{
	if (!copy)
		return;
	copy->reads--;
	drop_unused(c, copy);
}

uint64_t copies_changes(const struct copy *copy)
{
	return copy->changes;
}

void copies_keep(struct copies *c, struct copy *copy, struct payload *value)
{
	drop_value(c, copy);
	if (!has_room(c, value->len))
		return;
	copy->value = payload_ref(value);
	c->bytes += value->len;
}

bool copies_kept(const struct copy *copy)
{
	return copy->value != NULL;
}

bool copies_lend(struct copy *copy, uint32_t position)
{
	return !holders_add(&copy->children, position);
}

bool copies_lend_found(struct copies *c, enum store_space space, const struct store_request *rq,
		       uint32_t position)
{
	return copies_lend(find(c, space, rq->keys), position);
}

/* ---- the end of copies ---- */

void copies_change(struct copies *c, enum store_space space, const struct store_bytes *key)
{
	struct copy *copy = find(c, space, key);

	if (!copy)
		return;
	copy->changes++;
	drop_value(c, copy);
	drop_unused(c, copy);
}

void copies_recall(struct copies *c, enum store_space space, const struct store_bytes *key,
		   void (*fn)(void *arg, uint32_t position), void *arg)
{
	struct copy *copy = find(c, space, key);

	if (!copy)
		return;
	drop_value(c, copy);
	holders_take(&copy->children, fn, arg);
	drop_unused(c, copy);
}

/* ---- life ---- */

struct copies *copies_create(uint64_t bytes, uint64_t seed)
{
	struct copies *c = calloc(1, sizeof(*c));

	if (c)
		*c = (struct copies){ .seed = seed, .most = bytes };
	return c;
}

void copies_destroy(struct copies *c)
{
	struct copy *copy, *next;

	for (int space = 0; c && space < STORE_SPACES; space++)
		HASH_ITER(hh, c->keys[space], copy, next)
			free_copy(c, copy);
	free(c);
}
