/* SPDX-License-Identifier: BSD-3-Clause */
/* Bytes and names as texts of JSON. */
#include "dvm/core/head_private.h"

#include <stdlib.h>
#include <string.h>

json_t *report_bytes(const char *data, size_t len)
{
	char *text = malloc(2 * len + 1);
	json_t *out;
	size_t n = 0;

	if (!text)
		return NULL;
	for (size_t i = 0; i < len; i++) {
		unsigned char byte = (unsigned char)data[i];

		if (byte >= 0x80)
			text[n++] = (char)(0xc0 | byte >> 6);
		text[n++] = (char)(byte < 0x80 ? byte : 0x80 | (byte & 0x3f));
	}
	out = json_stringn(text, n);
	free(text);
	return out;
}

json_t *report_name(const char *name)
{
	json_t *out = json_string(name);

	return out ? out : report_bytes(name, strlen(name));
}
