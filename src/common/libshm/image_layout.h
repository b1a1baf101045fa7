/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The bytes of an image. Private to libshm.
 *
 *   fence:  header, index (index.h; references count from the header),
 *           records (records.h)
 *   gather: header, u32 offsets[count + 1] of the values unless all have one
 *           length, values
 *
 * Index, data, and the end of the image are at multiples of IMAGE_ALIGNMENT.
 */
#pragma once

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "libshm/image.h"

#define IMAGE_MAGIC 0x6d693270u /* "p2im" */
#define IMAGE_VERSION 1
#define IMAGE_MAX ((uint64_t)1 << 31) /* bytes of an image */

struct image_header {
	uint32_t magic;
	uint32_t byte_order;  /* BYTE_ORDER_MARK */
	uint64_t checksum;    /* XXH3 of everything behind it */
	uint64_t length;      /* of the whole image, bytes */
	uint16_t version;
	uint16_t kind;
	uint32_t count;       /* records or values */
	uint32_t index_count; /* buckets; or offsets: count + 1 or none */
	uint32_t value_max;   /* gather: the largest length; fence: 0 */
	uint64_t data_len;    /* bytes of records or values */
	uint64_t reserved[2]; /* 0 */
};

static_assert(sizeof(struct image_header) == 64, "fixed by the format");

static inline uint64_t image_align(uint64_t n)
{
	return (n + IMAGE_ALIGNMENT - 1) & ~(uint64_t)(IMAGE_ALIGNMENT - 1);
}

/* The offset of the data of an image with this header. */
uint64_t image_data_start(const struct image_header *h);

/* The checksum of a whole image. */
uint64_t image_checksum(const void *image, size_t len);
