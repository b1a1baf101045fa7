/* SPDX-License-Identifier: BSD-3-Clause */
/* Bytes as text that every PMI server carries unharmed. */
#include "text.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libutil/decimal.h"

static const char MARK[] = "%b64:";
#define MARK_LEN (sizeof(MARK) - 1)
#define HEAD_MAX 32               /* bytes of mark, length and colon */
#define BYTES_MAX ((size_t)64 << 20)

static const char DIGITS[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
			     "abcdefghijklmnopqrstuvwxyz0123456789+/";

int text_is_marked(const void *data, size_t len)
{
	return len >= MARK_LEN && !memcmp(data, MARK, MARK_LEN);
}

static bool survives(const unsigned char *data, size_t len)
{
	if (len == 0 || len > TEXT_PIECE || text_is_marked(data, len))
		return false;
	for (size_t i = 0; i < len; i++)
		if (data[i] <= ' ' || data[i] == ';' || data[i] == 0x7f)
			return false;
	return true;
}

static size_t base64_length(size_t len)
{
	return len / 3 * 4 + (len % 3 ? len % 3 + 1 : 0);
}

static void base64_write(char *to, const unsigned char *from, size_t len)
{
	uint32_t bits = 0;
	int have = 0;

	for (size_t i = 0; i < len; i++) {
		bits = bits << 8 | from[i];
		for (have += 8; have >= 6; have -= 6)
			*to++ = DIGITS[bits >> (have - 6) & 63];
	}
	if (have)
		*to++ = DIGITS[bits << (6 - have) & 63];
	*to = '\0';
}

int text_encode(const void *data, size_t len, struct value *out)
{
	char head[HEAD_MAX];
	size_t head_len;
	char *text;

	if (survives(data, len))
		return value_set(out, data, len);
	head_len = snprintf(head, sizeof(head), "%s%zu:", MARK, len);
	text = malloc(head_len + base64_length(len) + 1);
	if (!text)
		return -ENOMEM;
	memcpy(text, head, head_len);
	base64_write(text + head_len, data, len);
	free(out->data);
	out->data = text;
	out->len = head_len + base64_length(len);
	return 0;
}

/* Length of mark, number and colon, and the number; -EPROTO. */
static long read_head(const char *text, size_t *bytes)
{
	const char *at = text + MARK_LEN;
	uint64_t value;

	if (!decimal_take(&at, BYTES_MAX, &value) || *at != ':')
		return -EPROTO;
	*bytes = value;
	return at + 1 - text;
}

long text_length(const char *first, size_t len)
{
	size_t bytes;
	long head;

	if (!text_is_marked(first, len))
		return len;
	head = read_head(first, &bytes);
	return head < 0 ? head : head + (long)base64_length(bytes);
}

static int digit_value(char c)
{
	const char *at = c ? strchr(DIGITS, c) : NULL;

	return at ? (int)(at - DIGITS) : -1;
}

static int base64_read(char *to, const char *from, size_t len)
{
	uint32_t bits = 0;
	int have = 0;

	for (size_t i = 0; i < len; i++) {
		int v = digit_value(from[i]);

		if (v < 0)
			return -EPROTO;
		bits = bits << 6 | v;
		have += 6;
		if (have >= 8) {
			have -= 8;
			*to++ = (char)(bits >> have & 255);
		}
	}
	return 0;
}

int text_decode(struct value *v)
{
	size_t bytes;
	char *data;
	long head;
	int rc;

	if (!text_is_marked(v->data, v->len))
		return 0;
	head = read_head(v->data, &bytes);
	if (head < 0 || v->len != head + base64_length(bytes))
		return -EPROTO;
	data = calloc(1, bytes + 1);
	if (!data)
		return -ENOMEM;
	rc = base64_read(data, v->data + head, v->len - head);
	if (rc) {
		free(data);
		return rc;
	}
	free(v->data);
	v->data = data;
	v->len = bytes;
	return 0;
}
