/* SPDX-License-Identifier: BSD-3-Clause */
/* The hash index over records. */
#include "libshm/index.h"

#include <string.h>

#define BUCKETS_MIN 2

uint32_t index_buckets(uint64_t count)
{
	uint64_t buckets = BUCKETS_MIN;

	while (buckets < 2 * count && buckets <= UINT32_MAX)
		buckets *= 2;
	return buckets <= UINT32_MAX ? buckets : 0;
}

/*
 * A joint index (region_merge.h) changes under its readers: a bucket is one load
 * and one store. Images on their way may lie anywhere; those nobody changes.
 */
static uint64_t load_bucket(const unsigned char *at)
{
	uint64_t v;

	if ((uintptr_t)at % sizeof(v) == 0)
		return __atomic_load_n((const uint64_t *)at, __ATOMIC_ACQUIRE);
	memcpy(&v, at, sizeof(v));
	return v;
}

static void store_bucket(unsigned char *at, uint64_t v)
{
	if ((uintptr_t)at % sizeof(v) == 0)
		__atomic_store_n((uint64_t *)at, v, __ATOMIC_RELEASE);
	else
		memcpy(at, &v, sizeof(v));
}

struct index_entry index_entry(const struct index *ix, uint32_t bucket)
{
	uint64_t v = load_bucket(ix->table + (size_t)bucket * INDEX_BUCKET);

	return (struct index_entry){
		.tag = (uint32_t)v, .ref = (uint32_t)(v >> 32) };
}

/* Every node does this in every fence: without branches it is six times as fast. */
bool index_check(const struct index *ix, uint64_t start, uint64_t end,
		 uint32_t used_max)
{
	uint32_t first = (start + INDEX_UNIT - 1) / INDEX_UNIT;
	uint32_t span = (end + INDEX_UNIT - 1) / INDEX_UNIT - first;
	uint32_t outside = 0, used = 0;

	for (size_t i = 0; i < ix->buckets; i++) {
		uint32_t ref;

		memcpy(&ref, ix->table + i * INDEX_BUCKET + INDEX_BUCKET / 2,
		       sizeof(ref));
		used += ref != 0;
		outside |= (ref != 0) & (ref - first >= span);
	}
	return !outside && used <= used_max;
}

/*
 * The record at `ref`, as far as it lies inside. An image's root made the index
 * from the records, but this node has not read them (image_open).
 */
static bool entered_at(const struct index *ix, uint32_t ref, struct record *out)
{
	uint64_t offset = (uint64_t)ref * INDEX_UNIT;

	return offset <= ix->len &&
	       record_at(ix->base + offset, ix->len - offset, out);
}

bool index_find(const struct index *ix, uint64_t hash, const void *key,
		size_t key_len, struct record *out)
{
	uint32_t tag = (uint32_t)hash, bucket = tag;

	for (uint32_t n = 0; n < ix->buckets; n++, bucket++) {
		struct index_entry e =
			index_entry(ix, bucket & (ix->buckets - 1));

		if (e.ref == 0)
			return false;
		if (e.tag == tag && entered_at(ix, e.ref, out) &&
		    out->key_len == key_len &&
		    memcmp(out->key, key, key_len) == 0)
			return true;
	}
	return false;
}

static bool same_key(const struct index *ix, uint32_t a, uint32_t b)
{
	struct record ra, rb;

	return entered_at(ix, a, &ra) && entered_at(ix, b, &rb) &&
	       ra.key_len == rb.key_len &&
	       memcmp(ra.key, rb.key, ra.key_len) == 0;
}

bool index_put(const struct index *ix, unsigned char *table, uint32_t tag,
	       uint32_t ref, uint64_t *steps)
{
	struct index_entry old;
	uint32_t mask = ix->buckets - 1, bucket = tag & mask;

	for (++*steps; (old = index_entry(ix, bucket)).ref != 0; ++*steps) {
		if (old.tag == tag && same_key(ix, old.ref, ref))
			break;
		bucket = (bucket + 1) & mask;
	}
	store_bucket(table + (size_t)bucket * INDEX_BUCKET,
		     (uint64_t)ref << 32 | tag);
	return old.ref == 0;
}
