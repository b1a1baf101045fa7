/* SPDX-License-Identifier: BSD-3-Clause */
/* Bytes as text of 64 characters: base64.h. */
#include "libutil/base64.h"

#include <stdint.h>
#include <string.h>

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

static void encode_group(const unsigned char *in, size_t n, char out[4])
{
	uint32_t group = (uint32_t)in[0] << 16 | (n > 1 ? (uint32_t)in[1] << 8 : 0) |
			 (n > 2 ? in[2] : 0);

	for (int i = 0; i < 4; i++)
		out[i] = digits[group >> (18 - 6 * i) & 63];
	if (n < 3)
		out[3] = '=';
	if (n < 2)
		out[2] = '=';
}

void base64_encode(const void *data, size_t n, char *out)
{
	const unsigned char *in = data;

	for (; n >= 3; n -= 3, in += 3, out += 4)
		encode_group(in, 3, out);
	if (n)
		encode_group(in, n, out);
}

/* The value of each digit, plus 1. */
static void fill_values(uint8_t values[256])
{
	memset(values, 0, 256);
	for (uint8_t i = 0; i < 64; i++)
		values[(unsigned char)digits[i]] = (uint8_t)(i + 1);
}

/* Bytes of a group of four characters; 0: it is none. Padding has the value 0. */
static size_t decode_group(const uint8_t values[256], const char *text, unsigned char out[3])
{
	size_t n = text[3] != '=' ? 3 : text[2] != '=' ? 2 : 1;
	uint32_t group = 0;

	for (size_t i = 0; i < 4; i++) {
		uint8_t value = i <= n ? values[(unsigned char)text[i]] : 1;

		if (!value)
			return 0;
		group = group << 6 | (uint32_t)(value - 1);
	}
	for (size_t i = 0; i < n; i++)
		out[i] = (unsigned char)(group >> (16 - 8 * i));
	return n;
}

size_t base64_decode(const char *text, size_t len, void *out)
{
	uint8_t values[256];
	unsigned char *at = out;
	size_t n = 3;

	if (len % 4)
		return SIZE_MAX;
	fill_values(values);
	for (; len; len -= 4, text += 4, at += n) {
		if (n < 3 || !(n = decode_group(values, text, at)))
			return SIZE_MAX;
	}
	return (size_t)(at - (unsigned char *)out);
}
