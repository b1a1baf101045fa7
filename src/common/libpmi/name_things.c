/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Published things by key. Things of one key, each of which not every process may see, are
 * a list.
 */
#include "libpmi/name_things.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>
#include <utlist.h>

#include "libpmi/name_store.h"
#include "libutil/hash.h"

struct key {
	UT_hash_handle hh;
	struct thing *things; /* never empty */
	char text[];
};

/* ---- processes ---- */

bool name_same(const char *a, const char *b)
{
	return a && b && !strcmp(a, b);
}

/* Are the two in one? */
static bool share(enum names_range range, const struct names_proc *a,
		  const struct names_proc *b)
{
	switch (range) {
	case NAMES_OF_PROCESS:
		return a->rank == b->rank && name_same(a->nspace, b->nspace);
	case NAMES_OF_NODE:
		return name_same(a->node, b->node);
	case NAMES_OF_NAMESPACE:
		return name_same(a->nspace, b->nspace);
	default:
		return true;
	}
}

void name_proc_free(struct names_proc *p)
{
	free((char *)p->nspace);
	free((char *)p->node);
}

int name_proc_copy(struct names_proc *to, const struct names_proc *from)
{
	to->rank = from->rank;
	to->nspace = strdup(from->nspace);
	to->node = strdup(from->node);
	return to->nspace && to->node ? 0 : -ENOMEM;
}

/* ---- things ---- */

static uint32_t hash_of(const struct name_things *s, const char *key)
{
	return hash_seeded(s->hash_seed, key, strlen(key));
}

static struct key *find_key(const struct name_things *s, const char *key)
{
	struct key *k;

	HASH_FIND_BYHASHVALUE(hh, s->keys, key, strlen(key), hash_of(s, key), k);
	return k;
}

static struct key *add_key(struct name_things *s, const char *text)
{
	size_t len = strlen(text);
	struct key *k = calloc(1, sizeof(*k) + len + 1);

	if (!k)
		return NULL;
	memcpy(k->text, text, len);
	HASH_ADD_KEYPTR_BYHASHVALUE(hh, s->keys, k->text, len, hash_of(s, text), k);
	if (find_key(s, text) == k)
		return k;
	free(k); /* the table could not grow */
	return NULL;
}

static size_t cost(const struct thing *t)
{
	return strlen(t->key->text) + t->len;
}

void name_things_remove(struct name_things *s, struct thing *t)
{
	struct key *k = t->key;

	s->count--;
	s->bytes -= cost(t);
	DL_DELETE(k->things, t);
	name_proc_free(&t->from);
	free(t);
	if (k->things)
		return;
	HASH_DEL(s->keys, k);
	free(k);
}

/* The thing that the request would see of that key, or NULL. */
struct thing *name_things_find(const struct name_things *s, const struct names_proc *who,
				enum names_range range, const char *key)
{
	struct key *k = find_key(s, key);
	struct thing *t = NULL;

	if (k)
		DL_FOREACH(k->things, t)
			if (share(t->range, &t->from, who) &&
			    share(range, who, &t->from))
				break;
	return t;
}

/* ---- publish ---- */

/* True: some process would see both this thing and a new one. */
static bool collides(const struct key *k, const struct names_proc *who,
		     enum names_range range)
{
	const struct thing *t;

	DL_FOREACH(k->things, t)
		if (share(t->range, &t->from, who) || share(range, who, &t->from))
			return true;
	return false;
}

static struct thing *new_thing(const struct names_proc *who,
			       const struct names_request *r,
			       const struct names_item *item)
{
	struct thing *t = calloc(1, sizeof(*t) + item->len);

	if (!t)
		return NULL;
	t->range = r->range;
	t->once = r->once;
	t->len = item->len;
	if (item->len)
		memcpy(t->value, item->value, item->len);
	if (!name_proc_copy(&t->from, who))
		return t;
	name_proc_free(&t->from);
	free(t);
	return NULL;
}

static bool has_room(const struct name_things *s, const struct names_item *item)
{
	return s->count < NAME_STORE_KEYS_MAX &&
	       strlen(item->key) + item->len <= NAME_STORE_BYTES_MAX - s->bytes;
}

static int add_thing(struct name_things *s, const struct names_proc *who,
		     const struct names_request *r, const struct names_item *item)
{
	struct key *k = find_key(s, item->key);
	struct thing *t;

	if (k && collides(k, who, r->range))
		return -EEXIST;
	if (!has_room(s, item))
		return -ENOSPC;
	t = new_thing(who, r, item);
	if (!t)
		return -ENOMEM;
	k = k ? k : add_key(s, item->key);
	if (!k) {
		name_proc_free(&t->from);
		free(t);
		return -ENOMEM;
	}
	t->key = k;
	DL_APPEND(k->things, t);
	s->count++;
	s->bytes += cost(t);
	return 0;
}

static bool is_own(const struct thing *t, const struct names_proc *who)
{
	return share(NAMES_OF_PROCESS, &t->from, who);
}

/* The latest thing of the asker under this key. */
static struct thing *find_own(const struct name_things *s, const struct names_proc *who,
			      const char *key)
{
	struct key *k = find_key(s, key);
	struct thing *t, *own = NULL;

	if (k)
		DL_FOREACH(k->things, t)
			if (is_own(t, who))
				own = t;
	return own;
}

/* All keys or none. */
int name_things_publish(struct name_things *s, const struct names_proc *who,
		   const struct names_request *r)
{
	uint32_t i;
	int rc = 0;

	for (i = 0; i < r->count && !rc; i++)
		rc = add_thing(s, who, r, &r->items[i]);
	for (i = rc ? i - 1 : 0; i > 0; i--)
		name_things_remove(s, find_own(s, who, r->items[i - 1].key));
	return rc;
}

/* ---- unpublish ---- */

static int unpublish_all(struct name_things *s, const struct names_proc *who)
{
	struct key *k, *next_key;
	struct thing *t, *next;

	HASH_ITER(hh, s->keys, k, next_key)
		DL_FOREACH_SAFE(k->things, t, next)
			if (is_own(t, who))
				name_things_remove(s, t);
	return 0;
}

int name_things_unpublish(struct name_things *s, const struct names_proc *who,
		     const struct names_request *r)
{
	struct thing *t;
	int rc = 0;

	if (!r->count)
		return unpublish_all(s, who);
	for (uint32_t i = 0; i < r->count; i++) {
		t = find_own(s, who, r->items[i].key);
		if (t)
			name_things_remove(s, t);
		else
			rc = -ENOENT;
	}
	return rc;
}

void name_things_free(struct name_things *s)
{
	struct key *k, *next_key;
	struct thing *t, *next;

	HASH_ITER(hh, s->keys, k, next_key)
		DL_FOREACH_SAFE(k->things, t, next)
			name_things_remove(s, t);
}
