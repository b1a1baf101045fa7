/* SPDX-License-Identifier: BSD-3-Clause */
/* The hashes; XXH3 is compiled in from its header. */
#include "libutil/hash.h"

#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

uint32_t hash_seeded(uint64_t seed, const void *data, size_t len)
{
	return (uint32_t)XXH3_64bits_withSeed(data, len, seed);
}

void hash_name(unsigned char out[HASH_NAME_SIZE], const void *data, size_t len)
{
	XXH128_canonical_t bytes;

	XXH128_canonicalFromHash(&bytes, XXH3_128bits(data, len));
	memcpy(out, bytes.digest, HASH_NAME_SIZE);
}
