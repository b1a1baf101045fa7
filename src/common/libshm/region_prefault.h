/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Pages of a results region that are made before they are needed.
 *
 * A page that nobody has touched costs microseconds when an image arrives, on every
 * node and while every rank waits. So, when all is quiet, as many are made
 * as the last image took: the next one is likely to be as large. Private to libshm.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "libshm/extents.h"
#include "libshm/region_memory.h"

/* All zero: nothing is expected. */
struct region_prefault {
	uint64_t expected; /* bytes still to be looked after; 0: all is done */
	struct extent made;
};

/* An image of `len` bytes has come to stay. */
void region_prefault_expect(struct region_prefault *a, uint64_t len);

/* True: there is work to do. */
static inline bool region_prefault_wanted(const struct region_prefault *a)
{
	return a->expected > 0;
}

/*
 * Make some pages where the next image would go. Nothing is reserved: a
 * block that comes there first finds them made.
 */
void region_prefault_step(struct region_prefault *a,
			  const struct region_memory *m,
			  const struct extents *free);
