/* SPDX-License-Identifier: BSD-3-Clause */
/* A journal in a buffer, as a head would write it to a file; and one of version 1. */
#pragma once

#include "dvm/core/journal.h"
#include "libutil/hash.h"

/* Append records that journal_put has made. 0 or a negative errno. */
static inline int append_sealed(struct buf *journal, const void *data, size_t len)
{
	struct journal_chain chain = { .at = journal->len };
	struct journal_reader in;
	struct journal_record r;
	uint32_t version;
	int rc;

	if (!journal_open(&in, journal->data, journal->len, &version))
		while (journal_next(&in, &r))
			;
	chain.sum = in.sum;
	rc = buf_append(journal, data, len);
	if (!rc)
		journal_seal(&chain, journal->data + journal->len - len, len);
	return rc;
}

static inline int put_sealed(struct buf *journal, const struct journal_record *r)
{
	struct buf b;
	int rc;

	buf_init(&b, JOURNAL_RECORD_MAX + 4096);
	rc = journal_put(&b, r);
	rc = rc ? rc : append_sealed(journal, b.data, b.len);
	buf_free(&b);
	return rc;
}

/* The header of version 1, and a record as it was then. 0 or a negative errno. */
static inline int put_header_1(struct buf *journal)
{
	int rc = journal_put_header(journal);

	if (!rc)
		journal->data[journal->len - 4] = 1;
	return rc;
}

static inline int put_1(struct buf *journal, const struct journal_record *r)
{
	const size_t head = 16; /* of version 2 */
	struct buf b;
	int rc;

	buf_init(&b, JOURNAL_RECORD_MAX + 4096);
	rc = journal_put(&b, r);
	if (!rc)
		rc = pack_u32(journal, 0x4a56445f);
	rc = rc ? rc : pack_u32(journal, (uint32_t)(b.len - head));
	rc = rc ? rc : pack_u32(journal, hash_seeded(1, b.data + head, b.len - head));
	rc = rc ? rc : buf_append(journal, b.data + head, b.len - head);
	buf_free(&b);
	return rc;
}
