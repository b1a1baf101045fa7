/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sorted, disjoint ranges of a region, and first-fit allocation from a set of
 * free ones. Kept in the agent's own memory, never in the region. Private to
 * libshm; one thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct extent {
	uint64_t offset; /* bytes */
	uint64_t len;
};

/* All zero is an empty set. */
struct extents {
	struct extent *items; /* ascending */
	size_t count;
	size_t cap;
};

void extents_free(struct extents *e);

/* Add a range that overlaps none in the set. 0 or -ENOMEM. */
int extents_insert(struct extents *e, uint64_t offset, uint64_t len);

/* Remove the range that begins at `offset`; false when none does. */
bool extents_remove(struct extents *e, uint64_t offset, uint64_t *len);

/* As extents_insert, but adjacent ranges become one. */
int extents_give(struct extents *e, uint64_t offset, uint64_t len);

/*
 * Take `len` bytes at a multiple of `align` (a power of two) out of the first
 * range that has them. 0, -ENOSPC or -ENOMEM (nothing changes).
 */
int extents_take(struct extents *e, uint64_t len, uint64_t align,
		 uint64_t *offset);

/* The offset at which extents_take would take them; false: there is no such range. */
bool extents_find(const struct extents *e, uint64_t len, uint64_t align,
		  uint64_t *offset);

/* True: a range in the set overlaps [offset, offset + len). */
bool extents_overlap(const struct extents *e, uint64_t offset, uint64_t len);
