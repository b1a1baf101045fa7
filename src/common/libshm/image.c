/* SPDX-License-Identifier: BSD-3-Clause */
/* Reading images: the check of untrusted ones, and look-ups in checked ones. */
#include "libshm/image.h"

#include <errno.h>
#include <string.h>

#include "libshm/byteorder.h"
#include "libshm/image_layout.h"
#include "libshm/index.h"

static struct image_header header_of(const void *bytes)
{
	struct image_header h;

	memcpy(&h, bytes, sizeof(h));
	return h;
}

uint64_t image_data_start(const struct image_header *h)
{
	uint64_t entry = h->kind == IMAGE_FENCE ? INDEX_BUCKET : 4;

	return image_align(sizeof(*h) + entry * h->index_count);
}

static bool fence_header_ok(const struct image_header *h)
{
	uint32_t buckets = h->index_count;

	return buckets != 0 && (buckets & (buckets - 1)) == 0 &&
	       h->count <= buckets / 2 && h->value_max == 0;
}

static bool gather_header_ok(const struct image_header *h)
{
	if (h->value_max > RECORD_VALUE_MAX)
		return false;
	if (h->index_count == 0)
		return h->data_len == (uint64_t)h->count * h->value_max;
	return h->index_count == (uint64_t)h->count + 1;
}

/* The header describes `len` bytes; after this no reader leaves them. */
static bool header_ok(const struct image_header *h, size_t len)
{
	uint64_t start;

	if (h->magic != IMAGE_MAGIC || h->byte_order != BYTE_ORDER_MARK ||
	    h->version != IMAGE_VERSION)
		return false;
	if (h->kind != IMAGE_FENCE && h->kind != IMAGE_GATHER)
		return false;
	start = image_data_start(h);
	if (h->length != len || len > IMAGE_MAX || start > len ||
	    h->data_len > len - start ||
	    image_align(start + h->data_len) != len)
		return false;
	return h->kind == IMAGE_FENCE ? fence_header_ok(h) :
					gather_header_ok(h);
}

int image_open_trusted(struct image *img, const void *bytes, size_t len)
{
	struct image_header h;

	if (len < sizeof(h))
		return -EPROTO;
	h = header_of(bytes);
	if (!header_ok(&h, len))
		return -EPROTO;
	img->base = bytes;
	img->len = len;
	img->kind = h.kind;
	img->count = h.count;
	return 0;
}

static struct index fence_index(const struct image *img,
				const struct image_header *h)
{
	return (struct index){
		.table = img->base + sizeof(*h),
		.buckets = h->index_count,
		.base = img->base,
		.len = img->len,
	};
}

/*
 * Every bucket is empty or leads behind the index, and half of them are empty.
 * Whether a record is there, index_find sees when it looks: that touches one
 * record, not all of them on every node.
 */
static bool fence_ok(const struct image *img, const struct image_header *h)
{
	struct index ix = fence_index(img, h);
	uint64_t start = image_data_start(h);

	return index_check(&ix, start, start + h->data_len, h->count);
}

static uint32_t gather_offset(const struct image *img, uint32_t i)
{
	return load_u32(img->base + sizeof(struct image_header) + 4ul * i);
}

/* Offsets ascend from 0 to the end of the values. */
static bool gather_ok(const struct image *img, const struct image_header *h)
{
	uint32_t last = 0, max = 0;

	if (h->index_count == 0)
		return true;
	if (gather_offset(img, 0) != 0)
		return false;
	for (uint32_t i = 1; i <= h->count; i++) {
		uint32_t end = gather_offset(img, i);

		if (end < last)
			return false;
		if (end - last > max)
			max = end - last;
		last = end;
	}
	return last == h->data_len && max == h->value_max;
}

int image_open(struct image *img, const void *bytes, size_t len)
{
	struct image_header h;
	bool ok;

	if (image_open_trusted(img, bytes, len))
		return -EPROTO;
	h = header_of(bytes);
	if (h.checksum != image_checksum(bytes, len))
		return -EPROTO;
	ok = h.kind == IMAGE_FENCE ? fence_ok(img, &h) : gather_ok(img, &h);
	return ok ? 0 : -EPROTO;
}

bool image_find(const struct image *img, uint64_t hash, const void *key,
		size_t key_len, const char **value, size_t *value_len)
{
	struct image_header h = header_of(img->base);
	struct index ix = fence_index(img, &h);
	struct record r;

	if (img->kind != IMAGE_FENCE ||
	    !index_find(&ix, hash, key, key_len, &r))
		return false;
	*value = r.value;
	*value_len = r.value_len;
	return true;
}

bool image_record(const struct image *img, size_t *offset, struct record *out)
{
	struct image_header h = header_of(img->base);

	if (img->kind != IMAGE_FENCE)
		return false;
	return record_next(img->base + image_data_start(&h), h.data_len,
			   offset, out) == 1;
}

const void *image_gather_even(const struct image *img, size_t *len)
{
	struct image_header h = header_of(img->base);

	*len = h.value_max;
	return h.index_count ? NULL : img->base + image_data_start(&h);
}

const void *image_gather_value(const struct image *img, uint32_t r,
			       size_t *len)
{
	struct image_header h = header_of(img->base);
	const unsigned char *values = img->base + image_data_start(&h);
	uint32_t from, to;

	if (h.index_count == 0) {
		*len = h.value_max;
		return values + (size_t)r * h.value_max;
	}
	from = gather_offset(img, r);
	to = gather_offset(img, r + 1);
	if (from > to || to > h.data_len)
		from = to = 0; /* only where image_open has not checked */
	*len = to - from;
	return values + from;
}
