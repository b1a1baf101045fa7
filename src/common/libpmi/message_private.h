/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Definitions that message.c, wire1.c, wire2.c and writer.c share. Contract: message.h.
 */
#pragma once

#include "libpmi/message.h"

/* Forget the fields, keep their memory. */
void message_clear(struct pmi_message *m);
/* Append a field. 0, -EMSGSIZE (PMI_FIELDS_MAX) or -ENOMEM. */
int message_add(struct pmi_message *m, const struct pmi_field *f);

/* Append a value in its wire form. 0, -EINVAL or the errors of buf_append. */
int wire1_put_value(struct buf *b, const char *value, size_t len);
int wire2_put_value(struct buf *b, const char *value, size_t len);

/* Write the length of a body into the header before it. */
void wire2_put_length(char *header, size_t len);
