/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The text form of PMI-1.
 *
 * A line is "key=value key=value ...". A word with no "key=" of its own
 * belongs to the value before it, so that values with spaces survive where
 * the text leaves no doubt. In an mcmd each line is one key and its value.
 */
#include <errno.h>
#include <string.h>

#include "libpmi/message_private.h"

static const char LINE_START[] = "cmd=";
static const char MCMD_START[] = "mcmd=";
static const char MCMD_END[] = "endcmd";

/* True: `data` begins like `start`, as far as both go. */
static bool starts_like(const char *data, size_t len, const char *start)
{
	size_t n = strlen(start);

	return memcmp(data, start, len < n ? len : n) == 0;
}

static bool is_mcmd(const char *data, size_t len)
{
	return len >= strlen(MCMD_START) &&
	       starts_like(data, len, MCMD_START);
}

/* The end of the first line, behind its newline; NULL when it has none. */
static const char *line_end(const char *data, const char *end)
{
	const char *nl = memchr(data, '\n', end - data);

	return nl ? nl + 1 : NULL;
}

static bool is_mcmd_end(const char *line, const char *next)
{
	size_t n = strlen(MCMD_END);

	return (size_t)(next - line) == n + 1 && !memcmp(line, MCMD_END, n);
}

static long mcmd_frame(const char *data, size_t len)
{
	const char *line = data, *end = data + len, *next;

	while (line < end && (next = line_end(line, end))) {
		if (next - data > PMI2_BODY_MAX)
			return -EMSGSIZE;
		if (is_mcmd_end(line, next))
			return next - data;
		line = next;
	}
	return len > PMI2_BODY_MAX ? -EMSGSIZE : 0;
}

long pmi1_frame(const char *data, size_t len)
{
	const char *end;

	if (len == 0)
		return 0;
	if (!starts_like(data, len, LINE_START) &&
	    !starts_like(data, len, MCMD_START))
		return -EPROTO;
	if (is_mcmd(data, len))
		return mcmd_frame(data, len);
	end = line_end(data, data + len);
	if (!end)
		return len > PMI1_LINE_MAX ? -EMSGSIZE : 0;
	return end - data > PMI1_LINE_MAX ? -EMSGSIZE : end - data;
}

/* Split "key=value" of `len` bytes; its last byte + 1 may be overwritten. */
static int add_field(char *at, size_t len, struct pmi_message *m)
{
	char *eq = memchr(at, '=', len);
	struct pmi_field f;

	if (!eq || eq == at)
		return -EPROTO;
	*eq = '\0';
	at[len] = '\0';
	f.key = at;
	f.key_len = eq - at;
	f.value = eq + 1;
	f.value_len = len - f.key_len - 1;
	return message_add(m, &f);
}

static const char *skip_spaces(const char *at, const char *end)
{
	while (at < end && *at == ' ')
		at++;
	return at;
}

static const char *word_end(const char *at, const char *end)
{
	const char *space = memchr(at, ' ', end - at);

	return space ? space : end;
}

/* True: the word begins a field. */
static bool is_pair(const char *word, const char *end)
{
	const char *eq = memchr(word, '=', end - word);

	return eq && eq != word;
}

/* The end of the field that starts at `at`, without trailing spaces. */
static const char *field_end(const char *at, const char *end)
{
	const char *last = word_end(at, end), *word;

	while ((word = skip_spaces(last, end)) < end) {
		const char *stop = word_end(word, end);

		if (is_pair(word, stop))
			break;
		last = stop;
	}
	return last;
}

/* Decode a line of fields; `end` is its newline. */
static int decode_line(char *at, char *end, struct pmi_message *m)
{
	int rc = 0;

	while (!rc && at < end) {
		size_t len = field_end(at, end) - at;
		char *next = at + len;

		next += skip_spaces(next, end) - next;
		rc = add_field(at, len, m);
		at = next;
	}
	return rc;
}

/* `end` is behind the last newline. */
static int decode_mcmd(char *at, char *end, struct pmi_message *m)
{
	int rc = 0;

	m->mcmd = true;
	while (!rc && at < end) {
		size_t len = line_end(at, end) - at;

		if (!is_mcmd_end(at, at + len))
			rc = add_field(at, len - 1, m);
		at += len;
	}
	return rc;
}

int pmi1_decode(char *data, size_t len, struct pmi_message *m)
{
	message_clear(m);
	if (len == 0 || data[len - 1] != '\n' || memchr(data, '\0', len))
		return -EPROTO;
	if (is_mcmd(data, len))
		return decode_mcmd(data, data + len, m);
	if (line_end(data, data + len) != data + len)
		return -EPROTO;
	return decode_line(data, data + len - 1, m);
}

/* Would a reader take a part of the value for a field, or drop its end? */
static bool is_ambiguous(const char *value, size_t len)
{
	const char *at = value, *end = value + len;

	if (len > 0 && value[len - 1] == ' ')
		return true;
	for (at = word_end(at, end); at < end; at = word_end(at, end)) {
		at = skip_spaces(at, end);
		if (is_pair(at, word_end(at, end)))
			return true;
	}
	return false;
}

int wire1_put_value(struct buf *b, const char *value, size_t len)
{
	if (len > 0 && (memchr(value, '\n', len) || memchr(value, '\0', len) ||
			is_ambiguous(value, len)))
		return -EINVAL;
	return buf_append(b, value, len);
}
