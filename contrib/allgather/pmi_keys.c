/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Blocks as keys of plain PMI-2: pieces in hexadecimal, since values are text,
 * the first with the length of the block before it ("1234:00ff...").
 */
#include "pmi_keys.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libutil/hex.h"
#include "pmi2.h"
#include "pmi_gather.h"

#define PIECE_MAX 480 /* bytes of a block in one value */

static void piece_key(char *out, const struct pmi2x_ring *r, int rank,
		      size_t offset)
{
	snprintf(out, PMI2_MAX_KEYLEN, "%s-%u-%u-%d-%zu", r->use.keys,
		 r->use.sequence, r->generation, rank, offset / PIECE_MAX);
}

static size_t piece_len(size_t len, size_t offset)
{
	return len - offset < PIECE_MAX ? len - offset : PIECE_MAX;
}

static int put_piece(struct pmi2x_ring *r, struct op *op, size_t offset)
{
	const unsigned char *bytes = op->block;
	char key[PMI2_MAX_KEYLEN], value[PMI2_MAX_VALLEN];
	int at = snprintf(value, sizeof(value), "%zu:", op->len);

	hex_print(bytes + offset, piece_len(op->len, offset), value + at);
	piece_key(key, r, r->rank, offset);
	return r->pmi.put(key, value);
}

static int put_all(struct pmi2x_ring *r, struct op *op)
{
	size_t offset = 0;
	int rc;

	/* An empty block has one piece, too. */
	do {
		rc = put_piece(r, op, offset);
		offset += PIECE_MAX;
	} while (!rc && offset < op->len);
	return rc;
}

static int get_piece(struct pmi2x_ring *r, struct op *op, int rank,
		     size_t offset, size_t *len)
{
	char key[PMI2_MAX_KEYLEN], value[PMI2_MAX_VALLEN], *hex;
	unsigned char piece[PIECE_MAX];
	size_t n;
	int got, rc;

	piece_key(key, r, rank, offset);
	rc = r->pmi.get(NULL, rank, key, value, sizeof(value), &got);
	if (rc)
		return rc;
	*len = strtoul(value, &hex, 10);
	n = piece_len(*len, offset);
	if (*hex != ':' || *len > PMI2X_RING_BLOCK_MAX ||
	    hex_decode(hex + 1, n, piece))
		return PMI2_FAIL;
	if (offset < op->stride)
		memcpy(op->buffer + rank * op->stride + offset, piece,
		       n < op->stride - offset ? n : op->stride - offset);
	return PMI2_SUCCESS;
}

static int get_block(struct pmi2x_ring *r, struct op *op, int rank)
{
	size_t offset = 0, len = 0;
	int rc;

	do {
		rc = get_piece(r, op, rank, offset, &len);
		offset += PIECE_MAX;
	} while (!rc && offset < len);
	if (rc)
		return rc;
	if (op->lengths)
		op->lengths[rank] = len;
	return op->lengths || len == op->stride ? PMI2_SUCCESS
						: ring_refuse_length(r, op, rank);
}

int pmi_keys_gather(struct pmi2x_ring *r, struct op *op)
{
	int code = put_all(r, op);

	if (!code)
		code = r->pmi.fence();
	for (int i = 0; !code && i < r->size; i++)
		code = get_block(r, op, i);
	r->generation++;
	return code && code != PMI2_ERR_INVALID_VAL_LENGTH
		       ? pmi_gather_fail(r, code) : code;
}
