/* SPDX-License-Identifier: BSD-3-Clause */
/* Bytes and names as texts of JSON, and JSON as text. */
#include "dvm/json/json_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_ROOM ((size_t)4096) /* bytes of most answers and events */

json_t *text_of_bytes(const char *data, size_t len)
{
	char *text = malloc(2 * len + 1);
	size_t n = 0;
	json_t *out;

	for (size_t i = 0; text && i < len; i++) {
		unsigned char byte = (unsigned char)data[i];

		if (byte >= 0x80)
			text[n++] = (char)(0xc0 | byte >> 6);
		text[n++] = (char)(byte < 0x80 ? byte : 0x80 | (byte & 0x3f));
	}
	out = text ? json_stringn(text, n) : NULL;
	free(text);
	return out;
}

/* Text is valid UTF-8, so each first byte has its second. */
static bool take(const unsigned char *text, size_t size, char *data, size_t *len)
{
	for (size_t i = 0; i < size; i++) {
		unsigned char first = text[i];

		if (first >= 0x80 && first != 0xc2 && first != 0xc3)
			return false;
		data[(*len)++] = (char)(first < 0x80 ? first : first << 6 | (text[++i] & 0x3f));
	}
	return *len <= DVM_INPUT_MAX;
}

bool text_take_bytes(json_t *text, char **data, size_t *len)
{
	size_t size = json_string_length(text);

	if (!json_is_string(text) || size > 2 * DVM_INPUT_MAX)
		return false;
	*data = malloc(size + 1);
	*len = 0;
	return *data && take((const void *)json_string_value(text), size, *data, len);
}

json_t *text_of_name(const char *name)
{
	json_t *out = json_string(name);

	return out ? out : text_of_bytes(name, strlen(name));
}

int text_append(struct buf *out, json_t *value)
{
	size_t room, size = FIRST_ROOM;

	do {
		room = size;
		size = buf_reserve(out, room) ? 0 :
		       json_dumpb(value, out->data + out->len, room, JSON_COMPACT);
	} while (size > room);
	out->len += size;
	json_decref(value);
	return size ? 0 : -ENOMEM;
}
