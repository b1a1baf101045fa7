/* SPDX-License-Identifier: BSD-3-Clause */
/* Images with the keys and values of the look-up study. */
#include "lookup.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libshm/image.h"
#include "libshm/records.h"

/* Odd, so that words of one value differ and no two versions share one. */
#define WORD_STEP 0x9e3779b97f4a7c15u

static uint64_t word_of(uint32_t key, uint32_t version, uint32_t i)
{
	return ((uint64_t)version << 32 | key) + i * WORD_STEP;
}

void value_write(unsigned char *value, uint32_t bytes, uint32_t key,
		 uint32_t version)
{
	for (uint32_t i = 0; i < bytes / sizeof(uint64_t); i++) {
		uint64_t word = word_of(key, version, i);

		memcpy(value + i * sizeof(word), &word, sizeof(word));
	}
}

int64_t value_check(const unsigned char *value, uint32_t bytes, uint32_t key)
{
	uint64_t first, word, wrong = 0;

	memcpy(&first, value, sizeof(first));
	for (uint32_t i = 1; i < bytes / sizeof(uint64_t); i++) {
		memcpy(&word, value + i * sizeof(word), sizeof(word));
		wrong |= word ^ (first + i * WORD_STEP);
	}
	wrong |= (uint32_t)first ^ key;
	return wrong ? -1 : (int64_t)(first >> 32);
}

static int build(struct buf *records, void **image, size_t *len)
{
	struct payload *p = payload_copy(records->data, records->len), *built;
	struct payload_vec blocks;
	int rc = -ENOMEM;

	payload_vec_init(&blocks);
	if (!p || payload_vec_add(&blocks, p)) {
		payload_unref(p);
		return rc;
	}
	payload_unref(p);
	built = image_build_fence(&blocks, &rc);
	payload_vec_clear(&blocks);
	if (!built)
		return rc;
	*len = built->len;
	*image = malloc(built->len);
	if (*image)
		memcpy(*image, built->data, built->len);
	payload_unref(built);
	return *image ? 0 : -ENOMEM;
}

static int append(struct buf *b, const struct lookup_store *s, uint32_t key,
		  const unsigned char *value)
{
	return record_append(b, s->keys[key], strlen(s->keys[key]), value,
			     s->options->bytes);
}

int image_of(const struct lookup_store *s, void **image, size_t *len)
{
	const struct lookup_options *o = s->options;
	unsigned char *value = malloc(o->bytes);
	struct buf records;
	int rc = value ? 0 : -ENOMEM;

	buf_init(&records, SIZE_MAX);
	for (uint32_t key = 0; !rc && key < o->keys; key++) {
		value_write(value, o->bytes, key, 0);
		rc = append(&records, s, key, value);
	}
	rc = rc ? rc : build(&records, image, len);
	buf_free(&records);
	free(value);
	return rc;
}

int image_of_one(const struct lookup_store *s, uint32_t key,
		 const unsigned char *value, void **image, size_t *len)
{
	struct buf records;
	int rc;

	buf_init(&records, SIZE_MAX);
	rc = append(&records, s, key, value);
	rc = rc ? rc : build(&records, image, len);
	buf_free(&records);
	return rc;
}
