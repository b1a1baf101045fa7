/* SPDX-License-Identifier: BSD-3-Clause */
/* Packs and parses the frames of the ring. */
#include "frame.h"

#include <errno.h>
#include <string.h>

static void put(unsigned char *at, uint64_t v, int bytes)
{
	for (int i = 0; i < bytes; i++)
		at[i] = (unsigned char)(v >> (8 * i));
}

static uint64_t get(const unsigned char *at, int bytes)
{
	uint64_t v = 0;

	for (int i = bytes; i-- > 0;)
		v = v << 8 | at[i];
	return v;
}

void frame_pack(const struct frame *f, unsigned char out[FRAME_HEADER_LEN])
{
	memset(out, 0, FRAME_HEADER_LEN);
	put(out, FRAME_MAGIC, 2);
	put(out + 2, f->kind, 1);
	put(out + 4, f->operation, 4);
	put(out + 8, f->chunk.step, 4);
	put(out + 16, f->chunk.total, 8);
	put(out + 24, f->chunk.offset, 8);
}

int frame_parse(struct frame *f, const void *message, size_t len)
{
	const unsigned char *at = message;

	memset(f, 0, sizeof(*f));
	if (len < FRAME_HEADER_LEN || get(at, 2) != FRAME_MAGIC)
		return -EPROTO;
	f->kind = at[2];
	f->operation = get(at + 4, 4);
	f->chunk.step = get(at + 8, 4);
	f->chunk.total = get(at + 16, 8);
	f->chunk.offset = get(at + 24, 8);
	f->bytes = at + FRAME_HEADER_LEN;
	f->len = len - FRAME_HEADER_LEN;
	f->chunk.len = f->len;
	return f->kind == FRAME_CHUNK || f->kind == FRAME_ABORT ? 0 : -EPROTO;
}
