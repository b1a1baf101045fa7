/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The hash index over records: open addressing with linear probing, at most
 * half full, read in place by any number of readers without a lock. Private to
 * libshm.
 *
 * A bucket is u32 tag, u32 reference. The tag is the low half of the key's
 * image_hash and also chooses the bucket, so that an index can be merged into
 * another without hashing keys again. The reference is where the record
 * begins, counted in INDEX_UNIT bytes from `base`; 0 marks an empty bucket
 * (nothing begins at a base: a header does).
 *
 * Nothing needs an alignment. Readers stay inside table and base whatever the
 * table says.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libshm/records.h"

#define INDEX_UNIT 4
#define INDEX_BUCKET 8 /* bytes */

struct index {
	const unsigned char *table;
	uint32_t buckets;          /* a power of two, or 0 */
	const unsigned char *base;
	size_t len;                /* bytes that may be read from base on */
};

struct index_entry {
	uint32_t tag;
	uint32_t ref;
};

/* Buckets for `count` keys; 0 when that does not fit 32 bits. */
uint32_t index_buckets(uint64_t count);

struct index_entry index_entry(const struct index *ix, uint32_t bucket);

/*
 * Every bucket is empty or leads to [start, end), in bytes from the base, and
 * at most `used_max` are not empty. For an index that nobody changes.
 */
bool index_check(const struct index *ix, uint64_t start, uint64_t end,
		 uint32_t used_max);

bool index_find(const struct index *ix, uint64_t hash, const void *key,
		size_t key_len, struct record *out);

/*
 * Enter the record at `ref`; it replaces one with the same key. `table` is
 * ix->table, writable, and has an empty bucket. True when the key is new. Adds up in
 * *steps how many buckets were looked at: many, where keys were chosen to collide.
 */
bool index_put(const struct index *ix, unsigned char *table, uint32_t tag,
	       uint32_t ref, uint64_t *steps);
