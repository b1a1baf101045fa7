/* SPDX-License-Identifier: BSD-3-Clause */
/* Keeps the bundles of an operation while they come in. */
#include "store.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void store_init(struct store *s, struct group *group)
{
	memset(s, 0, sizeof(*s));
	s->group = group;
}

void store_free(struct store *s)
{
	if (!s->group)
		free(s->base);
	s->base = NULL;
}

static int reserve(struct store *s, size_t size)
{
	char *base;

	if (s->group) {
		base = group_memory(s->group, size);
	} else if (size <= s->size) {
		return 0;
	} else {
		size += s->size;
		base = realloc(s->base, size);
	}
	if (!base)
		return -ENOMEM;
	s->base = base;
	s->size = size;
	return 0;
}

static size_t directory_size(uint32_t count)
{
	return (size_t)count * sizeof(struct store_entry);
}

int store_begin(struct store *s, uint32_t count, size_t expected)
{
	size_t used = directory_size(count);
	int rc = reserve(s, used + count * expected);

	if (rc)
		return rc;
	s->count = count;
	s->used = used;
	memset(s->base, 0, used);
	return 0;
}

char *store_bundle(struct store *s, uint32_t i, size_t len)
{
	struct store_entry *entry = (struct store_entry *)s->base + i;

	if (!entry->offset) {
		if (reserve(s, s->used + len))
			return NULL;
		entry = (struct store_entry *)s->base + i;
		entry->offset = s->used;
		entry->len = len;
		s->used += len;
	}
	return entry->len == len ? s->base + entry->offset : NULL;
}

const void *store_read(const void *base, size_t used, uint32_t count,
		       uint32_t i, size_t *len)
{
	struct store_entry entry;

	if (used < directory_size(count))
		return NULL;
	memcpy(&entry, (const struct store_entry *)base + i, sizeof(entry));
	if (entry.offset < directory_size(count) || entry.offset > used ||
	    entry.len > used - entry.offset)
		return NULL;
	*len = entry.len;
	return (const char *)base + entry.offset;
}
