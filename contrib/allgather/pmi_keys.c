/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Blocks as keys of plain PMI-2: pieces in hexadecimal, since values are text,
 * the first with the length of the block before it ("1234:00ff...").
 */
#include "pmi_keys.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
	size_t n = piece_len(op->len, offset);
	int at = snprintf(value, sizeof(value), "%zu:", op->len);

	for (size_t i = 0; i < n; i++)
		at += sprintf(value + at, "%02x", bytes[offset + i]);
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

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The bytes of a piece that are wanted; 0 or PMI2_FAIL. */
static int decode(const char *hex, size_t n, char *out, size_t room)
{
	for (size_t i = 0; i < n; i++) {
		int high = hex_digit(hex[2 * i]);
		int low = high < 0 ? -1 : hex_digit(hex[2 * i + 1]);

		if (low < 0)
			return PMI2_FAIL;
		if (i < room)
			out[i] = (char)(high << 4 | low);
	}
	return PMI2_SUCCESS;
}

static int get_piece(struct pmi2x_ring *r, struct op *op, int rank,
		     size_t offset, size_t *len)
{
	char key[PMI2_MAX_KEYLEN], value[PMI2_MAX_VALLEN], *hex;
	size_t room = offset < op->stride ? op->stride - offset : 0;
	int n, rc;

	piece_key(key, r, rank, offset);
	rc = r->pmi.get(NULL, rank, key, value, sizeof(value), &n);
	if (rc)
		return rc;
	*len = strtoul(value, &hex, 10);
	if (*hex != ':' || *len > PMI2X_RING_BLOCK_MAX)
		return PMI2_FAIL;
	return decode(hex + 1, piece_len(*len, offset),
		      op->buffer + rank * op->stride + offset, room);
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
