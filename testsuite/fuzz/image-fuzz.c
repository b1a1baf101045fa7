/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Images that came over a link: whatever image_open accepts can be read and
 * published. Whatever it refuses a client that believes its header can read
 * without leaving it. The checksum is made right, so that it hides nothing.
 */
#include "fuzz.h"

#include <errno.h>

#include "libshm/image_layout.h"
#include "libshm/records.h"
#include "libshm/region.h"

#define CHANGES_MAX 16
#define IMAGE_BYTES_MAX 4096

static struct payload *real_fence(void)
{
	struct payload_vec blocks;
	struct payload *block, *image;
	struct buf b;
	int error;

	buf_init(&b, IMAGE_BYTES_MAX);
	FUZZ_CHECK(!record_append(&b, "a", 1, "one", 3));
	FUZZ_CHECK(!record_append(&b, "key-2", 5, "two\0two", 7));
	FUZZ_CHECK(!record_append(&b, "a", 1, "", 0));
	FUZZ_CHECK(!record_append(&b, "long", 4, "xxxxxxxxxxxxxxxxxxxx", 20));
	block = payload_copy(b.data, b.len);
	payload_vec_init(&blocks);
	FUZZ_CHECK(block && !payload_vec_add(&blocks, block));
	image = image_build_fence(&blocks, &error);
	payload_vec_clear(&blocks);
	payload_unref(block);
	buf_free(&b);
	return image;
}

static struct payload *real_gather(bool uneven)
{
	struct payload *part, *image;
	struct payload_vec parts;
	int error;

	payload_vec_init(&parts);
	for (uint32_t i = 0; i < 5; i++) {
		part = gather_contribution(NULL, "values", uneven ? i : 4);
		FUZZ_CHECK(part && !payload_vec_add(&parts, part));
		payload_unref(part);
	}
	image = image_build_gather(&parts, 5, NULL, &error);
	payload_vec_clear(&parts);
	return image;
}

/* Bytes of the input, or a real image with a few of them changed. */
static unsigned char *make(struct fuzz_input *in, size_t *len)
{
	uint8_t what = fuzz_u8(in) % 4, changes;
	struct payload *real;
	unsigned char *image;
	const uint8_t *at;

	if (what == 3) {
		*len = fuzz_bytes(in, IMAGE_BYTES_MAX, &at);
		return fuzz_copy(at, *len, 0);
	}
	real = what == 0 ? real_fence() : real_gather(what == 1);
	FUZZ_CHECK(real);
	*len = real->len;
	image = fuzz_copy(real->data, real->len, 0);
	payload_unref(real);
	changes = fuzz_u8(in) % CHANGES_MAX;
	while (changes-- && in->left) {
		size_t where = fuzz_u16(in) % *len;

		image[where] = fuzz_u8(in);
	}
	return image;
}

static void seal(unsigned char *image, size_t len)
{
	struct image_header h;

	if (len < sizeof(h))
		return;
	memcpy(&h, image, sizeof(h));
	h.checksum = image_checksum(image, len);
	memcpy(image, &h, sizeof(h));
}

/* A reader touches all it is given. */
static uint32_t touch(const void *data, size_t len)
{
	const unsigned char *at = data;
	volatile uint32_t sum = 0;

	for (size_t i = 0; i < len; i++)
		sum += at[i];
	return sum;
}

static void read_values(const struct image *img)
{
	uint32_t n = img->count < 64 ? img->count : 64;

	for (uint32_t r = 0; img->kind == IMAGE_GATHER && r < n; r++) {
		size_t len;
		const void *value = image_gather_value(img, r, &len);

		touch(value, len);
	}
}

static void read_records(const struct image *img)
{
	struct record r;
	size_t offset = 0, len;
	const char *value;

	while (image_record(img, &offset, &r)) {
		touch(r.key, r.key_len + 1);
		touch(r.value, r.value_len + 1);
		if (image_find(img, image_hash(r.key, r.key_len), r.key,
			       r.key_len, &value, &len))
			touch(value, len + 1);
	}
	if (image_find(img, image_hash("a", 1), "a", 1, &value, &len))
		touch(value, len + 1);
}

static void publish(const struct image *img, size_t stride)
{
	struct region_writer *w;
	uint64_t offset, bytes;
	const char *value;
	size_t len;
	int rc;

	/* With room for what a record may not claim. */
	FUZZ_CHECK(!region_writer_create(&w, 4 * (size_t)RECORD_VALUE_MAX));
	if (img->kind == IMAGE_FENCE) {
		rc = region_publish_fence(w, img->base, img->len);
		if (!rc && region_writer_find(w, "a", 1, &value, &len)) {
			FUZZ_CHECK(len <= RECORD_VALUE_MAX);
			touch(value, len + 1);
		}
	} else {
		rc = region_publish_gather(w, img->base, img->len, stride,
					   &offset, &bytes);
		if (!rc && bytes)
			touch(region_writer_bytes(w, offset, bytes), bytes);
	}
	FUZZ_CHECK(rc == 0 || rc == -ENOSPC || rc == -EPROTO);
	region_writer_destroy(w);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input in = { data, size };
	uint8_t stride = fuzz_u8(&in);
	unsigned char *image;
	struct image img;
	size_t len;

	image = make(&in, &len);
	seal(image, len);
	if (!image_open_trusted(&img, image, len)) {
		read_values(&img);
		read_records(&img);
	}
	if (!image_open(&img, image, len))
		publish(&img, stride);
	free(image);
	return 0;
}
