/* SPDX-License-Identifier: BSD-3-Clause */
/* The length-prefixed form of PMI-2, with doubled ';' in values. */
#include <errno.h>
#include <string.h>

#include "libpmi/message_private.h"

/* The length that six characters say: decimal, padded with spaces. */
static long parse_length(const char *digits)
{
	size_t i = 0, first;
	long n = 0;

	while (i < PMI2_HEADER_LEN && digits[i] == ' ')
		i++;
	first = i;
	for (; i < PMI2_HEADER_LEN && digits[i] >= '0' && digits[i] <= '9'; i++)
		n = n * 10 + (digits[i] - '0');
	if (i == first)
		return -EPROTO;
	while (i < PMI2_HEADER_LEN && digits[i] == ' ')
		i++;
	return i == PMI2_HEADER_LEN ? n : -EPROTO;
}

/* Can these first bytes still become a length? Found out without waiting. */
static bool may_be_length(const char *data, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (data[i] != ' ' && (data[i] < '0' || data[i] > '9'))
			return false;
	return true;
}

long pmi2_frame(const char *data, size_t len)
{
	long body;

	if (len < PMI2_HEADER_LEN)
		return may_be_length(data, len) ? 0 : -EPROTO;
	body = parse_length(data);
	if (body < 0)
		return body;
	if (len - PMI2_HEADER_LEN < (size_t)body)
		return 0;
	return PMI2_HEADER_LEN + body;
}

/*
 * Undo doubled ';' from `at` up to the single ';' that ends the value, and
 * write the NUL. Returns the byte behind that ';'. `end` must be writable.
 */
static char *unescape(char *at, char *end, uint32_t *len)
{
	char *out = at, *start = at;

	while (at < end && !(*at == ';' && (at + 1 == end || at[1] != ';'))) {
		if (*at == ';')
			at++;
		*out++ = *at++;
	}
	*len = out - start;
	*out = '\0';
	return at < end ? at + 1 : end;
}

/* Decode the field at `at`; *next is the start of the following one. */
static int decode_field(char *at, char *end, char **next, struct pmi_message *m)
{
	char *eq = memchr(at, '=', end - at);
	struct pmi_field f;

	if (!eq || eq == at)
		return -EPROTO;
	f.key = at;
	f.key_len = eq - at;
	if (memchr(at, ';', f.key_len) || memchr(at, '\0', f.key_len))
		return -EPROTO;
	*eq = '\0';
	f.value = eq + 1;
	*next = unescape(eq + 1, end, &f.value_len);
	return message_add(m, &f);
}

/* True: a ';' closes the last value, so that its NUL has a place. */
static bool is_closed(const char *body, size_t len)
{
	size_t semicolons = 0;

	while (semicolons < len && body[len - 1 - semicolons] == ';')
		semicolons++;
	return semicolons % 2 == 1;
}

int pmi2_decode(char *data, size_t len, struct pmi_message *m)
{
	char *at = data + PMI2_HEADER_LEN, *end = data + len;
	int rc = 0;

	message_clear(m);
	if (len <= PMI2_HEADER_LEN)
		return -EPROTO;
	if (!is_closed(at, end - at)) {
		/* The header makes room for the NUL of the last value. */
		memmove(at - 1, at, end - at);
		at--;
		end--;
	}
	while (!rc && at < end)
		rc = decode_field(at, end, &at, m);
	return rc;
}

int wire2_put_value(struct buf *b, const char *value, size_t len)
{
	const char *at = value, *end, *semicolon;
	int rc = 0;

	if (len == 0)
		return 0; /* value may be NULL */
	end = value + len;
	while (!rc && at < end && (semicolon = memchr(at, ';', end - at))) {
		rc = buf_append(b, at, semicolon + 1 - at);
		if (!rc)
			rc = buf_append(b, ";", 1);
		at = semicolon + 1;
	}
	if (!rc && at < end)
		rc = buf_append(b, at, end - at);
	return rc;
}

void wire2_put_length(char *header, size_t len)
{
	char digits[PMI2_HEADER_LEN];
	size_t n = 0;

	do {
		digits[n++] = '0' + len % 10;
		len /= 10;
	} while (len && n < sizeof(digits));
	memset(header, ' ', PMI2_HEADER_LEN);
	for (size_t i = 0; i < n; i++)
		header[i] = digits[n - 1 - i];
}
