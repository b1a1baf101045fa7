/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Images: the position-independent results of a collective, built once at the
 * root, sent down unparsed, and read in place by every rank.
 *
 * A fence image is: header, hash index, records (records.h). A gather image
 * is: header, offsets (absent when all values have one length), values in rank
 * order. Little-endian, fixed widths, 8-byte aligned, with an XXH3 checksum in
 * the header. An image that came over a link is untrusted: image_open checks
 * the checksum, the header and the index; where a record ends, the reader checks.
 *
 * Pure functions over memory; readers take no lock and make no system call.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libutil/payload.h"

#define IMAGE_ALIGNMENT 8

enum image_kind { IMAGE_FENCE = 1, IMAGE_GATHER = 2 };

/* An image in memory that has been checked. Does not own the bytes. */
struct image {
	const unsigned char *base;
	size_t len;
	enum image_kind kind;
	uint32_t count; /* records of a fence, values of a gather */
	/* The rest of the header, read once: see image_layout.h. */
	uint32_t index_count;
	uint32_t value_max;
	uint64_t checksum;
	const unsigned char *data;
	uint64_t data_len;
};

/* The hash by which fence images and merged indexes find keys (XXH3, 64 bit). */
uint64_t image_hash(const void *key, size_t len);

/*
 * Build a fence image from blocks of records in tree order. If two records have one key,
 * image_find gives the later; image_record gives both. One reference; NULL and *error =
 * -EPROTO (a block is malformed), -EFBIG (over 2 GiB), -EKEYREJECTED (the keys collide,
 * which is no accident) or -ENOMEM.
 */
struct payload *image_build_fence(const struct payload_vec *blocks, int *error);

/*
 * How long the image is that the builders make: of `count` records in blocks of
 * `bytes` in all; of `n` values of one length, `bytes` in all. 0: over 2 GiB.
 * For who plans or simulates and has no bytes.
 */
uint64_t image_fence_len(uint64_t count, uint64_t bytes);
uint64_t image_gather_len(uint32_t n, uint64_t bytes);

/*
 * Memory for an image of the builders: a new payload of `len` bytes, or NULL. With NULL in
 * place of this, payload_new is used.
 */
struct image_memory {
	struct payload *(*get)(void *arg, size_t len);
	void *arg;
};

/* As above, built in memory of the caller's choice. */
struct payload *image_build_fence_in(const struct image_memory *memory,
				     const struct payload_vec *blocks,
				     int *error);

/*
 * A rank's contribution to a gather: u32 length, the bytes, padding to 4. One reference, or
 * NULL: no memory, or over RECORD_VALUE_MAX. With NULL for value, the caller writes the
 * bytes at GATHER_VALUE.
 */
#define GATHER_VALUE(p) ((p)->data + 4)
struct payload *gather_contribution(struct budget *budget, const void *value,
				    size_t len);

/*
 * Build a gather image from `n` contributions in tree order; `order[i]`, a
 * permutation of 0..n-1, is the rank of the i-th (NULL: rank i). Errors as
 * above; -EPROTO also when there are not exactly n contributions.
 */
struct payload *image_build_gather(const struct payload_vec *blocks, uint32_t n,
				   const uint32_t *order, int *error);

struct payload *image_build_gather_in(const struct image_memory *memory,
				      const struct payload_vec *blocks,
				      uint32_t n, const uint32_t *order,
				      int *error);

/* Check an image; verify the checksum too. 0 or -EPROTO. */
int image_open(struct image *img, const void *bytes, size_t len);

/*
 * Trust an image that image_open has accepted before in this node (a rank that
 * reads what its agent published): reads the header only, and once. 0 or -EPROTO.
 */
int image_open_trusted(struct image *img, const void *bytes, size_t len);

/* Find a key (with its image_hash). False when the image has no such key. */
bool image_find(const struct image *img, uint64_t hash, const void *key,
		size_t key_len, const char **value, size_t *value_len);

/*
 * The value of rank r (< img->count) of a gather image; inside it, also when
 * only image_open_trusted has seen the image.
 */
const void *image_gather_value(const struct image *img, uint32_t r,
			       size_t *len);
/* All values side by side, if they have one length; else NULL. */
const void *image_gather_even(const struct image *img, size_t *len);

/*
 * Walk the records of a fence image in tree order: the one at *offset (0 at
 * first), which is moved behind it. False at the end, or at what is no record.
 */
struct record;
bool image_record(const struct image *img, size_t *offset, struct record *out);
