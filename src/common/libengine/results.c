/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The results of collectives on this node: fenced records by key, gathers by
 * offset. They lie in the shared region or, for hosts without one, in the heap.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <utlist.h>

#include "libengine/results.h"

#define HEAP_MAX REGION_SIZE_DEFAULT /* bytes of results without a region */

struct heap_gather {
	struct heap_gather *prev, *next;
	uint64_t offset;
	struct payload *bytes;
};

void results_init(struct results *k, struct region_writer *region)
{
	memset(k, 0, sizeof(*k));
	k->region = region;
	/* An offset of 0 is valid, but does not look so in a report. */
	k->next_offset = IMAGE_ALIGNMENT;
}

static void heap_remove(struct results *k, struct heap_gather *g)
{
	DL_DELETE(k->gathers, g);
	k->heap_used -= g->bytes->len;
	payload_unref(g->bytes);
	free(g);
}

void results_free(struct results *k)
{
	while (k->gathers)
		heap_remove(k, k->gathers);
	payload_vec_clear(&k->images);
	results_init(k, k->region);
}

#define IN_PLACE_MIN 16384 /* bytes; less is copied, to waste no page */

static int open_image(struct image *img, const struct payload *p, bool trusted,
		      enum image_kind kind)
{
	int rc;

	if (!p || !p->data)
		return -EPROTO;
	rc = trusted ? image_open_trusted(img, p->data, p->len) :
		       image_open(img, p->data, p->len);
	return rc || img->kind != kind ? -EPROTO : 0;
}

struct payload *results_place(struct results *k, size_t len)
{
	if (!k->region || len < IN_PLACE_MIN)
		return NULL;
	return region_payload_new(k->region, len);
}

static bool in_place(const struct results *k, const struct payload *image)
{
	return k->region && region_payload_is(k->region, image);
}

int results_extend(struct results *k, struct payload *place, size_t len)
{
	return in_place(k, place) ? region_payload_commit(k->region, place, len) : 0;
}

struct payload *results_room(struct results *k, size_t len)
{
	struct payload *p = results_place(k, len);

	if (p && results_extend(k, p, len) == 0)
		return p;
	payload_unref(p);
	return payload_new(len);
}

static int heap_reserve(struct results *k, size_t len)
{
	if (len > HEAP_MAX - k->heap_used)
		return -ENOSPC;
	k->heap_used += len;
	return 0;
}

static int heap_add_image(struct results *k, struct payload *image)
{
	if (heap_reserve(k, image->len))
		return -ENOSPC;
	return payload_vec_add(&k->images, image);
}

int results_publish_fence(struct results *k, struct payload *image, bool trusted)
{
	struct image img;
	int rc = open_image(&img, image, trusted, IMAGE_FENCE);

	/* A fence that carried nothing, a barrier, must not cost look-ups. */
	if (rc || img.count == 0)
		return rc;
	if (in_place(k, image))
		return region_publish_fence_payload(k->region, image);
	if (k->region)
		return region_publish_fence(k->region, image->data, image->len);
	return heap_add_image(k, image);
}

bool results_tidy(struct results *k)
{
	return k->region && region_tidy(k->region);
}

bool results_untidy(const struct results *k)
{
	return k->region && region_untidy(k->region);
}

int results_publish_records(struct results *k, const void *records, size_t len)
{
	struct payload *block = payload_copy(records, len), *image = NULL;
	struct payload_vec blocks;
	int rc = -ENOMEM;

	payload_vec_init(&blocks);
	if (block && !payload_vec_add(&blocks, block))
		image = image_build_fence(&blocks, &rc);
	if (image)
		rc = results_publish_fence(k, image, true);
	payload_unref(image);
	payload_vec_clear(&blocks);
	payload_unref(block);
	return rc;
}

/* All values at `stride` bytes each, cut or filled up with zeros. */
static struct payload *expand(const struct image *img, size_t stride)
{
	struct payload *p;

	if (img->count > HEAP_MAX / stride)
		return NULL;
	p = payload_new(img->count * stride);
	if (!p)
		return NULL;
	memset(p->data, 0, p->len);
	for (uint32_t r = 0; r < img->count; r++) {
		size_t len;
		const void *value = image_gather_value(img, r, &len);

		memcpy(p->data + r * stride, value, len < stride ? len : stride);
	}
	return p;
}

static int heap_add_gather(struct results *k, struct payload *bytes,
			   uint64_t *offset)
{
	struct heap_gather *g = calloc(1, sizeof(*g));

	if (!g)
		return -ENOMEM;
	if (heap_reserve(k, bytes->len)) {
		free(g);
		return -ENOSPC;
	}
	g->bytes = payload_ref(bytes);
	g->offset = k->next_offset;
	k->next_offset += (bytes->len / IMAGE_ALIGNMENT + 1) * IMAGE_ALIGNMENT;
	DL_APPEND(k->gathers, g);
	*offset = g->offset;
	return 0;
}

static int heap_publish_gather(struct results *k, const struct image *img,
			       struct payload *image, size_t stride,
			       uint64_t *offset, uint64_t *len)
{
	struct payload *bytes;
	int rc;

	bytes = stride ? expand(img, stride) : payload_ref(image);
	if (!bytes)
		return -ENOMEM;
	*len = bytes->len;
	rc = heap_add_gather(k, bytes, offset);
	payload_unref(bytes);
	return rc;
}

int results_publish_gather(struct results *k, struct payload *image, bool trusted,
			   uint32_t values, size_t stride, uint64_t *offset,
			   uint64_t *len, struct payload **keep)
{
	struct image img;
	int rc = open_image(&img, image, trusted, IMAGE_GATHER);

	*keep = NULL;
	if (rc)
		return rc;
	if (img.count != values)
		return -EPROTO;
	if (in_place(k, image) &&
	    region_publish_gather_payload(k->region, image, stride, offset,
					  len)) {
		*keep = payload_ref(image);
		return 0;
	}
	if (k->region)
		return region_publish_gather(k->region, image->data, image->len,
					     stride, offset, len);
	return heap_publish_gather(k, &img, image, stride, offset, len);
}

static struct heap_gather *heap_gather_at(const struct results *k, uint64_t offset)
{
	struct heap_gather *g;

	DL_FOREACH(k->gathers, g)
		if (offset >= g->offset && offset - g->offset < g->bytes->len)
			return g;
	return NULL;
}

void results_release(struct results *k, uint64_t offset)
{
	struct heap_gather *g;

	if (k->region) {
		region_release(k->region, offset);
		return;
	}
	g = heap_gather_at(k, offset);
	if (g)
		heap_remove(k, g);
}

bool results_find(const struct results *k, const char *key, size_t key_len,
		  const char **value, size_t *value_len)
{
	uint64_t hash;

	if (k->region)
		return region_writer_find(k->region, key, key_len, value,
					  value_len);
	hash = image_hash(key, key_len);
	for (size_t i = k->images.count; i-- > 0;) {
		struct image img;

		if (!image_open_trusted(&img, k->images.items[i]->data,
					k->images.items[i]->len) &&
		    image_find(&img, hash, key, key_len, value, value_len))
			return true;
	}
	return false;
}

const void *results_bytes(const struct results *k, uint64_t offset, uint64_t len)
{
	struct heap_gather *g;

	if (k->region)
		return region_writer_bytes(k->region, offset, len);
	g = heap_gather_at(k, offset);
	if (!g || len > g->bytes->len - (offset - g->offset))
		return NULL;
	return g->bytes->data + (offset - g->offset);
}
