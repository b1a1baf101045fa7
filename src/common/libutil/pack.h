/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fixed-width little-endian fields, written to a struct buf and read back
 * through a cursor that knows its end.
 *
 * A cursor remembers its first error: reads after it return 0 or NULL and
 * change nothing, so a parser checks cursor_ok() once, at its end.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libutil/buf.h"

/* All return 0 or the error of buf_append. */
int pack_u8(struct buf *b, uint8_t v);
int pack_u16(struct buf *b, uint16_t v);
int pack_u32(struct buf *b, uint32_t v);
int pack_u64(struct buf *b, uint64_t v);
/* A 32-bit length and the bytes. -EMSGSIZE when n does not fit 32 bits. */
int pack_bytes(struct buf *b, const void *data, size_t n);
/* A NUL-terminated string as pack_bytes; NULL travels as the empty string. */
int pack_str(struct buf *b, const char *s);

struct cursor {
	const unsigned char *at;
	const unsigned char *end;
	bool failed;
};

void cursor_init(struct cursor *c, const void *data, size_t n);
bool cursor_ok(const struct cursor *c);   /* no read has failed */
bool cursor_done(const struct cursor *c); /* ok, and nothing is left */
size_t cursor_left(const struct cursor *c);

uint8_t unpack_u8(struct cursor *c);
uint16_t unpack_u16(struct cursor *c);
uint32_t unpack_u32(struct cursor *c);
uint64_t unpack_u64(struct cursor *c);
/* `n` raw bytes inside the input, not copied; NULL on failure. */
const void *unpack_raw(struct cursor *c, size_t n);
/*
 * The counterpart of pack_bytes and pack_str: points into the input; fails over
 * `max`. In what pack_str wrote there may be a NUL all the same: peers are not trusted.
 */
const void *unpack_bytes(struct cursor *c, size_t max, size_t *n);
