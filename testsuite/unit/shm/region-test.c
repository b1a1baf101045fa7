/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The results region: what the agent publishes is what ranks read, and a full
 * region harms nothing that is in it.
 */
#include "unit.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>

#include "libshm/extents.h"
#include "libshm/image_layout.h"
#include "region-fixture.h"

/* ---- fences ---- */

WRITER_TEST(readers_find_what_is_published, REGION_SIZE_DEFAULT)
{
	struct region *r = attach(w);
	const char *value, *first;
	size_t len;

	assert_false(has_key(r, "a0"));
	assert_int_equal(publish_keys(w, "a", 100, "one"), 0);
	check_key(r, "a0", "one");
	check_key(r, "a99", "one");
	assert_false(has_key(r, "a100"));
	region_find(r, "a5", 2, &first, &len);
	assert_int_equal(publish_keys(w, "a", 10, "two"), 0);
	check_key(r, "a5", "two");
	check_key(r, "a50", "one");
	assert_string_equal(first, "one"); /* values stay where they were */
	assert_true(region_writer_find(w, "a5", 2, &value, &len));
	assert_string_equal(value, "two");
	assert_false(region_writer_find(w, "b", 1, &value, &len));
	unit_end(w);
	check_key(r, "a5", "two"); /* the agent may leave first */
}

WRITER_TEST(empty_generations_cost_nothing, REGION_SIZE_MIN)
{
	struct region *r = attach(w);
	size_t used;
	void *view;

	assert_int_equal(publish_keys(w, "k", 0, ""), 0);
	assert_int_equal(publish_keys(w, "k", 1, "v"), 0);
	used = region_writer_used(w);
	view = view_of(r);
	for (int i = 0; i < 10000; i++)
		assert_int_equal(publish_keys(w, "k", 0, ""), 0);
	assert_int_equal(region_writer_used(w), used);
	assert_ptr_equal(view_of(r), view);
	check_key(r, "k0", "v");
}

/* Publish generations of `n` keys until one fails, which must change nothing. */
static int fill_up(struct region_writer *w, int first, int n)
{
	char prefix[32];

	for (int g = first;; g++) {
		size_t used = region_writer_used(w);
		int rc;

		snprintf(prefix, sizeof(prefix), "g%d-", g);
		rc = publish_keys(w, prefix, n, prefix);
		if (rc == 0)
			continue;
		assert_int_equal(rc, -ENOSPC);
		assert_int_equal(region_writer_used(w), used);
		return g;
	}
}

WRITER_TEST(a_full_region_keeps_what_it_has, REGION_SIZE_MIN)
{
	static const char *const values[] = {"gathered"};
	struct payload *image = gather_image(values, 1);
	struct region *r = attach(w);
	char key[64], prefix[32];
	uint64_t at, len;
	int g;

	assert_int_equal(region_publish_gather(w, image->data, image->len,
					       16000, &at, &len), 0);
	g = fill_up(w, 0, 10);
	assert_true(g > 5);
	g = fill_up(w, fill_up(w, g, 3), 1);
	for (int i = 0; i < g; i++) {
		snprintf(prefix, sizeof(prefix), "g%d-", i);
		snprintf(key, sizeof(key), "g%d-0", i);
		check_key(r, key, prefix);
	}
	snprintf(key, sizeof(key), "g%d-0", g);
	assert_false(has_key(r, key));
	region_release(w, at);
	assert_int_equal(publish_keys(w, "more", 1, "v"), 0);
	check_key(r, "more0", "v");
	check_key(r, "g0-9", "g0-");
	payload_unref(image);
}

/* The joint index may come to lie where a gather has been. */
WRITER_TEST(keys_are_found_in_used_space, REGION_SIZE_MIN)
{
	static char value[16001];
	const char *const values[] = {value};
	struct region *r = attach(w);
	struct payload *image;
	char key[32];
	uint64_t at, len;

	memset(value, 0xff, sizeof(value) - 1);
	image = gather_image(values, 1);
	assert_int_equal(region_publish_gather(w, image->data, image->len, 0,
					       &at, &len), 0);
	region_release(w, at);
	for (int g = 0; g < 2 * REGION_CHAIN_MAX; g++) {
		snprintf(key, sizeof(key), "g%d-", g);
		assert_int_equal(publish_keys(w, key, 10, key), 0);
	}
	for (int g = 0; g < 2 * REGION_CHAIN_MAX; g++) {
		char expected[32];

		snprintf(expected, sizeof(expected), "g%d-", g);
		snprintf(key, sizeof(key), "g%d-9", g);
		check_key(r, key, expected);
	}
	for (int i = 0; i < 100; i++) {
		snprintf(key, sizeof(key), "absent%d", i);
		assert_false(has_key(r, key));
	}
	payload_unref(image);
}

WRITER_TEST(only_images_are_published, REGION_SIZE_MIN)
{
	static const char *const values[] = {"a"};
	struct payload *gather = gather_image(values, 1), *fence;
	uint64_t at, len;
	struct buf b;

	buf_init(&b, 100);
	record_append(&b, "k", 1, "v", 1);
	fence = finish_fence(&b);
	assert_int_equal(region_publish_fence(w, "hello", 5), -EPROTO);
	assert_int_equal(region_publish_fence(w, gather->data, gather->len),
			 -EPROTO);
	assert_int_equal(region_publish_fence(w, fence->data, fence->len - 8),
			 -EPROTO);
	assert_int_equal(region_publish_gather(w, fence->data, fence->len, 0,
					       &at, &len), -EPROTO);
	assert_int_equal(region_publish_gather(w, gather->data, gather->len,
					       RECORD_VALUE_MAX + 1, &at, &len),
			 -EPROTO);
	assert_int_equal(region_writer_used(w), 0);
	payload_unref(fence);
	payload_unref(gather);
}

/* ---- gathers ---- */

WRITER_TEST(gathers_arrive_as_images_and_as_arrays, REGION_SIZE_MIN)
{
	static const char *const values[] = {"zero", "", "two two", "3"};
	struct payload *image = gather_image(values, 4);
	struct region *r = attach(w);
	uint64_t at, len;
	struct image img;
	const char *bytes;
	size_t n;

	assert_int_equal(region_publish_gather(w, image->data, image->len, 0,
					       &at, &len), 0);
	assert_int_equal(len, image->len);
	assert_int_equal(image_open_trusted(&img, region_bytes(r, at, len),
					    len), 0);
	for (uint32_t i = 0; i < 4; i++) {
		bytes = image_gather_value(&img, i, &n);
		assert_int_equal(n, strlen(values[i]));
		assert_memory_equal(bytes, values[i], n);
	}
	region_release(w, at); /* the array below lies in used space */
	assert_int_equal(region_publish_gather(w, image->data, image->len, 5,
					       &at, &len), 0);
	assert_int_equal(len, 20);
	bytes = region_bytes(r, at, len);
	assert_memory_equal(bytes, "zero\0\0\0\0\0\0two t3\0\0\0\0", 20);
	assert_memory_equal(region_writer_bytes(w, at, len), bytes, 20);
	payload_unref(image);
}

/* A whole image from a link, but for the length that its record claims. */
static void publish_claim(struct region_writer *w, uint32_t value_len)
{
	struct payload *image;
	struct image_header h;
	struct image img;
	struct buf b;

	buf_init(&b, 1000);
	record_append(&b, "key", 3, "value", 5);
	image = finish_fence(&b);
	memcpy(&h, image->data, sizeof(h));
	memcpy(image->data + image_data_start(&h), &value_len,
	       sizeof(value_len));
	h.checksum = image_checksum(image->data, image->len);
	memcpy(image->data, &h, sizeof(h));
	assert_int_equal(image_open(&img, image->data, image->len), 0);
	assert_int_equal(region_publish_fence(w, image->data, image->len), 0);
	payload_unref(image);
}

/* The record would reach over pages that were never written, and make them. */
TEST(a_record_cannot_claim_more_than_a_value_may_have)
{
	struct region_writer *w;
	const char *value;
	size_t len;

	assert_int_equal(region_writer_create(&w, 64 << 20), 0);
	publish_claim(w, RECORD_VALUE_MAX + 1);
	assert_false(region_writer_find(w, "key", 3, &value, &len));
	publish_claim(w, RECORD_VALUE_MAX); /* behind the image, where nothing is */
	assert_false(region_writer_find(w, "key", 3, &value, &len));
	publish_claim(w, 32 << 20);
	assert_false(region_writer_find(w, "key", 3, &value, &len));
	publish_claim(w, 5);
	assert_true(region_writer_find(w, "key", 3, &value, &len));
	assert_int_equal(len, 5);
	region_writer_destroy(w);
}

static struct payload *room_in(void *writer, size_t len)
{
	struct payload *p = region_payload_new(writer, len);

	assert_non_null(p);
	assert_int_equal(region_payload_commit(writer, p, len), 0);
	return p;
}

/* Bytes of memory behind a region. */
static uint64_t committed(const struct region_writer *w)
{
	struct stat st;

	assert_int_equal(fstat(region_writer_fd(w), &st), 0);
	return (uint64_t)st.st_blocks * 512;
}

TEST(memory_grows_with_the_bytes_not_with_the_claim)
{
	enum { CLAIM = 64 << 20, PIECE = 65536 };
	struct region_writer *w;
	struct payload *p;
	uint64_t before;

	assert_int_equal(region_writer_create(&w, 2 * CLAIM), 0);
	before = committed(w);
	p = region_payload_new(w, CLAIM);
	assert_non_null(p);
	assert_int_equal(committed(w), before);
	for (size_t len = PIECE; len <= CLAIM; len += PIECE) {
		assert_int_equal(region_payload_commit(w, p, len), 0);
		memset(p->data + len - PIECE, 1, PIECE);
		assert_in_range(committed(w) - before, len, 2 * len);
	}
	assert_int_equal(committed(w) - before, CLAIM);
	payload_unref(p);
	region_writer_destroy(w);
}

TEST(nobody_looks_where_nothing_has_come)
{
	enum { CLAIM = 1 << 20, PIECE = 65536 };
	struct region_writer *w;
	struct payload *p, *other;
	uint64_t at, start;
	void *known;

	assert_int_equal(region_writer_create(&w, 4 * CLAIM), 0);
	assert_int_equal(region_reserve(w, 4096, &at, &known), 0);
	p = region_payload_new(w, CLAIM);
	other = region_payload_new(w, PIECE);
	start = at + (p->data - (unsigned char *)known);
	assert_null(region_writer_bytes(w, start, 1));
	assert_int_equal(region_payload_commit(w, p, PIECE), 0);
	assert_ptr_equal(region_writer_bytes(w, start, PIECE), p->data);
	assert_null(region_writer_bytes(w, start, PIECE + 1));
	assert_null(region_writer_bytes(w, start + CLAIM - 1, 1));
	payload_unref(other);
	assert_null(region_writer_bytes(w, start + CLAIM - 1, 1));
	assert_int_equal(region_payload_commit(w, p, CLAIM), 0);
	assert_ptr_equal(region_writer_bytes(w, start, CLAIM), p->data);
	payload_unref(p);
	assert_null(region_writer_bytes(w, start, 1));
	region_writer_destroy(w);
}

static struct payload *build_gather(struct region_writer *w,
				    const char *const *values, uint32_t n)
{
	struct image_memory memory = { room_in, w };
	struct payload *image, *p;
	struct payload_vec v;
	int error;

	payload_vec_init(&v);
	for (uint32_t i = 0; i < n; i++) {
		p = gather_contribution(NULL, values[i], strlen(values[i]));
		payload_vec_add(&v, p);
		payload_unref(p);
	}
	image = image_build_gather_in(&memory, &v, n, NULL, &error);
	assert_non_null(image);
	payload_vec_clear(&v);
	return image;
}

TEST(images_are_published_where_they_were_made)
{
	static const char *const same[] = {"abcd", "efgh", "ijkl"};
	static const char *const unlike[] = {"abcd", "efg", "ijkl"};
	struct region_writer *w, *other;
	struct payload *p, *heap = payload_new(100);
	uint64_t offset, len;
	size_t used;

	assert_int_equal(region_writer_create(&w, 1 << 20), 0);
	assert_int_equal(region_writer_create(&other, 1 << 20), 0);
	used = region_writer_used(w);
	p = build_gather(w, same, 3);
	assert_true(region_payload_is(w, p));
	assert_false(region_payload_is(other, p));
	assert_false(region_payload_is(w, heap));
	assert_true(region_publish_gather_payload(w, p, 4, &offset, &len));
	assert_int_equal(len, 12);
	assert_memory_equal(region_writer_bytes(w, offset, len),
			    "abcdefghijkl", 12);
	assert_true(region_publish_gather_payload(w, p, 0, &offset, &len));
	assert_int_equal(len, p->len);
	assert_false(region_publish_gather_payload(w, p, 8, &offset, &len));
	payload_unref(p);
	assert_null(region_writer_bytes(w, offset, len));
	p = build_gather(w, unlike, 3);
	assert_false(region_publish_gather_payload(w, p, 4, &offset, &len));
	assert_int_equal(region_publish_fence_payload(w, p), -EPROTO);
	payload_unref(p);
	assert_int_equal(region_writer_used(w), used);
	assert_null(region_payload_new(w, 0));
	assert_null(region_payload_new(w, 2 << 20));
	payload_unref(heap);
	region_writer_destroy(other);
	region_writer_destroy(w);
}

TEST(a_fence_published_where_it_was_made_stays)
{
	struct image_memory memory = { room_in, NULL };
	struct region_writer *w;
	struct payload *block, *p;
	struct payload_vec v;
	const char *value;
	struct buf b;
	size_t len;
	int error;

	assert_int_equal(region_writer_create(&w, 1 << 20), 0);
	memory.arg = w;
	buf_init(&b, 100);
	record_append(&b, "key", 3, "value", 5);
	block = payload_copy(b.data, b.len);
	payload_vec_init(&v);
	payload_vec_add(&v, block);
	p = image_build_fence_in(&memory, &v, &error);
	assert_int_equal(region_publish_fence_payload(w, p), 0);
	payload_unref(p);
	assert_int_equal(publish_keys(w, "other", 100, "x"), 0);
	assert_true(region_writer_find(w, "key", 3, &value, &len));
	assert_memory_equal(value, "value", 5);
	payload_vec_clear(&v);
	payload_unref(block);
	buf_free(&b);
	region_writer_destroy(w);
}

WRITER_TEST(released_space_is_used_again, REGION_SIZE_MIN)
{
	static const char *const values[] = {"a", "bb"};
	struct payload *image = gather_image(values, 2);
	uint64_t at, kept, len;
	size_t used;

	assert_int_equal(region_publish_gather(w, image->data, image->len, 0,
					       &kept, &len), 0);
	used = region_writer_used(w);
	for (int i = 0; i < 1000; i++) {
		assert_int_equal(region_publish_gather(w, image->data,
						       image->len, 10000, &at,
						       &len), 0);
		assert_non_null(region_writer_bytes(w, at, len));
		region_release(w, at);
		assert_null(region_writer_bytes(w, at, 1));
		region_release(w, at); /* twice does no harm */
	}
	assert_int_equal(region_writer_used(w), used);
	region_release(w, kept + 8); /* nobody's */
	assert_non_null(region_writer_bytes(w, kept, 8));
	payload_unref(image);
}

WRITER_TEST(bytes_are_given_only_where_something_is, REGION_SIZE_MIN)
{
	struct region *r = attach(w);
	size_t size = region_writer_size(w);

	assert_int_equal(publish_keys(w, "k", 1, "v"), 0);
	assert_non_null(region_writer_bytes(w, REGION_HEADER_SIZE, 64));
	assert_null(region_writer_bytes(w, 0, 8));
	assert_null(region_writer_bytes(w, REGION_HEADER_SIZE, 0));
	assert_null(region_writer_bytes(w, REGION_HEADER_SIZE, size));
	assert_null(region_writer_bytes(w, REGION_HEADER_SIZE, UINT64_MAX));
	assert_null(region_writer_bytes(w, UINT64_MAX, 1));
	assert_null(region_writer_bytes(w, size - 8, 8));
	assert_null(region_writer_bytes(w, size, 1));
	assert_non_null(region_bytes(r, size - 8, 8));
	assert_null(region_bytes(r, size - 8, 9));
	assert_null(region_bytes(r, 8, UINT64_MAX - 4));
	assert_null(region_bytes(r, UINT64_MAX, 1));
}

/* ---- free space ---- */

#define UNITS 256

/* Random takes and gives against a map of who has which byte. */
TEST(free_space_is_neither_lost_nor_given_twice)
{
	struct extents e = {0};
	unsigned char taken[UNITS] = {0};
	struct extent held[UNITS];
	size_t nheld = 0;

	srand(1);
	assert_int_equal(extents_give(&e, 0, UNITS), 0);
	for (int step = 0; step < 20000; step++) {
		uint64_t len = 1 + rand() % 20, align = 1u << rand() % 5, at;

		if (rand() % 2 && nheld) {
			struct extent x = held[rand() % nheld];

			for (size_t i = 0; i < nheld; i++)
				if (held[i].offset == x.offset)
					held[i] = held[--nheld];
			memset(taken + x.offset, 0, x.len);
			assert_int_equal(extents_give(&e, x.offset, x.len), 0);
		} else if (extents_take(&e, len, align, &at) == 0) {
			assert_int_equal(at % align, 0);
			assert_true(at + len <= UNITS);
			assert_null(memchr(taken + at, 1, len));
			memset(taken + at, 1, len);
			held[nheld++] = (struct extent){at, len};
		}
		at = rand() % UNITS;
		assert_int_equal(extents_overlap(&e, at, 1), !taken[at]);
	}
	while (nheld) {
		nheld--;
		extents_give(&e, held[nheld].offset, held[nheld].len);
	}
	assert_int_equal(e.count, 1); /* all joined again */
	assert_int_equal(e.items[0].len, UNITS);
	extents_free(&e);
}
