/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The bytes of a results region, REGION_VERSION 1. Private to libshm.
 *
 * Offsets count from the start of the region. The first REGION_HEADER_SIZE
 * bytes are the header; behind it blocks of images, indexes and views lie in
 * no particular order. A block that a published view leads to is never
 * changed or reused, so a reader may stay inside it for as long as it likes. One
 * kind of block changes: the joint index of region_merge.h, by stores of whole
 * buckets, each of which leads to what was there before.
 *
 * The cost of that: two views of 200 bytes a fence, and 16 to 64 bytes a key for the
 * joint index and those that it has replaced.
 */
#pragma once

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libshm/index.h"
#include "libshm/region.h"

#define REGION_MAGIC 0x65723270u /* "p2re" */
#define REGION_HEADER_SIZE 4096
_Static_assert(REGION_SIZE_MAX == (uint64_t)INDEX_UNIT << 32,
	       "a reference of an index is 32 bits, in INDEX_UNIT bytes");
#define REGION_BLOCK_ALIGNMENT 64 /* a cache line */

struct region_header {
	uint32_t magic;
	uint32_t byte_order; /* BYTE_ORDER_MARK */
	uint32_t version;
	uint32_t header_size;
	uint64_t size;
	unsigned char unused[40];
	/* A cache line of its own: everything that changes in this version. */
	_Atomic uint64_t view; /* offset of the current view; 0: no keys yet */
	/* Room for the completion counters and futex words of a later version. */
	unsigned char reserved[REGION_HEADER_SIZE - 72];
};

static_assert(sizeof(struct region_header) == REGION_HEADER_SIZE,
	      "fixed by the format");
static_assert(offsetof(struct region_header, view) == 64,
	      "fixed by the format");
static_assert(sizeof(_Atomic uint64_t) == 8 && ATOMIC_LLONG_LOCK_FREE == 2,
	      "processes share it: no lock may hide in it");

/* An index (index.h) to search: of one fence image, or of many (region_merge.h). */
struct region_index {
	uint64_t table; /* offset of the buckets */
	uint64_t base;  /* references count from here: the image, or 0 */
	uint32_t buckets;
	uint32_t count; /* keys */
};

struct region_view {
	uint32_t count;
	uint32_t reserved;
	struct region_index index[REGION_CHAIN_MAX]; /* newest first */
};

static_assert(sizeof(struct region_view) == 8 + 24 * REGION_CHAIN_MAX,
	      "fixed by the format");

/* The buckets and records of `ri`; false when they are not inside the region. */
bool region_index_open(const unsigned char *map, size_t size,
		       const struct region_index *ri, struct index *ix);

/* region_find for whoever has the region mapped. */
bool region_lookup(const unsigned char *map, size_t size, const void *key,
		   size_t key_len, const char **value, size_t *value_len);
