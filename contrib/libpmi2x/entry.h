/* SPDX-License-Identifier: BSD-3-Clause */
/* Collectives as messages: how a rank enters one over the socket. */
#pragma once

#include "call.h"

/* The messages of one kind of collective. */
struct entry_form {
	const char *command;
	const char *response;
	void (*write)(const struct entry *e, struct pmi_writer *w);
	/* 0, -EPROTO or -ENOMEM. */
	int (*read)(const struct pmi_message *m, struct outcome *out);
};

const struct entry_form *entry_form(enum slot_kind kind);

/* A decimal field. 0; -EPROTO when it is missing or no number. */
int field_u64(const struct pmi_message *m, const char *key, uint64_t *out);
/* Copy a field. 0, -EPROTO when it is missing, or -ENOMEM. */
int field_value(const struct pmi_message *m, const char *key,
		struct value *out);
