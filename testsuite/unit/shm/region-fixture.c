/* SPDX-License-Identifier: BSD-3-Clause */
/* Makes images, publishes them in a region, and looks keys up. */
#include "unit.h"

#include <stdio.h>

#include "region-fixture.h"

struct payload *finish_fence(struct buf *b)
{
	struct payload *block = payload_copy(b->data, b->len), *image;
	struct payload_vec v;
	int error;

	payload_vec_init(&v);
	payload_vec_add(&v, block);
	image = image_build_fence(&v, &error);
	assert_non_null(image);
	payload_vec_clear(&v);
	payload_unref(block);
	buf_free(b);
	return image;
}

int publish_keys(struct region_writer *w, const char *prefix, int n,
		 const char *value)
{
	struct payload *image;
	struct buf b;
	char k[64];
	int rc;

	buf_init(&b, 1 << 24);
	for (int i = 0; i < n; i++) {
		int len = snprintf(k, sizeof(k), "%s%d", prefix, i);

		record_append(&b, k, len, value, strlen(value));
	}
	image = finish_fence(&b);
	rc = region_publish_fence(w, image->data, image->len);
	payload_unref(image);
	return rc;
}

struct payload *gather_image(const char *const *values, uint32_t n)
{
	struct payload_vec v;
	struct payload *p;
	int error;

	payload_vec_init(&v);
	for (uint32_t i = 0; i < n; i++) {
		p = gather_contribution(NULL, values[i], strlen(values[i]));
		payload_vec_add(&v, p);
		payload_unref(p);
	}
	p = image_build_gather(&v, n, NULL, &error);
	assert_non_null(p);
	payload_vec_clear(&v);
	return p;
}

static void end_writer(void *writer)
{
	region_writer_destroy(writer);
}

struct region_writer *new_writer(size_t size)
{
	struct region_writer *w;

	assert_int_equal(region_writer_create(&w, size), 0);
	return unit_at_end(end_writer, w);
}

static void detach(void *region)
{
	region_detach(region);
}

struct region *attach(const struct region_writer *w)
{
	struct region *r;

	assert_int_equal(region_attach(&r, region_writer_fd(w),
				       region_writer_size(w)), 0);
	return unit_at_end(detach, r);
}

void check_key(const struct region *r, const char *key, const char *expected)
{
	const char *value;
	size_t len;

	if (!region_find(r, key, strlen(key), &value, &len))
		fail_msg("%s is not found", key);
	assert_int_equal(len, strlen(expected));
	assert_string_equal(value, expected);
}

bool has_key(const struct region *r, const char *key)
{
	const char *value;
	size_t len;

	return region_find(r, key, strlen(key), &value, &len);
}

void *view_of(const struct region *r)
{
	const struct region_header *h = region_bytes(r, 0, sizeof(*h));

	return (void *)region_bytes(r, h->view, sizeof(struct region_view));
}
