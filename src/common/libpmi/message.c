/* SPDX-License-Identifier: BSD-3-Clause */
/* Decoded PMI messages: growing the field array, looking fields up. */
#include "libpmi/message.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "libpmi/message_private.h"
#include "libutil/array.h"
#include "libutil/decimal.h"

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

int message_add(struct pmi_message *m, const struct pmi_field *f)
{
	int rc;

	if (m->count == PMI_FIELDS_MAX)
		return -EMSGSIZE;
	rc = array_grow(&m->fields, m->count, &m->cap, sizeof(*m->fields));
	if (rc)
		return rc;
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

int pmi_message_int(const struct pmi_message *m, const char *key, int *out)
{
	const struct pmi_field *f = pmi_message_field(m, key);
	const char *end;
	int value;

	if (!f)
		return -ENOENT;
	end = f->value;
	if (!decimal_int(&end, &value) || end != f->value + f->value_len)
		return -EINVAL;
	*out = value;
	return 0;
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
