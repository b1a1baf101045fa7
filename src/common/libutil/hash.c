/* SPDX-License-Identifier: BSD-3-Clause */
/* The seeded hash; XXH3 is compiled in from its header. */
#include "libutil/hash.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

uint32_t hash_seeded(uint64_t seed, const void *data, size_t len)
{
	return (uint32_t)XXH3_64bits_withSeed(data, len, seed);
}
