/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fields of the shared formats at any alignment. The formats are little-endian
 * and are read in place, so a host of the other order cannot use them; their
 * headers carry a mark by which a foreign reader refuses them.
 */
#pragma once

#include <stdint.h>
#include <string.h>

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "libshm reads its little-endian formats in place: this host is not little-endian"
#endif

#define BYTE_ORDER_MARK 0x01020304u

static inline uint32_t load_u32(const void *from)
{
	uint32_t v;

	memcpy(&v, from, sizeof(v));
	return v;
}

static inline void store_u32(void *to, uint32_t v)
{
	memcpy(to, &v, sizeof(v));
}
