/* SPDX-License-Identifier: BSD-3-Clause */
/* Writes messages field by field, in either wire form. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "libpmi/message_private.h"

static const char PMI2_HEADER_SPACE[PMI2_HEADER_LEN + 1] = "      ";

static void append(struct pmi_writer *w, const void *data, size_t len)
{
	if (!w->error)
		w->error = buf_append(w->out, data, len);
}

static void append_value(struct pmi_writer *w, const void *value, size_t len)
{
	if (w->error)
		return;
	if (w->protocol == PMI_PROTOCOL_2)
		w->error = wire2_put_value(w->out, value, len);
	else
		w->error = wire1_put_value(w->out, value, len);
}

/* A key comes from the program or from a field, where it was one word. */
static bool is_key(const char *key)
{
	return key[0] && !strpbrk(key, "=; \n");
}

static void append_field(struct pmi_writer *w, const char *key,
			 const void *value, size_t len)
{
	if (!w->error && !is_key(key))
		w->error = -EINVAL;
	append(w, key, strlen(key));
	append(w, "=", 1);
	append_value(w, value, len);
	if (w->protocol == PMI_PROTOCOL_2)
		append(w, ";", 1);
}

void pmi_write_begin(struct pmi_writer *w, struct buf *out,
		     enum pmi_protocol protocol, const char *cmd)
{
	w->out = out;
	w->protocol = protocol;
	w->start = out->len;
	w->error = 0;
	if (protocol == PMI_PROTOCOL_2)
		append(w, PMI2_HEADER_SPACE, PMI2_HEADER_LEN);
	append_field(w, "cmd", cmd, strlen(cmd));
}

void pmi_write_bytes(struct pmi_writer *w, const char *key, const void *value,
		     size_t len)
{
	if (w->protocol != PMI_PROTOCOL_2)
		append(w, " ", 1);
	append_field(w, key, value, len);
}

void pmi_write_str(struct pmi_writer *w, const char *key, const char *value)
{
	pmi_write_bytes(w, key, value, strlen(value));
}

void pmi_write_int(struct pmi_writer *w, const char *key, long value)
{
	char text[24];

	snprintf(text, sizeof(text), "%ld", value);
	pmi_write_str(w, key, text);
}

void pmi_write_bool(struct pmi_writer *w, const char *key, bool value)
{
	pmi_write_str(w, key, value ? "TRUE" : "FALSE");
}

static void end_pmi2(struct pmi_writer *w)
{
	size_t body = w->out->len - w->start - PMI2_HEADER_LEN;

	if (body > PMI2_BODY_MAX)
		w->error = -EMSGSIZE;
	else
		wire2_put_length(w->out->data + w->start, body);
}

int pmi_write_end(struct pmi_writer *w)
{
	if (w->protocol != PMI_PROTOCOL_2) {
		append(w, "\n", 1);
		if (!w->error && w->out->len - w->start > PMI1_LINE_MAX)
			w->error = -EMSGSIZE;
	} else if (!w->error) {
		end_pmi2(w);
	}
	if (w->error)
		w->out->len = w->start;
	return w->error;
}
