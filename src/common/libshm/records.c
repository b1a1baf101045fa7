/* SPDX-License-Identifier: BSD-3-Clause */
/* KVS records: writing them, and reading them from untrusted bytes. */
#include "libshm/records.h"

#include <errno.h>
#include <string.h>

#include "libshm/byteorder.h"

#define RECORD_HEADER 8
#define RECORD_ALIGNMENT 4

/* Bytes of a record whose lengths are within the limits. */
static size_t record_size(size_t key_len, size_t value_len)
{
	size_t n = RECORD_HEADER + key_len + 1 + value_len + 1;

	return (n + RECORD_ALIGNMENT - 1) & ~(size_t)(RECORD_ALIGNMENT - 1);
}

static bool lengths_allowed(size_t key_len, size_t value_len)
{
	return key_len > 0 && key_len <= RECORD_KEY_MAX &&
	       value_len <= RECORD_VALUE_MAX;
}

int record_append(struct buf *b, const void *key, size_t key_len,
		  const void *value, size_t value_len)
{
	size_t size;
	char *at;
	int rc;

	if (!lengths_allowed(key_len, value_len))
		return -EMSGSIZE;
	size = record_size(key_len, value_len);
	rc = buf_reserve(b, size);
	if (rc)
		return rc;
	at = b->data + b->len;
	memset(at + size - RECORD_ALIGNMENT, 0, RECORD_ALIGNMENT);
	store_u32(at, value_len);
	store_u32(at + 4, key_len);
	memcpy(at + RECORD_HEADER, key, key_len);
	at[RECORD_HEADER + key_len] = '\0';
	if (value_len)
		memcpy(at + RECORD_HEADER + key_len + 1, value, value_len);
	b->len += size;
	return 0;
}

/* The NULs behind key and value, and the padding, are as they were written. */
static bool zeros_in_place(const struct record *r, const char *end)
{
	const char *at = r->value + r->value_len;

	if (r->key[r->key_len] != '\0')
		return false;
	while (at < end)
		if (*at++ != '\0')
			return false;
	return true;
}

bool record_at(const void *bytes, size_t left, struct record *out)
{
	const char *at = bytes;

	if (left < RECORD_HEADER)
		return false;
	out->value_len = load_u32(at);
	out->key_len = load_u32(at + 4); /* then a u16 that is zero */
	if (!lengths_allowed(out->key_len, out->value_len) ||
	    record_size(out->key_len, out->value_len) > left)
		return false;
	out->key = at + RECORD_HEADER;
	out->value = out->key + out->key_len + 1;
	return true;
}

int record_next(const void *block, size_t len, size_t *offset,
		struct record *out)
{
	const char *at;
	size_t size;

	if (*offset == len)
		return 0;
	at = (const char *)block + *offset;
	if (*offset > len || !record_at(at, len - *offset, out))
		return -EPROTO;
	size = record_size(out->key_len, out->value_len);
	if (!zeros_in_place(out, at + size))
		return -EPROTO;
	*offset += size;
	return 1;
}

int records_check(const void *block, size_t len, size_t *count)
{
	struct record r;
	size_t offset = 0;
	int rc;

	*count = 0;
	while ((rc = record_next(block, len, &offset, &r)) > 0)
		(*count)++;
	return rc;
}
