/* SPDX-License-Identifier: BSD-3-Clause */
/* Values of requests, answers and events. */
#include "dvm/cli/json_values.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dvm/cli/die.h"
#include "dvm/cli/task_text.h"
#include "libutil/base64.h"
#include "libutil/decimal.h"

long long get_number(json_t *object, const char *key)
{
	return json_integer_value(json_object_get(object, key));
}

const char *get_text(json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text ? text : "";
}

json_t *make_nulls(size_t count)
{
	json_t *list = json_array();

	while (count--)
		json_array_append_new(list, json_null());
	return list;
}

json_t *user_text(const char *what, const char *word)
{
	json_t *text = json_string(word);
	char *escaped;
	size_t size;
	FILE *to;

	if (text)
		return text;
	to = open_memstream(&escaped, &size);
	if (!to)
		die("out of memory");
	print_text(to, word, strlen(word));
	fclose(to);
	die_usage("%s is not UTF-8 text: %s", what, escaped);
}

json_int_t get_task(const char *text)
{
	uint64_t id;

	if (!decimal_u64(text, 1, INT64_MAX, &id))
		die_usage("\"%s\" is not the number of a task", text);
	return (json_int_t)id;
}

/* JSON itself escapes only the control characters below 0x20. */
void print_json(json_t *value)
{
	char *text = json_dumps(value, JSON_INDENT(1) | JSON_PRESERVE_ORDER);

	if (!text)
		die("out of memory");
	for (const unsigned char *at = (const void *)text; *at; at++)
		if (*at == 0xc2 && at[1] < 0xa0)
			printf("\\u00%02x", *++at);
		else if (*at == 0x7f)
			fputs("\\u007f", stdout);
		else
			putchar(*at);
	putchar('\n');
	free(text);
}

char *get_bytes(json_t *data, size_t *len)
{
	const unsigned char *at = (const void *)json_string_value(data);
	size_t size = json_string_length(data);
	char *bytes = malloc(size + 1);

	if (!bytes)
		die("out of memory");
	*len = 0;
	for (size_t i = 0; i < size; i++) {
		unsigned high = at[i] < 0x80 ? 0 : at[i++];

		bytes[(*len)++] =
			(char)(high ? high << 6 | (at[i] & 0x3f) : at[i]);
	}
	return bytes;
}

char *get_output(json_t *event, size_t *len)
{
	json_t *coded = json_object_get(event, "base64");
	char *bytes;

	if (!coded)
		return get_bytes(json_object_get(event, "data"), len);
	bytes = malloc(json_string_length(coded) + 1);
	if (!bytes)
		die("out of memory");
	*len = base64_decode(get_text(event, "base64"), json_string_length(coded), bytes);
	if (*len == SIZE_MAX)
		die("the DVM sent invalid output");
	return bytes;
}
