/* SPDX-License-Identifier: BSD-3-Clause */
/* Sorted ranges and first-fit allocation from them. */
#include "libshm/extents.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libutil/array.h"

void extents_free(struct extents *e)
{
	free(e->items);
	memset(e, 0, sizeof(*e));
}

/* The index of the first range that ends behind `offset`. */
static size_t first_behind(const struct extents *e, uint64_t offset)
{
	size_t low = 0, high = e->count;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (e->items[mid].offset + e->items[mid].len <= offset)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

static int reserve_one(struct extents *e)
{
	return array_grow(&e->items, e->count, &e->cap, sizeof(*e->items));
}

static int insert_at(struct extents *e, size_t i, struct extent x)
{
	int rc = reserve_one(e);

	if (rc)
		return rc;
	memmove(e->items + i + 1, e->items + i,
		(e->count - i) * sizeof(x));
	e->items[i] = x;
	e->count++;
	return 0;
}

static void remove_at(struct extents *e, size_t i)
{
	e->count--;
	memmove(e->items + i, e->items + i + 1,
		(e->count - i) * sizeof(e->items[0]));
}

int extents_insert(struct extents *e, uint64_t offset, uint64_t len)
{
	return insert_at(e, first_behind(e, offset),
			 (struct extent){offset, len});
}

bool extents_remove(struct extents *e, uint64_t offset, uint64_t *len)
{
	size_t i = first_behind(e, offset);

	if (i == e->count || e->items[i].offset != offset)
		return false;
	*len = e->items[i].len;
	remove_at(e, i);
	return true;
}

int extents_give(struct extents *e, uint64_t offset, uint64_t len)
{
	size_t i = first_behind(e, offset);
	struct extent *before = i > 0 ? &e->items[i - 1] : NULL;
	struct extent *behind = i < e->count ? &e->items[i] : NULL;
	bool joins_before = before && before->offset + before->len == offset;
	bool joins_behind = behind && offset + len == behind->offset;

	if (joins_before) {
		before->len += len;
		if (joins_behind) {
			before->len += behind->len;
			remove_at(e, i);
		}
		return 0;
	}
	if (joins_behind) {
		behind->offset = offset;
		behind->len += len;
		return 0;
	}
	return insert_at(e, i, (struct extent){offset, len});
}

/* Cut [at, at + len) out of range `i`, which contains it. */
static int cut(struct extents *e, size_t i, uint64_t at, uint64_t len)
{
	struct extent *x = &e->items[i];
	struct extent rest = {at + len, x->offset + x->len - (at + len)};
	uint64_t before = at - x->offset;

	if (before && rest.len) {
		int rc = insert_at(e, i + 1, rest);

		if (rc)
			return rc;
		e->items[i].len = before;
	} else if (before) {
		x->len = before;
	} else if (rest.len) {
		*x = rest;
	} else {
		remove_at(e, i);
	}
	return 0;
}

/* The first range with room for `len` bytes, or count; where they would begin. */
static size_t first_fit(const struct extents *e, uint64_t len, uint64_t align,
			uint64_t *offset)
{
	size_t i;

	for (i = 0; i < e->count; i++) {
		const struct extent *x = &e->items[i];
		uint64_t skip;

		*offset = (x->offset + align - 1) & ~(align - 1);
		skip = *offset - x->offset;
		if (skip <= x->len && x->len - skip >= len)
			break;
	}
	return i;
}

int extents_take(struct extents *e, uint64_t len, uint64_t align,
		 uint64_t *offset)
{
	uint64_t at;
	size_t i = first_fit(e, len, align, &at);

	if (i == e->count)
		return -ENOSPC;
	*offset = at;
	return cut(e, i, at, len);
}

bool extents_find(const struct extents *e, uint64_t len, uint64_t align,
		  uint64_t *offset)
{
	return first_fit(e, len, align, offset) < e->count;
}

bool extents_overlap(const struct extents *e, uint64_t offset, uint64_t len)
{
	size_t i = first_behind(e, offset);

	return i < e->count && e->items[i].offset < offset + len;
}
