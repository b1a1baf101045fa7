/* SPDX-License-Identifier: BSD-3-Clause */
/* Enters the keys of a region's generations into its joint index. */
#include "libshm/region_merge.h"

#include "libshm/index.h"

#define LOOK_AHEAD 32 /* buckets */

static bool ends_in_joint(const struct region_merge *m,
			  const struct region_view *view)
{
	return m->joint.buckets &&
	       view->index[view->count - 1].table == m->joint.table;
}

uint32_t region_merge_buckets(const struct region_merge *m,
			      const struct region_view *view)
{
	uint64_t keys = 0;
	uint32_t buckets;

	for (uint32_t i = 0; i < view->count; i++)
		keys += view->index[i].count;
	if (ends_in_joint(m, view) && 2 * keys <= m->joint.buckets)
		return 0;
	buckets = index_buckets(keys + keys / 2);
	return buckets ? buckets : UINT32_MAX;
}

void region_merge_begin(struct region_merge *m, const struct region_view *view,
			uint64_t table, uint32_t buckets)
{
	if (buckets)
		m->joint = (struct region_index){
			.table = table,
			.buckets = buckets,
		};
	m->active = true;
	m->goal = view->count;
	m->done = buckets ? 0 : 1;
	m->bucket = 0;
}

/* A large index is in no cache: ask for the places of some keys ahead. */
static void look_ahead(const struct index *to, const struct index *from,
		       uint32_t bucket)
{
	struct index_entry e;

	if (bucket >= from->buckets)
		return;
	e = index_entry(from, bucket);
	if (e.ref)
		__builtin_prefetch(to->table + (size_t)INDEX_BUCKET *
						       (e.tag & (to->buckets - 1)));
}

/*
 * Enter keys of `from` over those that are there, up to its bucket `end` or for
 * `budget` buckets of both. Returns how much of that was used.
 */
static uint64_t enter_some(struct region_merge *m, const struct index *to,
			   unsigned char *table, const struct index *from,
			   uint64_t base, uint64_t budget)
{
	uint64_t steps = 0;

	for (; m->bucket < from->buckets && steps < budget; m->bucket++) {
		struct index_entry e = index_entry(from, m->bucket);

		steps++;
		look_ahead(to, from, m->bucket + LOOK_AHEAD);
		if (e.ref && index_put(to, table, e.tag,
				       base / INDEX_UNIT + e.ref, &steps))
			m->joint.count++;
		m->work++;
	}
	return steps < budget ? steps : budget;
}

bool region_merge_step(struct region_merge *m, unsigned char *map, size_t size,
		       const struct region_view *view, uint64_t budget)
{
	struct index to, from;

	if (!region_index_open(map, size, &m->joint, &to))
		return false;
	while (budget && m->done < m->goal) {
		const struct region_index *ri =
			&view->index[view->count - 1 - m->done];

		if (region_index_open(map, size, ri, &from))
			budget -= enter_some(m, &to, map + m->joint.table,
					     &from, ri->base, budget);
		else
			m->bucket = ri->buckets;
		if (m->bucket == ri->buckets) {
			m->done++;
			m->bucket = 0;
		}
	}
	return m->done == m->goal;
}
