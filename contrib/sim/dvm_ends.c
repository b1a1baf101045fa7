/* SPDX-License-Identifier: BSD-3-Clause */
/* A reader of compact JSON, for one event: nothing is copied. */
#include "dvm_ends.h"

#include <stdlib.h>
#include <string.h>

#define FIRST "{\"ev\":\"ended\",\"tasks\":["

bool dvm_ends_begin(struct dvm_ends *e, const char *line)
{
	bool is = !strncmp(line, FIRST, strlen(FIRST));

	e->at = is ? line + strlen(FIRST) : "";
	return is;
}

/* Behind the text that begins here. */
static const char *skip_text(const char *c)
{
	for (c++; *c && *c != '"'; c++)
		c += *c == '\\' && c[1];
	return c + (*c == '"');
}

/* Behind the value that begins here: its comma, or the end of what it is in. */
static const char *skip_value(const char *c)
{
	size_t depth = 0;

	while (*c && (depth || (*c != ',' && *c != '}' && *c != ']'))) {
		if (*c == '"') {
			c = skip_text(c);
			continue;
		}
		depth += *c == '{' || *c == '[';
		depth -= *c == '}' || *c == ']';
		c++;
	}
	return c;
}

static bool is_key(const char *key, size_t len, const char *name)
{
	return len == strlen(name) && !memcmp(key, name, len);
}

static void read_times(const char *c, double t[4])
{
	for (int i = 0; i < 4 && (*c == '[' || *c == ','); i++) {
		char *end;

		t[i] = strtod(c + 1, &end);
		c = end;
	}
}

static void read_value(const char *key, size_t len, const char *c, struct dvm_end *out)
{
	if (is_key(key, len, "id"))
		out->id = strtoull(c, NULL, 10);
	else if (is_key(key, len, "instance"))
		out->instance = strtoull(c, NULL, 10);
	else if (is_key(key, len, "code"))
		out->code = strtoll(c, NULL, 10);
	else if (is_key(key, len, "t"))
		read_times(c, out->t);
}

bool dvm_ends_next(struct dvm_ends *e, struct dvm_end *out)
{
	const char *c = e->at + (*e->at == ',');

	*out = (struct dvm_end){ 0 };
	if (*c != '{')
		return false;
	do {
		const char *key = c + 2, *value;

		if (c[1] != '"')
			return false;
		value = skip_text(c + 1);
		if (*value != ':')
			return false;
		read_value(key, (size_t)(value - 1 - key), value + 1, out);
		c = skip_value(value + 1);
	} while (*c == ',');
	e->at = c + (*c == '}');
	return *c == '}';
}
