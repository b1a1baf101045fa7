/* SPDX-License-Identifier: BSD-3-Clause */
/* Images: what goes in comes out, and hostile images are refused. */
#include "unit.h"

#include <errno.h>
#include <stdio.h>

#include "libshm/image.h"
#include "libshm/image_layout.h"
#include "libshm/index.h"
#include "libshm/records.h"

/* Add `n` records "<prefix><i>" = "<value><i>" as one block. */
static void add_block(struct payload_vec *v, const char *prefix,
		      const char *value, int n)
{
	struct payload *p;
	struct buf b;
	char k[64], x[64];

	buf_init(&b, 1 << 24);
	for (int i = 0; i < n; i++) {
		int kn = snprintf(k, sizeof(k), "%s%d", prefix, i);
		int xn = snprintf(x, sizeof(x), "%s%d", value, i);

		assert_int_equal(record_append(&b, k, kn, x, xn), 0);
	}
	p = payload_copy(b.data, b.len);
	assert_int_equal(payload_vec_add(v, p), 0);
	payload_unref(p);
	buf_free(&b);
}

static struct payload *build_fence(struct payload_vec *v)
{
	int error = 0;
	struct payload *p = image_build_fence(v, &error);

	assert_int_equal(error, 0);
	assert_non_null(p);
	payload_vec_clear(v);
	return p;
}

static void check_key(const struct image *img, const char *key,
		      const char *expected)
{
	const char *value;
	size_t len;

	if (!image_find(img, image_hash(key, strlen(key)), key, strlen(key),
			&value, &len))
		fail_msg("%s is not found", key);
	assert_int_equal(len, strlen(expected));
	assert_string_equal(value, expected);
}

static bool has_key(const struct image *img, const char *key)
{
	const char *value;
	size_t len;

	return image_find(img, image_hash(key, strlen(key)), key, strlen(key),
			  &value, &len);
}

TEST(fence_finds_every_key_and_no_other)
{
	struct payload_vec v;
	struct payload *p;
	struct image img;
	struct record r;
	char k[32], x[32];
	size_t at = 0;
	uint32_t n = 0;

	payload_vec_init(&v);
	add_block(&v, "a", "x", 3000);
	add_block(&v, "b", "y", 1);
	add_block(&v, "c", "z", 2000);
	p = build_fence(&v);
	assert_int_equal(image_open(&img, p->data, p->len), 0);
	assert_int_equal(img.kind, IMAGE_FENCE);
	assert_int_equal(img.count, 5001);
	for (int i = 0; i < 3000; i++) {
		snprintf(k, sizeof(k), "a%d", i);
		snprintf(x, sizeof(x), "x%d", i);
		check_key(&img, k, x);
	}
	check_key(&img, "c1999", "z1999");
	assert_false(has_key(&img, "a3000"));
	assert_false(has_key(&img, ""));
	while (image_record(&img, &at, &r))
		n++;
	assert_int_equal(n, 5001);
	payload_unref(p);
}

TEST(later_duplicates_win)
{
	struct payload_vec v;
	struct payload *p;
	struct image img;

	payload_vec_init(&v);
	add_block(&v, "k", "old", 100);
	add_block(&v, "k", "new", 50);
	p = build_fence(&v);
	assert_int_equal(image_open(&img, p->data, p->len), 0);
	check_key(&img, "k7", "new7");
	check_key(&img, "k77", "old77");
	payload_unref(p);
}

TEST(an_empty_fence_has_no_keys)
{
	struct payload_vec v;
	struct payload *p;
	struct image img;

	payload_vec_init(&v);
	p = build_fence(&v);
	assert_int_equal(image_open(&img, p->data, p->len), 0);
	assert_int_equal(img.count, 0);
	assert_false(has_key(&img, "a"));
	payload_unref(p);
}

TEST(an_image_reads_at_any_alignment)
{
	struct payload_vec v;
	struct payload *p;
	struct image img;

	payload_vec_init(&v);
	add_block(&v, "k", "v", 10);
	p = build_fence(&v);
	for (size_t shift = 0; shift < 8; shift++) {
		unsigned char *copy = malloc(p->len + shift);

		memcpy(copy + shift, p->data, p->len);
		assert_int_equal(image_open(&img, copy + shift, p->len), 0);
		check_key(&img, "k3", "v3");
		free(copy);
	}
	payload_unref(p);
}

TEST(malformed_blocks_fail_the_build)
{
	struct payload_vec v;
	struct payload *bad = payload_copy("\1\0\0\0\1\0\0\0k\0v", 11);
	struct payload *empty = payload_virtual(12);
	int error = 0;

	payload_vec_init(&v);
	add_block(&v, "k", "v", 10);
	payload_vec_add(&v, bad);
	assert_null(image_build_fence(&v, &error));
	assert_int_equal(error, -EPROTO);
	payload_vec_clear(&v);
	payload_vec_add(&v, empty);
	error = 0;
	assert_null(image_build_fence(&v, &error));
	assert_int_equal(error, -EPROTO);
	payload_vec_clear(&v);
	payload_unref(bad);
	payload_unref(empty);
}

/* ---- keys that collide ---- */

#define KEYS 1000
#define BUCKETS 2048 /* of an image of KEYS keys */

/* Keys that an index of BUCKETS puts into one bucket, or any keys. */
static struct payload *keys_build(bool collide, int *error)
{
	struct payload_vec v;
	struct payload *p, *image;
	struct buf b;
	char key[16];

	buf_init(&b, 1 << 20);
	for (int i = 0, n = 0; n < KEYS; i++) {
		int len = snprintf(key, sizeof(key), "%d", i);

		if (collide && image_hash(key, len) % BUCKETS != 7)
			continue;
		assert_int_equal(record_append(&b, key, len, "v", 1), 0);
		n++;
	}
	p = payload_copy(b.data, b.len);
	payload_vec_init(&v);
	assert_int_equal(payload_vec_add(&v, p), 0);
	image = image_build_fence(&v, error);
	payload_vec_clear(&v);
	payload_unref(p);
	buf_free(&b);
	return image;
}

TEST(keys_chosen_to_collide_fail_the_build)
{
	int error = 0;
	struct payload *image = keys_build(false, &error);

	assert_non_null(image);
	payload_unref(image);
	assert_null(keys_build(true, &error));
	assert_int_equal(error, -EKEYREJECTED);
}

/* The cost of a put, counted: two keys in one bucket take three looks. */
TEST(an_index_counts_its_steps)
{
	unsigned char table[8 * INDEX_BUCKET] = {0};
	char base[64] = {0};
	const struct index ix = {table, 8, (unsigned char *)base, sizeof(base)};
	uint64_t steps = 0;

	assert_true(index_put(&ix, table, 5, 2, &steps));
	assert_int_equal(steps, 1);
	assert_true(index_put(&ix, table, 5 + 8, 4, &steps));
	assert_int_equal(steps, 3);
}

/* ---- gather ---- */

static void add_value(struct payload_vec *v, const void *value, size_t len)
{
	struct payload *p = gather_contribution(NULL, value, len);

	assert_non_null(p);
	assert_int_equal(p->len % 4, 0);
	assert_int_equal(payload_vec_add(v, p), 0);
	payload_unref(p);
}

static struct payload *build_gather(struct payload_vec *v, uint32_t n,
				    const uint32_t *order)
{
	int error = 0;
	struct payload *p = image_build_gather(v, n, order, &error);

	assert_int_equal(error, 0);
	assert_non_null(p);
	payload_vec_clear(v);
	return p;
}

static void check_value(const struct image *img, uint32_t rank,
			const char *expected)
{
	size_t len;
	const void *value = image_gather_value(img, rank, &len);

	assert_int_equal(len, strlen(expected));
	assert_memory_equal(value, expected, len);
}

TEST(gather_of_one_length_has_no_offsets)
{
	const uint32_t order[] = {2, 0, 1};
	struct payload_vec v;
	struct payload *p;
	struct image img;
	size_t len;

	payload_vec_init(&v);
	add_value(&v, "two!!", 5);
	add_value(&v, "zero!", 5);
	add_value(&v, "one!!", 5);
	p = build_gather(&v, 3, order);
	assert_int_equal(image_open(&img, p->data, p->len), 0);
	assert_int_equal(img.count, 3);
	check_value(&img, 0, "zero!");
	check_value(&img, 1, "one!!");
	check_value(&img, 2, "two!!");
	assert_memory_equal(image_gather_even(&img, &len), "zero!one!!two!!",
			    15);
	assert_int_equal(len, 5);
	assert_int_equal(p->len, sizeof(struct image_header) + 16);
	payload_unref(p);
}

TEST(gather_of_any_lengths_keeps_rank_order)
{
	const uint32_t order[] = {1, 3, 0, 2};
	struct payload_vec v;
	struct payload *p, *joined;
	struct image img;

	payload_vec_init(&v);
	add_value(&v, "one", 3);
	add_value(&v, "three three", 11);
	joined = payload_vec_join(&v); /* a subtree sends several as one */
	payload_vec_clear(&v);
	payload_vec_add(&v, joined);
	payload_unref(joined);
	add_value(&v, "", 0);
	add_value(&v, "tw", 2);
	p = build_gather(&v, 4, order);
	assert_int_equal(image_open(&img, p->data, p->len), 0);
	check_value(&img, 0, "");
	check_value(&img, 1, "one");
	check_value(&img, 2, "tw");
	check_value(&img, 3, "three three");
	payload_unref(p);
}

TEST(gather_without_bytes)
{
	struct payload_vec v;
	struct payload *p;
	struct image img;

	payload_vec_init(&v);
	add_value(&v, "", 0);
	add_value(&v, "", 0);
	p = build_gather(&v, 2, NULL);
	assert_int_equal(image_open(&img, p->data, p->len), 0);
	check_value(&img, 1, "");
	payload_unref(p);
	p = build_gather(&v, 0, NULL);
	assert_int_equal(image_open(&img, p->data, p->len), 0);
	assert_int_equal(img.count, 0);
	payload_unref(p);
}

TEST(wrong_contributions_fail_the_build)
{
	static const char *const bad[] = {"\5\0\0\0abcd", "\xff\xff\xff\xff" "abcd",
					  "\3\0\0\0abc"};
	static const size_t lens[] = {8, 8, 7};
	struct payload_vec v;
	int error = 0;

	payload_vec_init(&v);
	for (int i = 0; i < 3; i++) {
		struct payload *p = payload_copy(bad[i], lens[i]);

		payload_vec_add(&v, p);
		payload_unref(p);
		assert_null(image_build_gather(&v, 1, NULL, &error));
		assert_int_equal(error, -EPROTO);
		payload_vec_clear(&v);
	}
	add_value(&v, "x", 1);
	assert_null(image_build_gather(&v, 2, NULL, &error));
	assert_int_equal(error, -EPROTO);
	assert_null(image_build_gather(&v, 0, NULL, &error));
	assert_int_equal(error, -EPROTO);
	payload_vec_clear(&v);
	assert_null(gather_contribution(NULL, "", RECORD_VALUE_MAX + 1));
}

/* ---- hostile images ---- */

static struct payload *small_image(enum image_kind kind)
{
	struct payload_vec v;

	payload_vec_init(&v);
	if (kind == IMAGE_FENCE) {
		add_block(&v, "key", "value", 3);
		return build_fence(&v);
	}
	add_value(&v, "one", 3);
	add_value(&v, "three", 5);
	return build_gather(&v, 2, NULL);
}

/* Use everything in an image, so that a sanitizer sees what is not inside. */
static void read_all(const struct image *img)
{
	struct record r;
	size_t at = 0, len;
	volatile size_t sum = 0;

	if (img->kind == IMAGE_FENCE) {
		has_key(img, "key1");
		has_key(img, "absent");
		while (image_record(img, &at, &r))
			sum += strlen(r.value);
		return;
	}
	for (uint32_t i = 0; i < img->count; i++) {
		const char *value = image_gather_value(img, i, &len);

		for (size_t j = 0; j < len; j++)
			sum += value[j];
	}
}

static void restore_checksum(unsigned char *bytes, size_t len)
{
	uint64_t sum = image_checksum(bytes, len);

	memcpy(bytes + offsetof(struct image_header, checksum), &sum, 8);
}

/* A rank believes its agent, but leaves no image for it. */
TEST(offsets_that_lie_lead_nowhere)
{
	static const uint32_t lies[] = { 9, 4096, UINT32_MAX };
	struct payload *p = small_image(IMAGE_GATHER);
	unsigned char *copy = malloc(p->len);
	struct image img;
	size_t len;

	for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
		memcpy(copy, p->data, p->len);
		memcpy(copy + sizeof(struct image_header) + 4, &lies[i], 4);
		assert_int_equal(image_open_trusted(&img, copy, p->len), 0);
		for (uint32_t r = 0; r < 2; r++) {
			const unsigned char *value =
				image_gather_value(&img, r, &len);

			assert_true(value >= copy && value <= copy + p->len);
			assert_true(len <= (size_t)(copy + p->len - value));
		}
	}
	free(copy);
	payload_unref(p);
}

static void flip_every_bit(enum image_kind kind)
{
	struct payload *p = small_image(kind);
	struct image img;

	for (size_t bit = 0; bit < 8 * p->len; bit++) {
		unsigned char *copy = malloc(p->len);

		memcpy(copy, p->data, p->len);
		copy[bit / 8] ^= 1 << bit % 8;
		assert_int_equal(image_open(&img, copy, p->len), -EPROTO);
		/* A liar computes the checksum of what he sends. */
		restore_checksum(copy, p->len);
		if (image_open(&img, copy, p->len) == 0)
			read_all(&img);
		free(copy);
	}
	payload_unref(p);
}

TEST(flipped_bits_are_refused_or_harmless)
{
	flip_every_bit(IMAGE_FENCE);
	flip_every_bit(IMAGE_GATHER);
}

/* Every u32 of header and index set to values that liars like. */
static void set_every_word(enum image_kind kind)
{
	static const uint32_t words[] = {0, 1, 2, 16, 0x7fffffff, 0x80000000,
					 0x20000000, 0xffffffff};
	struct payload *p = small_image(kind);
	struct image img;

	for (size_t at = 16; at + 4 <= p->len; at += 4)
		for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
			unsigned char *copy = malloc(p->len);

			memcpy(copy, p->data, p->len);
			memcpy(copy + at, &words[i], 4);
			restore_checksum(copy, p->len);
			if (image_open(&img, copy, p->len) == 0)
				read_all(&img);
			free(copy);
		}
	payload_unref(p);
}

TEST(lying_words_are_refused_or_harmless)
{
	set_every_word(IMAGE_FENCE);
	set_every_word(IMAGE_GATHER);
}

TEST(truncations_are_refused)
{
	for (int kind = IMAGE_FENCE; kind <= IMAGE_GATHER; kind++) {
		struct payload *p = small_image(kind);
		struct image img;

		for (size_t cut = 0; cut < p->len; cut++) {
			unsigned char *copy = malloc(cut ? cut : 1);

			memcpy(copy, p->data, cut);
			assert_int_equal(image_open(&img, copy, cut), -EPROTO);
			assert_int_equal(image_open_trusted(&img, copy, cut),
					 -EPROTO);
			free(copy);
		}
		payload_unref(p);
	}
}

/* An index without an empty bucket would make a look-up probe forever. */
TEST(a_full_index_is_refused)
{
	struct payload *p = small_image(IMAGE_FENCE);
	struct image_header h;
	struct index_entry used = {0, 0};
	struct image img;

	memcpy(&h, p->data, sizeof(h));
	for (uint32_t i = 0; i < h.index_count && !used.ref; i++)
		memcpy(&used, p->data + sizeof(h) + i * sizeof(used),
		       sizeof(used));
	for (uint32_t i = 0; i < h.index_count; i++)
		memcpy(p->data + sizeof(h) + i * sizeof(used), &used,
		       sizeof(used));
	restore_checksum(p->data, p->len);
	assert_int_equal(image_open(&img, p->data, p->len), -EPROTO);
	payload_unref(p);
}

/* Byte at which the reference of the first used bucket lies. */
static size_t first_reference(const struct payload *p)
{
	size_t at = sizeof(struct image_header) + INDEX_BUCKET / 2;
	uint32_t ref;

	for (;; at += INDEX_BUCKET) {
		memcpy(&ref, p->data + at, sizeof(ref));
		if (ref)
			return at;
	}
}

/* References that lead before the records, behind them, or far out. */
TEST(a_reference_out_of_the_records_is_refused)
{
	struct payload *p = small_image(IMAGE_FENCE);
	size_t at = first_reference(p);
	struct image_header h;
	struct image img;
	uint64_t start;

	memcpy(&h, p->data, sizeof(h));
	start = image_data_start(&h);
	const uint32_t refs[] = {
		1, start / INDEX_UNIT - 1,
		(start + h.data_len + INDEX_UNIT - 1) / INDEX_UNIT, UINT32_MAX,
	};

	for (size_t i = 0; i < sizeof(refs) / sizeof(refs[0]); i++) {
		memcpy(p->data + at, &refs[i], sizeof(refs[i]));
		restore_checksum(p->data, p->len);
		assert_int_equal(image_open(&img, p->data, p->len), -EPROTO);
	}
	payload_unref(p);
}

/* For who has no bytes: the same as what is built. */
TEST(lengths_are_known_without_bytes)
{
	static const char value[40];
	int error;

	for (int n = 0; n < 40; n++) {
		struct payload_vec v;
		struct payload *p;
		uint64_t bytes;

		payload_vec_init(&v);
		add_block(&v, "key", "value", n);
		bytes = v.bytes;
		p = build_fence(&v);
		assert_int_equal(image_fence_len(n, bytes), p->len);
		payload_unref(p);
		for (int i = 0; i < n; i++) {
			p = gather_contribution(NULL, value, n);
			payload_vec_add(&v, p);
			payload_unref(p);
		}
		p = image_build_gather(&v, n, NULL, &error);
		assert_int_equal(image_gather_len(n, n * n), p->len);
		payload_unref(p);
		payload_vec_clear(&v);
	}
	assert_int_equal(image_fence_len(1, IMAGE_MAX), 0);
	assert_int_equal(image_fence_len(UINT64_MAX, 1), 0);
	assert_int_equal(image_gather_len(1, UINT64_MAX), 0);
}
