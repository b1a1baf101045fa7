/* SPDX-License-Identifier: BSD-3-Clause */
/* Writes the requests of collectives, reads their responses. */
#include "entry.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "libpmi/extension.h"
#include "libutil/decimal.h"

#define OFFSET_DIGITS 21 /* of a 64-bit number, and a comma */

int field_u64(const struct pmi_message *m, const char *key, uint64_t *out)
{
	const char *text = pmi_message_str(m, key);

	return text && decimal_u64(text, 0, UINT64_MAX, out) ? 0 : -EPROTO;
}

int field_value(const struct pmi_message *m, const char *key,
		struct value *out)
{
	const struct pmi_field *f = pmi_message_field(m, key);

	return f ? value_set(out, f->value, f->value_len) : -EPROTO;
}

static void write_fence(const struct entry *e, struct pmi_writer *w)
{
	pmi_write_bytes(w, EXT_KEY_RECORDS, e->data, e->len);
}

static int read_fence(const struct pmi_message *m, struct outcome *out)
{
	return 0;
}

static void write_gather(const struct entry *e, struct pmi_writer *w)
{
	char done[ENTRY_DONE_MAX * OFFSET_DIGITS + 1];
	size_t used = 0;

	pmi_write_bytes(w, EXT_KEY_VALUE, e->data, e->len);
	pmi_write_int(w, EXT_KEY_STRIDE, e->stride);
	for (size_t i = 0; i < e->ndone; i++)
		used += snprintf(done + used, sizeof(done) - used,
				 "%s%" PRIu64, i ? "," : "", e->done[i]);
	if (used)
		pmi_write_bytes(w, EXT_KEY_DONE, done, used);
}

static int read_gather(const struct pmi_message *m, struct outcome *out)
{
	int rc = field_u64(m, EXT_KEY_OFFSET, &out->offset);

	return rc ? rc : field_u64(m, EXT_KEY_LENGTH, &out->length);
}

static void write_ring(const struct entry *e, struct pmi_writer *w)
{
	pmi_write_int(w, "ring-count", 1);
	pmi_write_bytes(w, "ring-left", e->data, e->len);
	pmi_write_bytes(w, "ring-right", e->data, e->len);
}

/* Slurm's stock plugin does not tell the size. */
static int read_ring(const struct pmi_message *m, struct outcome *out)
{
	struct ring_place *at = &out->place;
	int rc;

	if (pmi_message_int(m, "ring-count", &at->rank))
		return -EPROTO;
	(void)pmi_message_int(m, "ring-size", &at->size);
	rc = field_value(m, "ring-left", &at->left);
	return rc ? rc : field_value(m, "ring-right", &at->right);
}

static const struct entry_form forms[SLOT_KINDS] = {
	[SLOT_FENCE] = { EXT_CMD_FENCE, EXT_CMD_FENCE "-response",
			 write_fence, read_fence },
	[SLOT_GATHER] = { EXT_CMD_ALLGATHER, EXT_CMD_ALLGATHER "-response",
			  write_gather, read_gather },
	[SLOT_RING] = { "ring", "ring-response", write_ring, read_ring },
};

const struct entry_form *entry_form(enum slot_kind kind)
{
	return &forms[kind];
}
