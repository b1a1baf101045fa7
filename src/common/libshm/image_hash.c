/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The hash of keys and the checksum of images. XXH3 is compiled in from its
 * header: short keys hash faster inlined, and the client library that a job
 * loads depends on no other library.
 */
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "libshm/image_layout.h"

#define CHECKSUM_END \
	(offsetof(struct image_header, checksum) + sizeof(uint64_t))

uint64_t image_hash(const void *key, size_t len)
{
	return XXH3_64bits(key, len);
}

uint64_t image_checksum(const void *image, size_t len)
{
	return XXH3_64bits((const char *)image + CHECKSUM_END,
			   len - CHECKSUM_END);
}
