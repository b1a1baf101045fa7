/* SPDX-License-Identifier: BSD-3-Clause */
/* Building images at the root, from the contributions of all ranks. */
#include "libshm/image.h"

#include <errno.h>
#include <string.h>

#include "libshm/byteorder.h"
#include "libshm/image_layout.h"
#include "libshm/index.h"

#define STEPS_PER_KEY 64 /* in an index that is half full */
#define STEPS_FREE 4096  /* of all keys */

static struct payload *fail(int *error, int rc)
{
	*error = rc;
	return NULL;
}

/* The length of the image that `h` describes; 0: too long. */
static uint64_t image_len(const struct image_header *h)
{
	uint64_t start = image_data_start(h);

	if (h->data_len > IMAGE_MAX || start > IMAGE_MAX ||
	    image_align(start + h->data_len) > IMAGE_MAX)
		return 0;
	return image_align(start + h->data_len);
}

uint64_t image_fence_len(uint64_t count, uint64_t bytes)
{
	const struct image_header h = {
		.kind = IMAGE_FENCE, .index_count = index_buckets(count),
		.data_len = bytes,
	};

	return h.index_count ? image_len(&h) : 0;
}

uint64_t image_gather_len(uint32_t n, uint64_t bytes)
{
	const struct image_header h = {
		.kind = IMAGE_GATHER, .count = n, .data_len = bytes,
	};

	return image_len(&h);
}

/*
 * Memory for the image that `h` describes, with its header (but no checksum)
 * and zeros up to the data and behind them.
 */
static struct payload *image_new(const struct image_memory *memory,
				 struct image_header *h, int *error)
{
	uint64_t start = image_data_start(h);
	struct payload *p;

	h->magic = IMAGE_MAGIC;
	h->byte_order = BYTE_ORDER_MARK;
	h->version = IMAGE_VERSION;
	h->length = image_len(h);
	if (!h->length)
		return fail(error, -EFBIG);
	p = memory ? memory->get(memory->arg, h->length) :
		     payload_new(h->length);
	if (!p)
		return fail(error, -ENOMEM);
	memset(p->data, 0, start);
	memset(p->data + start + h->data_len, 0,
	       h->length - start - h->data_len);
	memcpy(p->data, h, sizeof(*h));
	return p;
}

static void image_finish(struct payload *p)
{
	uint64_t sum = image_checksum(p->data, p->len);

	memcpy(p->data + offsetof(struct image_header, checksum), &sum,
	       sizeof(sum));
}

/* ---- fence ---- */

static int count_records(const struct payload_vec *blocks, uint64_t *count)
{
	size_t n;
	int rc;

	*count = 0;
	for (size_t i = 0; i < blocks->count; i++) {
		const struct payload *p = blocks->items[i];

		rc = p->data ? records_check(p->data, p->len, &n) : -EPROTO;
		if (rc)
			return rc;
		*count += n;
	}
	return 0;
}

/*
 * Copy the blocks behind one another and enter their records. Keys that nobody chose
 * to collide take two steps each or so; of those that were chosen the work would grow
 * with the square, and a seed that every rank can read would not stop who chooses.
 * 0 or -EKEYREJECTED.
 */
static int fill_fence(struct payload *p, const struct image_header *h,
		       const struct payload_vec *blocks)
{
	unsigned char *table = p->data + sizeof(*h);
	struct index ix = {table, h->index_count, p->data, p->len};
	uint64_t start = image_data_start(h);
	unsigned char *data = p->data + start;
	uint64_t steps = 0, most = STEPS_FREE + STEPS_PER_KEY * (uint64_t)h->count;
	size_t offset = 0, next = 0;
	struct record r;

	for (size_t i = 0; i < blocks->count; i++) {
		memcpy(data + next, blocks->items[i]->data,
		       blocks->items[i]->len);
		next += blocks->items[i]->len;
	}
	for (next = 0; steps <= most &&
	     record_next(data, h->data_len, &next, &r) == 1; offset = next)
		index_put(&ix, table, (uint32_t)image_hash(r.key, r.key_len),
			  (start + offset) / INDEX_UNIT, &steps);
	return steps <= most ? 0 : -EKEYREJECTED;
}

struct payload *image_build_fence(const struct payload_vec *blocks, int *error)
{
	return image_build_fence_in(NULL, blocks, error);
}

struct payload *image_build_fence_in(const struct image_memory *memory,
				     const struct payload_vec *blocks,
				     int *error)
{
	struct image_header h = {.kind = IMAGE_FENCE};
	struct payload *p;
	uint64_t count;
	int rc;

	rc = count_records(blocks, &count);
	if (rc)
		return fail(error, rc);
	h.index_count = index_buckets(count);
	if (h.index_count == 0)
		return fail(error, -EFBIG);
	h.count = count;
	h.data_len = blocks->bytes;
	p = image_new(memory, &h, error);
	if (!p)
		return NULL;
	rc = fill_fence(p, &h, blocks);
	if (rc) {
		payload_unref(p);
		return fail(error, rc);
	}
	image_finish(p);
	return p;
}

/* ---- gather ---- */

#define CONTRIBUTION_HEADER 4

static size_t contribution_size(size_t len)
{
	return CONTRIBUTION_HEADER + ((len + 3) & ~(size_t)3);
}

struct payload *gather_contribution(struct budget *budget, const void *value,
				    size_t len)
{
	struct payload *p;

	if (len > RECORD_VALUE_MAX)
		return NULL;
	p = payload_new_in(budget, contribution_size(len));
	if (!p)
		return NULL;
	store_u32(p->data + p->len - 4, 0); /* padding */
	store_u32(p->data, len);
	if (value && len)
		memcpy(GATHER_VALUE(p), value, len);
	return p;
}

/* Walks the contributions of all blocks; starts zeroed but for `blocks`. */
struct contributions {
	const struct payload_vec *blocks;
	size_t item;
	size_t offset;
};

/* 1 and a value, 0 at the end, or -EPROTO. */
static int next_contribution(struct contributions *c, const void **value,
			     uint32_t *len)
{
	const struct payload *p;
	const unsigned char *at;
	size_t left;

	if (c->item == c->blocks->count)
		return 0;
	p = c->blocks->items[c->item];
	if (!p->data || p->len - c->offset < CONTRIBUTION_HEADER)
		return -EPROTO;
	at = p->data + c->offset;
	left = p->len - c->offset;
	*len = load_u32(at);
	*value = at + CONTRIBUTION_HEADER;
	if (*len > RECORD_VALUE_MAX || contribution_size(*len) > left)
		return -EPROTO;
	c->offset += contribution_size(*len);
	if (c->offset == p->len) {
		c->item++;
		c->offset = 0;
	}
	return 1;
}

/* Check and measure: sets count, index_count, value_max and data_len. */
static int measure_gather(const struct payload_vec *blocks, uint32_t n,
			  struct image_header *h)
{
	struct contributions c = {.blocks = blocks};
	uint32_t len, min = UINT32_MAX;
	const void *value;
	uint64_t count = 0;
	int rc;

	if (n == UINT32_MAX)
		return -EFBIG; /* n + 1 offsets */
	while ((rc = next_contribution(&c, &value, &len)) > 0) {
		count++;
		h->data_len += len;
		if (len > h->value_max)
			h->value_max = len;
		if (len < min)
			min = len;
	}
	if (rc || count != n)
		return -EPROTO;
	h->count = n;
	h->index_count = n && min != h->value_max ? n + 1 : 0;
	return 0;
}

static uint32_t rank_at(const uint32_t *order, uint32_t i)
{
	return order ? order[i] : i;
}

/* Turn lengths in tree order into offsets[rank], offsets[n] at the end. */
static void fill_offsets(unsigned char *offsets, uint32_t n,
			 const struct payload_vec *blocks,
			 const uint32_t *order)
{
	struct contributions c = {.blocks = blocks};
	uint32_t len, sum = 0;
	const void *value;

	for (uint32_t i = 0; next_contribution(&c, &value, &len) > 0; i++)
		store_u32(offsets + 4ul * (rank_at(order, i) + 1ul), len);
	for (size_t r = 0; r <= n; r++) {
		sum += load_u32(offsets + 4 * r);
		store_u32(offsets + 4 * r, sum);
	}
}

static void fill_values(unsigned char *data, const unsigned char *offsets,
			uint32_t stride, const struct payload_vec *blocks,
			const uint32_t *order)
{
	struct contributions c = {.blocks = blocks};
	const void *value;
	uint32_t len;

	for (uint32_t i = 0; next_contribution(&c, &value, &len) > 0; i++) {
		size_t r = rank_at(order, i);

		memcpy(data + (offsets ? load_u32(offsets + 4 * r) :
					 r * stride), value, len);
	}
}

struct payload *image_build_gather(const struct payload_vec *blocks, uint32_t n,
				   const uint32_t *order, int *error)
{
	return image_build_gather_in(NULL, blocks, n, order, error);
}

struct payload *image_build_gather_in(const struct image_memory *memory,
				      const struct payload_vec *blocks,
				      uint32_t n, const uint32_t *order,
				      int *error)
{
	struct image_header h = {.kind = IMAGE_GATHER};
	unsigned char *offsets;
	struct payload *p;
	int rc;

	rc = measure_gather(blocks, n, &h);
	if (rc)
		return fail(error, rc);
	p = image_new(memory, &h, error);
	if (!p)
		return NULL;
	offsets = h.index_count ? p->data + sizeof(h) : NULL;
	if (offsets)
		fill_offsets(offsets, n, blocks, order);
	fill_values(p->data + image_data_start(&h), offsets, h.value_max,
		    blocks, order);
	image_finish(p);
	return p;
}
