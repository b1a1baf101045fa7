/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One index over all keys of a region, grown after a fence rather than in it.
 * Private to libshm; the agent's thread.
 *
 * A fence only puts its image in front of the chain of indexes that readers
 * search. Later its keys are entered into the *joint* index at the chain's end,
 * while readers use that: a bucket changes by one atomic store, and what it
 * leads to was there before. Then a shorter chain is published. A joint index
 * that is half full gets a successor for at least one and a half times the keys,
 * so that a key is entered three times on average, however many fences there
 * are, and all joint indexes that were replaced together are smaller than the
 * current one.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "libshm/region_layout.h"

/* All zero is a region without keys. */
struct region_merge {
	struct region_index joint; /* buckets 0: none yet */
	bool active;     /* keys are being entered into `joint` */
	uint32_t goal;   /* how many of the oldest indexes it shall cover, */
	uint32_t done;   /* of which it covers these, */
	uint32_t bucket; /* and the buckets of the next one before this */
	uint64_t work;   /* buckets looked at since the beginning */
};

/*
 * The number of buckets of the new joint index that the next merge of this chain needs: the
 * caller makes them and gives them, zeroed, to region_merge_begin. 0: the index at the
 * chain's end has room. UINT32_MAX: no index can hold the keys.
 */
uint32_t region_merge_buckets(const struct region_merge *m,
			      const struct region_view *view);

/* Begin a merge of all that is in the chain; `table` is of a new index, or 0. */
void region_merge_begin(struct region_merge *m, const struct region_view *view,
			uint64_t table, uint32_t buckets);

/*
 * Go on, for about `budget` buckets. True: done; the oldest m->goal indexes of
 * the chain can be replaced by m->joint. The chain may grow in between.
 */
bool region_merge_step(struct region_merge *m, unsigned char *map, size_t size,
		       const struct region_view *view, uint64_t budget);
