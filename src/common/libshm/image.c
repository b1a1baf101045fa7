/* SPDX-License-Identifier: BSD-3-Clause */
/* Reading images: the check of untrusted ones, and look-ups in checked ones. */
#include "libshm/image.h"

#include <errno.h>
#include <string.h>

#include "libshm/byteorder.h"
#include "libshm/image_layout.h"
#include "libshm/index.h"

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
	memcpy(&h, bytes, sizeof(h));
	if (!header_ok(&h, len))
		return -EPROTO;
	*img = (struct image){
		.base = bytes,
		.len = len,
		.kind = h.kind,
		.count = h.count,
		.checksum = h.checksum,
		.index_count = h.index_count,
		.value_max = h.value_max,
		.data = (const unsigned char *)bytes + image_data_start(&h),
		.data_len = h.data_len,
	};
	return 0;
}

static struct index fence_index(const struct image *img)
{
	return (struct index){
		.table = img->base + sizeof(struct image_header),
		.buckets = img->index_count,
		.base = img->base,
		.len = img->len,
	};
}

/*
 * Every bucket is empty or leads behind the index, and half of them are empty.
 * Whether a record is there, index_find sees when it looks: that touches one
 * record, not all of them on every node.
 */
static bool fence_ok(const struct image *img)
{
	struct index ix = fence_index(img);
	uint64_t start = (uint64_t)(img->data - img->base);

	return index_check(&ix, start, start + img->data_len, img->count);
}

static uint32_t gather_offset(const struct image *img, uint32_t i)
{
	return load_u32(img->base + sizeof(struct image_header) + 4ul * i);
}

/* Offsets ascend from 0 to the end of the values. */
static bool gather_ok(const struct image *img)
{
	uint32_t last = 0, max = 0;

	if (img->index_count == 0)
		return true;
	if (gather_offset(img, 0) != 0)
		return false;
	for (uint32_t i = 1; i <= img->count; i++) {
		uint32_t end = gather_offset(img, i);

		if (end < last)
			return false;
		if (end - last > max)
			max = end - last;
		last = end;
	}
	return last == img->data_len && max == img->value_max;
}

int image_open(struct image *img, const void *bytes, size_t len)
{
	bool ok;

	if (image_open_trusted(img, bytes, len) ||
	    img->checksum != image_checksum(bytes, len))
		return -EPROTO;
	ok = img->kind == IMAGE_FENCE ? fence_ok(img) : gather_ok(img);
	return ok ? 0 : -EPROTO;
}

bool image_find(const struct image *img, uint64_t hash, const void *key,
		size_t key_len, const char **value, size_t *value_len)
{
	struct index ix = fence_index(img);
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
	return img->kind == IMAGE_FENCE &&
	       record_next(img->data, img->data_len, offset, out) == 1;
}

const void *image_gather_even(const struct image *img, size_t *len)
{
	*len = img->value_max;
	return img->index_count ? NULL : img->data;
}

const void *image_gather_value(const struct image *img, uint32_t r,
			       size_t *len)
{
	uint32_t from, to;

	if (img->index_count == 0) {
		*len = img->value_max;
		return img->data + (size_t)r * img->value_max;
	}
	from = gather_offset(img, r);
	to = gather_offset(img, r + 1);
	if (from > to || to > img->data_len)
		from = to = 0; /* only where image_open has not checked */
	*len = to - from;
	return img->data + from;
}
