/* SPDX-License-Identifier: BSD-3-Clause */
/* The shorter form of results, by LZ4 where the build has it. */
#include "config.h" /* HAVE_LZ4 */

#include "libpmi/compress.h"

#include <errno.h>

#ifdef HAVE_LZ4
#include <lz4.h>

#include "libutil/pack.h"

#define LZ4_MATCH_MIN 4 /* bytes, of the format of blocks */

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

/* The length of a run: four bits of the token, and bytes as long as they are full. */
static uint64_t run_length(struct cursor *c, unsigned bits)
{
	uint64_t len = bits;
	uint8_t more = 255;

	for (; bits == 15 && more == 255 && cursor_ok(c); len += more)
		more = unpack_u8(c);
	return len;
}

/*
 * How many bytes a block stands for, without making them: a block is tokens, each
 * with a run of literal bytes and, but for the last, a run that is repeated from
 * what was made so many bytes before. 0: it is none.
 */
static uint64_t unpacked_len(const struct payload *packed)
{
	uint64_t made = 0;
	struct cursor c;

	cursor_init(&c, packed->data, packed->len);
	for (;;) {
		uint8_t token = unpack_u8(&c);
		uint64_t literals = run_length(&c, token >> 4);
		uint16_t back;

		unpack_raw(&c, literals);
		made += literals;
		if (!cursor_ok(&c) || !cursor_left(&c))
			return cursor_ok(&c) ? made : 0;
		back = unpack_u16(&c);
		if (back == 0 || back > made)
			return 0;
		made += run_length(&c, token & 15) + LZ4_MATCH_MIN;
	}
}

struct payload *compress_unpack(const struct payload *packed, uint64_t len,
				const struct image_memory *memory, int *error)
{
	struct payload *raw;
	int got;

	*error = -EPROTO;
	if (!is_possible(packed, len) || unpacked_len(packed) != len)
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
