/* SPDX-License-Identifier: BSD-3-Clause */
/* Checks that must hold for every decoded PMI message. */
#pragma once

#include "fuzz.h"

#include "libpmi/message.h"

/* Fields lie inside the `len` bytes and end with a NUL; look-ups find them. */
static inline void fuzz_message_look(const struct pmi_message *m,
				     const char *bytes, size_t len)
{
	const char *end = bytes + len;
	bool flag;
	int n;

	for (size_t i = 0; i < m->count; i++) {
		const struct pmi_field *f = &m->fields[i];

		FUZZ_CHECK(f->key >= bytes && f->key + f->key_len < end);
		FUZZ_CHECK(f->value >= bytes && f->value + f->value_len < end);
		FUZZ_CHECK(f->key_len == strlen(f->key) && f->key_len);
		FUZZ_CHECK(f->value[f->value_len] == '\0');
		FUZZ_CHECK(pmi_message_field(m, f->key) <= f);
		pmi_message_int(m, f->key, &n);
		pmi_message_bool(m, f->key, &flag);
		if (i == 64)
			break; /* looking up is linear */
	}
	pmi_message_cmd(m);
}

static inline void fuzz_same_fields(const struct pmi_message *a,
				    const struct pmi_message *b)
{
	FUZZ_CHECK(a->count == b->count);
	for (size_t i = 0; i < a->count; i++) {
		const struct pmi_field *f = &a->fields[i], *g = &b->fields[i];

		FUZZ_CHECK(f->key_len == g->key_len &&
			   !memcmp(f->key, g->key, f->key_len));
		FUZZ_CHECK(f->value_len == g->value_len &&
			   !memcmp(f->value, g->value, f->value_len));
	}
}

/* Write the message in a wire form; if that goes, it reads back the same. */
static inline void fuzz_message_rewrite(const struct pmi_message *m,
					enum pmi_protocol protocol)
{
	const char *cmd = pmi_message_cmd(m);
	struct pmi_message again;
	struct pmi_writer w;
	struct buf b;
	int rc;

	if (!cmd || m->mcmd || strlen(cmd) != m->fields[0].value_len)
		return;
	buf_init(&b, (size_t)8 << 20);
	pmi_message_init(&again);
	pmi_write_begin(&w, &b, protocol, cmd);
	for (size_t i = 1; i < m->count; i++)
		pmi_write_bytes(&w, m->fields[i].key, m->fields[i].value,
				m->fields[i].value_len);
	rc = pmi_write_end(&w);
	FUZZ_CHECK(!rc == (b.len > 0));
	if (!rc && protocol == PMI_PROTOCOL_1) {
		FUZZ_CHECK(pmi1_frame(b.data, b.len) == (long)b.len);
		FUZZ_CHECK(!pmi1_decode(b.data, b.len, &again));
		fuzz_same_fields(m, &again);
	} else if (!rc) {
		FUZZ_CHECK(pmi2_frame(b.data, b.len) == (long)b.len);
		FUZZ_CHECK(!pmi2_decode(b.data, b.len, &again));
		fuzz_same_fields(m, &again);
	}
	pmi_message_free(&again);
	buf_free(&b);
}
