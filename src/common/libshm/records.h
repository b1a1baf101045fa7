/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * KVS records: the bytes that ranks contribute to a fence.
 *
 * A record is, little-endian and packed to a multiple of 4 bytes:
 *   u32 value length, u16 key length, u16 zero, key, NUL, value, NUL, padding.
 * The NULs let a reader use key and value as strings in place; both may hold
 * any bytes. A block of records is records end to end. Pure functions.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libutil/buf.h"

#define RECORD_KEY_MAX 1024          /* bytes */
#define RECORD_VALUE_MAX (1u << 20)  /* bytes */

struct record {
	const char *key;
	const char *value;
	uint32_t key_len;
	uint32_t value_len;
};

/* 0, -EMSGSIZE (key or value over its limit, or key empty), -ENOBUFS, -ENOMEM. */
int record_append(struct buf *b, const void *key, size_t key_len,
		  const void *value, size_t value_len);

/*
 * The record that the `left` bytes begin with, as far as its lengths are within
 * the limits and within those bytes; what lies around key and value is not
 * looked at. False: there is none. For who has a place from an index.
 */
bool record_at(const void *bytes, size_t left, struct record *out);

/*
 * Read the record at *offset of a block and move *offset behind it. 1 for a
 * record, 0 at the end, -EPROTO for anything that record_append cannot have
 * written. Safe on hostile bytes.
 */
int record_next(const void *block, size_t len, size_t *offset,
		struct record *out);

/* Check a whole block and count its records. 0 or -EPROTO. */
int records_check(const void *block, size_t len, size_t *count);
