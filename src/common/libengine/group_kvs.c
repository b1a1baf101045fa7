/* SPDX-License-Identifier: BSD-3-Clause */
/* A table of values between a group's barrier and the next fence. */
#include "libengine/group_kvs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#include "libutil/hash.h"

struct early_value {
	UT_hash_handle hh;
	uint32_t fence;
	uint32_t key_len;
	uint32_t value_len;
	char text[]; /* key, NUL, value, NUL */
};

void early_init(struct early *e, uint64_t seed, struct budget *budget)
{
	*e = (struct early){ .seed = seed, .budget = budget };
}

static size_t size_of(uint32_t key_len, uint32_t value_len)
{
	return sizeof(struct early_value) + key_len + value_len + 2;
}

static const char *value_of(const struct early_value *v)
{
	return v->text + v->key_len + 1;
}

static void drop(struct early *e, struct early_value *v)
{
	size_t size = size_of(v->key_len, v->value_len);

	e->used -= size;
	budget_give(e->budget, size);
	free(v);
}

static void remove_value(struct early *e, struct early_value *v)
{
	HASH_DEL(e->values, v);
	drop(e, v);
}

void early_free(struct early *e)
{
	early_fenced(e, UINT32_MAX);
}

static struct early_value *find(const struct early *e, const char *key,
				size_t len)
{
	uint32_t hash = hash_seeded(e->seed, key, len);
	struct early_value *v;

	HASH_FIND_BYHASHVALUE(hh, e->values, key, len, hash, v);
	return v;
}

/* Not in the table yet. 0, -ENOSPC or -ENOMEM. */
static int new_value(struct early *e, const struct record *r,
		     struct early_value **out)
{
	size_t size = size_of(r->key_len, r->value_len);
	struct early_value *v;

	if (size > EARLY_MAX - e->used)
		return -ENOSPC;
	if (!budget_take(e->budget, size))
		return -ENOMEM;
	v = calloc(1, size);
	if (!v) {
		budget_give(e->budget, size);
		return -ENOMEM;
	}
	e->used += size;
	v->key_len = r->key_len;
	v->value_len = r->value_len;
	memcpy(v->text, r->key, r->key_len);
	memcpy(v->text + r->key_len + 1, r->value, r->value_len);
	*out = v;
	return 0;
}

static int add(struct early *e, const struct record *r, uint32_t fence)
{
	uint32_t hash = hash_seeded(e->seed, r->key, r->key_len);
	struct early_value *v;
	int rc = new_value(e, r, &v);

	if (rc)
		return rc;
	v->fence = fence;
	HASH_ADD_KEYPTR_BYHASHVALUE(hh, e->values, v->text, v->key_len, hash, v);
	if (v->hh.tbl)
		return 0;
	drop(e, v);
	return -ENOMEM;
}

int early_put(struct early *e, const struct record *r, uint32_t fence)
{
	struct early_value *v = find(e, r->key, r->key_len);

	if (v && v->fence > fence)
		fence = v->fence;
	if (v && v->value_len == r->value_len &&
	    !memcmp(value_of(v), r->value, r->value_len)) {
		v->fence = fence;
		return 0;
	}
	if (v)
		remove_value(e, v);
	return add(e, r, fence);
}

bool early_find(const struct early *e, const char *key, size_t key_len,
		const char **value, size_t *value_len)
{
	const struct early_value *v = NULL;

	if (e->values)
		v = find(e, key, key_len);
	if (!v)
		return false;
	*value = value_of(v);
	*value_len = v->value_len;
	return true;
}

void early_fenced(struct early *e, uint32_t fence)
{
	struct early_value *v, *next;

	HASH_ITER(hh, e->values, v, next)
		if (v->fence <= fence)
			remove_value(e, v);
}
