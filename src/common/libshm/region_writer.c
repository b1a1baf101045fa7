/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The writing side of the results region: where blocks go, and how fences and
 * gathers are published.
 */
#include "libshm/region.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libshm/byteorder.h"
#include "libshm/extents.h"
#include "libshm/image_layout.h"
#include "libshm/region_layout.h"
#include "libshm/region_memory.h"
#include "libshm/region_merge.h"
#include "libshm/region_prefault.h"

#define MERGE_BUDGET 65536 /* buckets looked at in one region_tidy */
#define VIEWS_AT_ONCE 16   /* room for views that is taken at a time */

struct region_writer {
	struct region_memory memory;
	struct extents free;
	struct extents gathers; /* gathers that region_release may free */
	struct region_payload *coming; /* payloads that have not got all their memory */
	size_t used;            /* bytes of blocks */
	struct region_view view; /* the current one */
	struct extent views;     /* where the next ones go */
	struct region_merge merge;
	struct region_prefault ahead;
};

/* ---- blocks ---- */

/* A place, without memory. */
static int take_place(struct region_writer *w, uint64_t len, uint64_t align,
		      uint64_t *offset)
{
	if (extents_take(&w->free, len, align, offset))
		return -ENOSPC; /* agents have no other answer to -ENOMEM */
	w->used += len;
	return 0;
}

/* Without memory for the list of free blocks the block is lost, no more. */
static void give_block(struct region_writer *w, uint64_t offset, uint64_t len)
{
	if (len == 0)
		return;
	region_memory_discard(&w->memory, offset, len);
	extents_give(&w->free, offset, len);
	w->used -= len;
}

static int take_block(struct region_writer *w, uint64_t len, uint64_t align,
		      uint64_t *offset)
{
	int rc = take_place(w, len, align, offset);

	if (rc)
		return rc;
	rc = region_memory_commit(&w->memory, *offset, len);
	if (rc)
		give_block(w, *offset, len);
	return rc;
}

/* ---- life ---- */

static struct region_header *header_of(const struct region_writer *w)
{
	return (struct region_header *)w->memory.map;
}

static int write_header(struct region_writer *w)
{
	struct region_header *h = header_of(w);
	int rc;

	rc = region_memory_commit(&w->memory, 0, REGION_HEADER_SIZE);
	if (rc)
		return rc;
	h->magic = REGION_MAGIC;
	h->byte_order = BYTE_ORDER_MARK;
	h->version = REGION_VERSION;
	h->header_size = REGION_HEADER_SIZE;
	h->size = w->memory.size;
	return extents_give(&w->free, REGION_HEADER_SIZE,
			    w->memory.size - REGION_HEADER_SIZE);
}

int region_writer_create(struct region_writer **out, size_t size)
{
	int object;

	if (size < REGION_SIZE_MIN || size > REGION_SIZE_MAX)
		return -EINVAL;
	object = region_object_create();
	return object < 0 ? object : region_writer_create_in(out, object, size);
}

int region_writer_create_in(struct region_writer **out, int object, size_t size)
{
	bool fits = size >= REGION_SIZE_MIN && size <= REGION_SIZE_MAX;
	struct region_writer *w = fits ? calloc(1, sizeof(*w)) : NULL;
	int rc;

	if (!w) {
		close(object);
		return fits ? -ENOMEM : -EINVAL;
	}
	rc = region_memory_create(&w->memory, object, size);
	if (rc)
		goto free_writer;
	rc = write_header(w);
	if (rc)
		goto destroy_memory;
	*out = w;
	return 0;
destroy_memory:
	extents_free(&w->free);
	region_memory_destroy(&w->memory);
free_writer:
	free(w);
	return rc;
}

void region_writer_destroy(struct region_writer *w)
{
	if (!w)
		return;
	extents_free(&w->gathers);
	extents_free(&w->free);
	region_memory_destroy(&w->memory);
	free(w);
}

int region_writer_fd(const struct region_writer *w)
{
	return w->memory.reader_fd;
}

size_t region_writer_size(const struct region_writer *w)
{
	return w->memory.size;
}

size_t region_writer_used(const struct region_writer *w)
{
	return w->used;
}

/* ---- views ---- */

static int take_for(struct region_writer *w, struct extent *x, uint64_t len)
{
	int rc = take_block(w, len, REGION_BLOCK_ALIGNMENT, &x->offset);

	if (rc == 0)
		x->len = len;
	return rc;
}

/*
 * Write a view and make it current: all of it, or nothing, to any reader. Small
 * as views are, they share blocks.
 */
static int publish_view(struct region_writer *w, const struct region_view *view)
{
	uint64_t size = (sizeof(*view) + REGION_BLOCK_ALIGNMENT - 1) &
			~(uint64_t)(REGION_BLOCK_ALIGNMENT - 1);
	int rc = 0;

	if (w->views.len < size)
		rc = take_for(w, &w->views, VIEWS_AT_ONCE * size);
	if (rc)
		rc = take_for(w, &w->views, size); /* nearly full */
	if (rc)
		return rc;
	memcpy(w->memory.map + w->views.offset, view, sizeof(*view));
	w->view = *view;
	atomic_store_explicit(&header_of(w)->view, w->views.offset,
			      memory_order_release);
	w->views.offset += size;
	w->views.len -= size;
	return 0;
}

/* ---- merging ---- */

static int begin_merge(struct region_writer *w)
{
	uint32_t buckets = region_merge_buckets(&w->merge, &w->view);
	struct extent table = {0};
	int rc = 0;

	if (buckets == UINT32_MAX)
		return -ENOSPC;
	if (buckets)
		rc = take_for(w, &table, (uint64_t)buckets * INDEX_BUCKET);
	if (rc)
		return rc;
	/* The memory may have been used before. */
	memset(w->memory.map + table.offset, 0, table.len);
	region_merge_begin(&w->merge, &w->view, table.offset, buckets);
	return 0;
}

/* Put the joint index in the place of what it covers. */
static int end_merge(struct region_writer *w)
{
	struct region_view view = w->view;

	view.count -= w->merge.goal - 1;
	view.index[view.count - 1] = w->merge.joint;
	w->merge.active = publish_view(w, &view) != 0;
	return w->merge.active ? -ENOSPC : 0;
}

static bool chain_is_long(const struct region_writer *w)
{
	return w->merge.active || w->view.count > REGION_CHAIN_GOOD;
}

/* 0: nothing is left to do; -EAGAIN; or -ENOSPC. */
static int merge(struct region_writer *w, uint64_t budget)
{
	int rc = 0;

	if (!chain_is_long(w))
		return 0;
	if (!w->merge.active)
		rc = begin_merge(w);
	if (rc)
		return rc;
	if (!region_merge_step(&w->merge, w->memory.map, w->memory.size,
			       &w->view, budget))
		return -EAGAIN;
	rc = end_merge(w);
	return rc || !chain_is_long(w) ? rc : -EAGAIN;
}

bool region_untidy(const struct region_writer *w)
{
	return region_prefault_wanted(&w->ahead) || chain_is_long(w);
}

bool region_tidy(struct region_writer *w)
{
	if (merge(w, MERGE_BUDGET) == -EAGAIN)
		return true;
	/* Behind the joint index, which may have taken the room. */
	if (region_prefault_wanted(&w->ahead))
		region_prefault_step(&w->ahead, &w->memory, &w->free);
	return region_prefault_wanted(&w->ahead);
}

uint64_t region_writer_merged(const struct region_writer *w)
{
	return w->merge.work;
}

/* ---- fences ---- */

/* Room for one more index in the chain. */
static int shorten_chain(struct region_writer *w)
{
	int rc = 0;

	while (w->view.count == REGION_CHAIN_MAX && rc == 0) {
		rc = merge(w, UINT64_MAX);
		if (rc == -EAGAIN)
			rc = 0;
	}
	return rc;
}

/* Make the image at `offset` the newest generation. */
static int publish_image(struct region_writer *w, uint64_t offset,
			 const struct image *img)
{
	struct region_view view = { .count = 1 };
	int rc = shorten_chain(w);

	if (rc)
		return rc;
	view.index[0] = (struct region_index){
		.table = offset + sizeof(struct image_header),
		.base = offset,
		.buckets = img->index_count,
		.count = img->count,
	};
	memcpy(view.index + 1, w->view.index,
	       w->view.count * sizeof(view.index[0]));
	view.count += w->view.count;
	rc = publish_view(w, &view);
	if (rc == 0)
		region_prefault_expect(&w->ahead, img->len);
	return rc;
}

int region_publish_fence(struct region_writer *w, const void *image, size_t len)
{
	struct extent block = {0};
	struct image img;
	int rc;

	if (image_open_trusted(&img, image, len) || img.kind != IMAGE_FENCE)
		return -EPROTO;
	if (img.count == 0)
		return 0; /* nothing that a look-up could find */
	rc = take_for(w, &block, len);
	if (rc)
		return rc;
	memcpy(w->memory.map + block.offset, image, len);
	rc = publish_image(w, block.offset, &img);
	if (rc)
		give_block(w, block.offset, block.len);
	return rc;
}

/* ---- gathers ---- */

static void expand(unsigned char *to, const struct image *img, size_t stride)
{
	for (uint32_t r = 0; r < img->count; r++, to += stride) {
		size_t len;
		const void *value = image_gather_value(img, r, &len);

		if (len > stride)
			len = stride;
		memcpy(to, value, len);
		memset(to + len, 0, stride - len);
	}
}

/* Whole pages, so that they can be returned when the gather is released. */
static int take_gather(struct region_writer *w, uint64_t len, uint64_t *offset)
{
	uint64_t page = w->memory.page;
	uint64_t size = len ? (len + page - 1) & ~(page - 1) : page;
	int rc;

	rc = take_block(w, size, page, offset);
	if (rc)
		return rc;
	if (extents_insert(&w->gathers, *offset, size) == 0)
		return 0;
	give_block(w, *offset, size);
	return -ENOSPC;
}

int region_publish_gather(struct region_writer *w, const void *image, size_t len,
			  size_t stride, uint64_t *offset, uint64_t *out_len)
{
	struct image img;
	int rc;

	if (image_open_trusted(&img, image, len) || img.kind != IMAGE_GATHER ||
	    stride > RECORD_VALUE_MAX)
		return -EPROTO;
	*out_len = stride ? (uint64_t)img.count * stride : len;
	rc = take_gather(w, *out_len, offset);
	if (rc)
		return rc;
	if (stride)
		expand(w->memory.map + *offset, &img, stride);
	else
		memcpy(w->memory.map + *offset, image, len);
	return 0;
}

void region_release(struct region_writer *w, uint64_t offset)
{
	uint64_t len;

	if (extents_remove(&w->gathers, offset, &len))
		give_block(w, offset, len);
}

/* ---- images that are received in place ---- */

struct region_payload {
	struct payload payload; /* the first member */
	struct region_writer *writer;
	struct region_payload *next; /* the next one that is being filled */
	uint64_t offset;
	uint64_t size; /* whole pages; 0: the block is the KVS's now */
	uint64_t committed; /* bytes of it that have memory, the first */
};

static void has_come(struct region_payload *r)
{
	struct region_payload **at = &r->writer->coming;

	while (*at && *at != r)
		at = &(*at)->next;
	if (*at)
		*at = r->next;
}

/* Nobody may look where there is no memory yet. */
static bool is_coming(const struct region_writer *w, uint64_t offset,
		      uint64_t len)
{
	const struct region_payload *r = w->coming;

	while (r && (offset + len <= r->offset + r->committed ||
		     offset >= r->offset + r->size))
		r = r->next;
	return r != NULL;
}

static void release_payload(struct payload *p)
{
	struct region_payload *r = (struct region_payload *)p;

	has_come(r);
	give_block(r->writer, r->offset, r->size);
	free(r);
}

struct payload *region_payload_new(struct region_writer *w, size_t len)
{
	uint64_t page = w->memory.page;
	struct region_payload *r = calloc(1, sizeof(*r));

	if (!r || len == 0 || len > w->memory.size)
		goto fail;
	r->size = (len + page - 1) & ~(page - 1);
	if (take_place(w, r->size, page, &r->offset))
		goto fail;
	r->writer = w;
	r->next = w->coming;
	w->coming = r;
	r->payload.refs = 1;
	r->payload.len = len;
	r->payload.data = w->memory.map + r->offset;
	r->payload.release = release_payload;
	return &r->payload;
fail:
	free(r);
	return NULL;
}

/* Each time as much again as there is: few calls, and at most twice as much. */
int region_payload_commit(struct region_writer *w, struct payload *p, size_t len)
{
	struct region_payload *r = (struct region_payload *)p;
	uint64_t goal = 2 * r->committed;
	int rc;

	if (len <= r->committed)
		return 0;
	if (goal < len)
		goal = len;
	if (goal > r->size)
		goal = r->size;
	rc = region_memory_commit(&w->memory, r->offset + r->committed,
				  goal - r->committed);
	if (rc == 0)
		r->committed = goal;
	if (r->committed == r->size)
		has_come(r);
	return rc;
}

bool region_payload_is(const struct region_writer *w, const struct payload *p)
{
	return p->release == release_payload &&
	       ((const struct region_payload *)p)->writer == w;
}

int region_publish_fence_payload(struct region_writer *w, struct payload *p)
{
	struct region_payload *r = (struct region_payload *)p;
	struct image img;
	int rc;

	if (image_open_trusted(&img, p->data, p->len) ||
	    img.kind != IMAGE_FENCE)
		return -EPROTO;
	if (img.count == 0)
		return 0;
	rc = publish_image(w, r->offset, &img);
	if (rc == 0)
		r->size = 0;
	return rc;
}

bool region_publish_gather_payload(struct region_writer *w, struct payload *p,
				   size_t stride, uint64_t *offset,
				   uint64_t *out_len)
{
	const struct region_payload *r = (const struct region_payload *)p;
	struct image img;

	if (image_open_trusted(&img, p->data, p->len) ||
	    img.kind != IMAGE_GATHER)
		return false;
	if (stride && (img.index_count || img.value_max != stride))
		return false;
	*offset = r->offset + (stride ? (uint64_t)(img.data - img.base) : 0);
	*out_len = stride ? img.data_len : p->len;
	return true;
}

/* ---- other uses ---- */

int region_reserve(struct region_writer *w, size_t len, uint64_t *offset,
		   void **at)
{
	int rc = take_block(w, len, w->memory.page, offset);

	if (rc == 0)
		*at = w->memory.map + *offset;
	return rc;
}

/* ---- reading as the agent ---- */

const void *region_writer_bytes(const struct region_writer *w, uint64_t offset,
				uint64_t len)
{
	size_t size = w->memory.size;

	if (len == 0 || offset < REGION_HEADER_SIZE || offset > size ||
	    len > size - offset || extents_overlap(&w->free, offset, len) ||
	    is_coming(w, offset, len))
		return NULL;
	return w->memory.map + offset;
}

/* A record of an image from a link may claim what lies behind the image. */
bool region_writer_find(const struct region_writer *w, const void *key,
			size_t key_len, const char **value, size_t *value_len)
{
	const unsigned char *map = w->memory.map;

	return region_lookup(map, w->memory.size, key, key_len, value,
			     value_len) &&
	       region_writer_bytes(w, (const unsigned char *)*value - map,
				   *value_len + 1);
}
