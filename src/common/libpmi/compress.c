/* SPDX-License-Identifier: BSD-3-Clause */
/* The shorter form of results, by LZ4 where the build has it. */
#include "config.h" /* HAVE_LZ4 */

#include "libpmi/compress.h"

#include <errno.h>

#ifdef HAVE_LZ4
#include <lz4.h>

bool compress_available(void)
{
	return true;
}

struct payload *compress_pack(const struct payload *raw)
{
	struct payload *packed, *cut;
	int room, len;

	if (raw->len < COMPRESS_MIN || raw->len > LZ4_MAX_INPUT_SIZE)
		return NULL;
	room = (int)(raw->len - raw->len / COMPRESS_SAVE);
	packed = payload_new(room);
	if (!packed)
		return NULL;
	len = LZ4_compress_default((const char *)raw->data,
				   (char *)packed->data, (int)raw->len, room);
	cut = len > 0 ? payload_resize(packed, len) : NULL;
	if (!cut)
		payload_unref(packed);
	return cut;
}

static bool is_possible(const struct payload *packed, uint64_t len)
{
	return packed->len > 0 && len > packed->len &&
	       len <= LZ4_MAX_INPUT_SIZE &&
	       len / COMPRESS_RATIO_MAX <= packed->len;
}

struct payload *compress_unpack(const struct payload *packed, uint64_t len,
				const struct image_memory *memory, int *error)
{
	struct payload *raw;
	int got;

	*error = -EPROTO;
	if (!is_possible(packed, len))
		return NULL;
	raw = memory->get(memory->arg, len);
	if (!raw) {
		*error = -ENOMEM;
		return NULL;
	}
	got = LZ4_decompress_safe((const char *)packed->data,
				  (char *)raw->data, (int)packed->len,
				  (int)len);
	if (got >= 0 && (uint64_t)got == len)
		return raw;
	payload_unref(raw);
	return NULL;
}

#else

bool compress_available(void)
{
	return false;
}

struct payload *compress_pack(const struct payload *raw)
{
	return NULL;
}

struct payload *compress_unpack(const struct payload *packed, uint64_t len,
				const struct image_memory *memory, int *error)
{
	*error = -ENOTSUP;
	return NULL;
}

#endif
