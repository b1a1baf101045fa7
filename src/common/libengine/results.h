/* SPDX-License-Identifier: BSD-3-Clause */
/* Results of collectives: in the region or in the heap. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libshm/region.h"
#include "libutil/payload.h"

struct heap_gather;
struct region_writer;

struct results {
	struct region_writer *region; /* NULL: in the heap */
	struct payload_vec images;    /* heap: fences, oldest first */
	struct heap_gather *gathers;
	uint64_t next_offset;
	size_t heap_used;
};

void results_init(struct results *k, struct region_writer *region);
void results_free(struct results *k);
/*
 * All: 0, -ENOSPC, -EPROTO or -ENOMEM. The image is checked here, unless it is
 * `trusted`: built by this node. A gather has this number of `values`: empty ones cost
 * its sender nothing, and here `stride` each. It may stay in its payload: then
 * *keep is a reference that holds it, instead of a later results_release.
 */
int results_publish_fence(struct results *k, struct payload *image, bool trusted);
int results_publish_gather(struct results *k, struct payload *image, bool trusted,
			   uint32_t values, size_t stride, uint64_t *offset,
			   uint64_t *len, struct payload **keep);
/* Memory for an image of this node: in the region, where it pays. Or NULL. */
struct payload *results_room(struct results *k, size_t len);
/*
 * A place in the region for an image that is said to have `len` bytes, where that
 * pays, or NULL; and memory for its first bytes (elsewhere it is there). 0 or -ENOSPC.
 */
struct payload *results_place(struct results *k, size_t len);
int results_extend(struct results *k, struct payload *place, size_t len);
/* Make look-ups faster: a bounded piece of work. True: go on. */
bool results_tidy(struct results *k);
/* True: there is such work. */
bool results_untidy(const struct results *k);
/* Make `len` bytes of records the newest generation. */
int results_publish_records(struct results *k, const void *records, size_t len);
void results_release(struct results *k, uint64_t offset);
bool results_find(const struct results *k, const char *key, size_t key_len,
		  const char **value, size_t *value_len);
const void *results_bytes(const struct results *k, uint64_t offset, uint64_t len);
