/* SPDX-License-Identifier: BSD-3-Clause */
/* Decoded PMI messages: growing the field array, looking fields up. */
#include "libpmi/message.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "libpmi/message_private.h"

#define FIELDS_FIRST_ALLOCATION 16

void pmi_message_init(struct pmi_message *m)
{
	memset(m, 0, sizeof(*m));
}

void pmi_message_free(struct pmi_message *m)
{
	free(m->fields);
	pmi_message_init(m);
}

void message_clear(struct pmi_message *m)
{
	m->count = 0;
	m->mcmd = false;
}

static int grow(struct pmi_message *m)
{
	size_t cap = m->cap ? 2 * m->cap : FIELDS_FIRST_ALLOCATION;
	struct pmi_field *fields;

	fields = realloc(m->fields, cap * sizeof(*fields));
	if (!fields)
		return -ENOMEM;
	m->fields = fields;
	m->cap = cap;
	return 0;
}

int message_add(struct pmi_message *m, const struct pmi_field *f)
{
	int rc;

	if (m->count == PMI_FIELDS_MAX)
		return -EMSGSIZE;
	if (m->count == m->cap) {
		rc = grow(m);
		if (rc)
			return rc;
	}
	m->fields[m->count++] = *f;
	return 0;
}

const char *pmi_message_cmd(const struct pmi_message *m)
{
	const char *key = m->mcmd ? "mcmd" : "cmd";

	if (m->count == 0 || strcmp(m->fields[0].key, key) != 0)
		return NULL;
	return m->fields[0].value;
}

const struct pmi_field *pmi_message_field(const struct pmi_message *m,
					  const char *key)
{
	for (size_t i = 0; i < m->count; i++)
		if (strcmp(m->fields[i].key, key) == 0)
			return &m->fields[i];
	return NULL;
}

const char *pmi_message_str(const struct pmi_message *m, const char *key)
{
	const struct pmi_field *f = pmi_message_field(m, key);

	return f ? f->value : NULL;
}

/* Digits with an optional minus and nothing else, unlike strtol. */
static int parse_int(const char *s, size_t len, int *out)
{
	bool negative = len > 0 && s[0] == '-';
	long long v = 0;
	size_t i = negative;

	if (i == len)
		return -EINVAL;
	for (; i < len; i++) {
		if (s[i] < '0' || s[i] > '9')
			return -EINVAL;
		v = v * 10 + (s[i] - '0');
		if (v > (long long)INT_MAX + 1)
			return -EINVAL;
	}
	if (negative)
		v = -v;
	if (v > INT_MAX)
		return -EINVAL;
	*out = v;
	return 0;
}

int pmi_message_int(const struct pmi_message *m, const char *key, int *out)
{
	const struct pmi_field *f = pmi_message_field(m, key);

	return f ? parse_int(f->value, f->value_len, out) : -ENOENT;
}

int pmi_message_bool(const struct pmi_message *m, const char *key, bool *out)
{
	const char *s = pmi_message_str(m, key);

	if (!s)
		return -ENOENT;
	if (strcasecmp(s, "TRUE") != 0 && strcasecmp(s, "FALSE") != 0)
		return -EINVAL;
	*out = strcasecmp(s, "TRUE") == 0;
	return 0;
}
