/* SPDX-License-Identifier: BSD-3-Clause */
/* Tasks as text for people: task_text.h. */
#include "dvm/cli/task_text.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "dvm/cli/batch_lines.h"
#include "dvm/cli/client.h"
#include "libutil/buf.h"

#define UTF8_MAX 4 /* bytes of a character */
#define COMMAND_SHOWN 100 /* characters */

/* ---- characters ---- */

/* The number of bytes at `at` that are one character of UTF-8; 0: they are none. */
static size_t character(const char *at, size_t len)
{
	for (size_t n = 1; n <= UTF8_MAX && n <= len; n++) {
		json_t *text = json_stringn(at, n);

		json_decref(text);
		if (text)
			return n;
	}
	return 0;
}

/* Control characters of ASCII, and those of ISO 8859 (U+0080 to U+009F). */
static bool is_control(const char *at, size_t n)
{
	const unsigned char *c = (const unsigned char *)at;

	return n == 1 ? *c < 0x20 || *c == 0x7f : n == 2 && *c == 0xc2 && c[1] < 0xa0;
}

/* The number of bytes that were printed. */
static size_t print_character(FILE *to, const char *at, size_t len)
{
	size_t n = character(at, len);

	if (n && !is_control(at, n))
		return fwrite(at, 1, n, to);
	n = n ? n : 1;
	for (size_t i = 0; i < n; i++)
		fprintf(to, "\\x%02x", (unsigned char)at[i]);
	return n;
}

void print_text(FILE *to, const char *text, size_t len)
{
	for (size_t i = 0; i < len;)
		i += print_character(to, text + i, len - i);
}

void print_shortened(FILE *to, const char *text, size_t max)
{
	size_t len = strlen(text), i = 0;

	for (; i < len && max; max--)
		i += print_character(to, text + i, len - i);
	fputs(i < len ? "..." : "", to);
}

/* ---- bytes ---- */

static json_t *escaped(const char *bytes, size_t len)
{
	struct buf b;
	json_t *text;
	size_t n;
	int rc = 0;

	buf_init(&b, 4 * len + 1);
	for (size_t i = 0; i < len; i += n ? n : 1) {
		n = character(bytes + i, len - i);
		rc |= n ? buf_append(&b, bytes + i, n) :
			  buf_printf(&b, "\\x%02x", (unsigned char)bytes[i]);
	}
	text = rc ? NULL : json_stringn(b.len ? b.data : "", b.len);
	buf_free(&b);
	return text;
}

json_t *text_of_output(json_t *bytes)
{
	size_t len;
	char *raw = get_bytes(bytes, &len);
	json_t *text = json_stringn(raw, len);

	if (!text)
		text = escaped(raw, len);
	free(raw);
	if (!text)
		die("out of memory");
	return text;
}

void print_bytes(FILE *to, json_t *bytes)
{
	size_t len;
	char *raw = get_bytes(bytes, &len);

	print_text(to, raw, len);
	free(raw);
}

static void make_text(json_t *task, const char *key)
{
	json_t *bytes = json_object_get(task, key);

	if (bytes)
		json_object_set_new(task, key, text_of_output(bytes));
}

void make_texts(json_t *task)
{
	make_text(task, "out");
	make_text(task, "err");
	make_text(task, "why");
}

/* ---- failures ---- */

void print_how(FILE *to, json_t *task)
{
	int number = (int)get_number(task, "signal");

	if (number)
		fprintf(to, "killed by signal %d (%s)", number, strsignal(number));
	else
		fprintf(to, "exit status %lld", get_number(task, "code"));
}

/* The last line of bytes of the head. */
static void print_last_line(FILE *to, json_t *bytes)
{
	size_t len;
	char *all = get_bytes(bytes, &len), *line;

	while (len && all[len - 1] == '\n')
		len--;
	for (line = all + len; line > all && line[-1] != '\n';)
		line--;
	if (len)
		fputs(": ", to);
	print_text(to, line, len - (size_t)(line - all));
	free(all);
}

void print_reason(FILE *to, json_t *task)
{
	print_last_line(to, json_object_get(task, "why"));
	print_last_line(to, json_object_get(task, "err"));
}

/* ---- commands ---- */

/* A line of a file runs as /bin/sh -c LINE. */
static size_t first_argument(json_t *task, json_t *argv)
{
	return line_of_task(task) && json_array_size(argv) == 3 ? 2 : 0;
}

char *command_of(json_t *task)
{
	json_t *argv = json_object_get(task, "argv"), *each;
	size_t first = first_argument(task, argv), i;
	struct buf b;
	int rc = 0;

	if (!json_is_array(argv))
		return NULL;
	buf_init(&b, SIZE_MAX / 2);
	json_array_foreach(argv, i, each)
		if (i >= first)
			rc |= buf_puts(&b, i > first ? " " : "") |
			      buf_puts(&b, json_is_string(each) ? json_string_value(each) : "?");
	if (json_is_true(json_object_get(task, "argv_cut")))
		rc |= buf_puts(&b, "...");
	if (rc || buf_append(&b, "", 1))
		die("out of memory");
	return b.data;
}

size_t line_of_task(json_t *task)
{
	long long line = get_number(task, "line");

	return (size_t)((line ? line : get_number(task, "number")) & (LINE_RETRY - 1));
}

void print_command(json_t *task)
{
	char *command = command_of(task);

	if (line_of_task(task))
		printf("line %zu: ", line_of_task(task));
	print_shortened(stdout, command ? command : "", COMMAND_SHOWN);
	free(command);
}
