/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Blocks of records and contributions to a gather: what is accepted makes an
 * image that opens, and every value is found in it again.
 */
#include "fuzz.h"

#include "libshm/image.h"
#include "libshm/records.h"

#define GATHER_MAX 16

/* Blocks of the lengths that the input says. */
static void cut(struct fuzz_input *in, struct payload_vec *blocks)
{
	payload_vec_init(blocks);
	while (in->left) {
		const uint8_t *at;
		size_t len = fuzz_bytes(in, fuzz_u16(in), &at);
		struct payload *p = payload_copy(at, len);

		FUZZ_CHECK(p && !payload_vec_add(blocks, p));
		payload_unref(p);
	}
}

/* The last value of a key counts. */
static void check_key(const struct image *img, const struct record *r)
{
	const char *value = NULL, *last = NULL;
	size_t len = 0, last_len = 0, offset = 0;
	struct record other;

	FUZZ_CHECK(image_find(img, image_hash(r->key, r->key_len), r->key,
			      r->key_len, &value, &len));
	while (image_record(img, &offset, &other)) {
		if (other.key_len != r->key_len ||
		    memcmp(other.key, r->key, r->key_len))
			continue;
		last = other.value;
		last_len = other.value_len;
	}
	FUZZ_CHECK(last && last_len == len && !memcmp(last, value, len));
}

static void fence(const struct payload_vec *blocks)
{
	struct payload *image;
	size_t count = 0, n, offset = 0;
	struct record r;
	struct image img;
	bool good = true;
	int error = 0;

	for (size_t i = 0; i < blocks->count; i++) {
		good &= !records_check(blocks->items[i]->data,
				       blocks->items[i]->len, &n);
		count += n;
	}
	image = image_build_fence(blocks, &error);
	FUZZ_CHECK(!image == !good);
	if (!image)
		return;
	FUZZ_CHECK(!image_open(&img, image->data, image->len));
	FUZZ_CHECK(img.kind == IMAGE_FENCE && img.count <= count);
	for (n = 0; image_record(&img, &offset, &r); n++)
		if (n < 32)
			check_key(&img, &r);
	FUZZ_CHECK(n == count);
	payload_unref(image);
}

static void gather(const struct payload_vec *blocks, uint32_t n)
{
	uint32_t order[GATHER_MAX];
	struct payload *image;
	struct image img;
	int error;

	for (uint32_t i = 0; i < n; i++)
		order[i] = n - 1 - i;
	image = image_build_gather(blocks, n, n % 2 ? order : NULL, &error);
	if (!image)
		return;
	FUZZ_CHECK(!image_open(&img, image->data, image->len));
	FUZZ_CHECK(img.kind == IMAGE_GATHER && img.count == n);
	for (uint32_t r = 0; r < n; r++) {
		size_t len;
		const uint8_t *value = image_gather_value(&img, r, &len);

		FUZZ_CHECK(value >= image->data &&
			   value + len <= image->data + image->len);
	}
	payload_unref(image);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input in = { data, size };
	uint32_t n = fuzz_u8(&in) % (GATHER_MAX + 1);
	struct payload_vec blocks;

	cut(&in, &blocks);
	if (n)
		gather(&blocks, n);
	else
		fence(&blocks);
	payload_vec_clear(&blocks);
	return 0;
}
