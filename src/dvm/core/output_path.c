/* SPDX-License-Identifier: BSD-3-Clause */
/* Names of the files that tasks write to: output_path.h. */
#include "dvm/core/output_path.h"

#include <stdio.h>
#include <string.h>

#define NUMBER_MAX 24 /* bytes of a number as text */

const char *output_path_unknown(const char *path)
{
	for (const char *at = strchr(path, '%'); at; at = strchr(at + 2, '%'))
		if (!at[1] || !strchr("tri%", at[1]))
			return at;
	return NULL;
}

bool output_path_has(const char *path, char what)
{
	for (const char *at = strchr(path, '%'); at && at[1]; at = strchr(at + 2, '%'))
		if (at[1] == what)
			return true;
	return false;
}

/* The number that %c stands for; false: c itself. */
static bool number_of(char out[NUMBER_MAX], char c, const struct output_numbers *n)
{
	unsigned long long number = c == 't' ? n->task : c == 'r' ? n->rank : n->instance;

	snprintf(out, NUMBER_MAX, "%llu", number);
	return c == 't' || c == 'r' || c == 'i';
}

bool output_path_expand(char *out, size_t size, const char *path,
			const struct output_numbers *n)
{
	char number[NUMBER_MAX];
	size_t len = 0, add;

	for (const char *at = path; *at; at++) {
		char c = *at == '%' && at[1] ? *++at : 0;
		const char *text = c && number_of(number, c, n) ? number : at;

		add = text == number ? strlen(number) : 1;
		if (len + add >= size)
			return false;
		memcpy(out + len, text, add);
		len += add;
	}
	out[len] = '\0';
	return true;
}
