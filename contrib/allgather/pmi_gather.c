/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Allgather over PMIX_Iallgather_n. One round does for blocks that PMI takes
 * whole. When some block is longer, which its first piece shows to everybody, a
 * round of lengths follows, and rounds for the rest.
 */
#include "pmi_gather.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pmi2.h"
#include "pmi2x.h"
#include "pmi_keys.h"
#include "pmi_library.h"

#define FIRST_MAX PMI2X_MAX_VALLEN /* a first piece of it: more follows */
#define REST_MAX 65536             /* of each further piece */

enum round { ROUND_FIRST, ROUND_LENGTHS, ROUND_REST };

struct pmi_gather {
	enum round round;
	uint64_t request;
	int *got;          /* lengths of a round */
	uint64_t *lengths; /* of all blocks, uncut */
	char *pieces;      /* of a round */
	int piece_max;
	uint64_t offset;   /* of the pieces in their blocks */
	uint64_t longest;
};

void pmi_gather_free(struct op *op)
{
	struct pmi_gather *g = op->pmi;

	if (!g)
		return;
	free(g->got);
	free(g->lengths);
	free(g->pieces);
	free(g);
	op->pmi = NULL;
}

int pmi_gather_fail(struct pmi2x_ring *r, int code)
{
	char words[PMI2X_RING_ERROR_MAX];

	if (!pmi_refusal(&r->pmi, words, sizeof(words)))
		snprintf(words, sizeof(words), "error %d", code);
	ring_fail(r, "rank %d on node %s: allgather over PMI failed: %s",
		  r->rank, r->node, words);
	return PMI2_FAIL;
}

static int no_memory(struct pmi2x_ring *r)
{
	ring_fail(r, "rank %d on node %s: no memory for an allgather over PMI",
		  r->rank, r->node);
	return PMI2_FAIL;
}

static int start_round(struct pmi2x_ring *r, struct pmi_gather *g,
		       const void *piece, size_t len, int piece_max)
{
	char *pieces = realloc(g->pieces, (size_t)r->size * piece_max);
	int code;

	if (!pieces)
		return no_memory(r);
	g->pieces = pieces;
	g->piece_max = piece_max;
	code = r->pmi.iallgather(len ? piece : "", (int)len, pieces, piece_max,
				 g->got, &g->request);
	return code ? pmi_gather_fail(r, code) : PMI_GATHER_AGAIN;
}

/* The first round knows only what this process gives and wants. */
static int start_first(struct pmi2x_ring *r, struct op *op)
{
	size_t len = op->len < FIRST_MAX ? op->len : FIRST_MAX;
	size_t want = op->stride < FIRST_MAX ? op->stride : FIRST_MAX;

	return start_round(r, op->pmi, op->block, len, want ? (int)want : 1);
}

int pmi_gather_start(struct pmi2x_ring *r, struct op *op)
{
	struct pmi_gather *g;

	if (!r->pmi.iallgather || !r->pmi.wait || !r->pmi.test)
		return pmi_keys_gather(r, op);
	g = op->pmi = calloc(1, sizeof(*g));
	if (g) {
		g->got = calloc(r->size, sizeof(*g->got));
		g->lengths = calloc(r->size, sizeof(*g->lengths));
	}
	if (!g || !g->got || !g->lengths)
		return no_memory(r);
	return start_first(r, op);
}

/* ---- between rounds ---- */

/* Copy the pieces of a round to their places. */
static void place(struct pmi2x_ring *r, struct op *op)
{
	struct pmi_gather *g = op->pmi;

	for (int i = 0; i < r->size && g->offset < op->stride; i++) {
		size_t n = g->got[i] < g->piece_max ? g->got[i] : g->piece_max;

		if (n > op->stride - g->offset)
			n = op->stride - g->offset;
		memcpy(op->buffer + i * op->stride + g->offset,
		       g->pieces + (size_t)i * g->piece_max, n);
	}
}

static int finish(struct pmi2x_ring *r, struct op *op)
{
	for (int i = 0; i < r->size; i++) {
		uint64_t len = op->pmi->lengths[i];

		if (op->lengths)
			op->lengths[i] = len;
		if (!op->lengths && len != op->stride)
			return ring_refuse_length(r, op, i);
	}
	return PMI2_SUCCESS;
}

static int start_rest(struct pmi2x_ring *r, struct op *op)
{
	struct pmi_gather *g = op->pmi;
	size_t left = op->len > g->offset ? op->len - g->offset : 0;

	if (g->offset >= g->longest)
		return finish(r, op);
	g->round = ROUND_REST;
	return start_round(r, g, (const char *)op->block + op->len - left,
			   left < REST_MAX ? left : REST_MAX, REST_MAX);
}

static int after_first(struct pmi2x_ring *r, struct op *op)
{
	struct pmi_gather *g = op->pmi;
	uint64_t len = op->len;
	bool more = false;

	place(r, op);
	for (int i = 0; i < r->size; i++) {
		g->lengths[i] = g->got[i];
		more |= g->got[i] == FIRST_MAX;
	}
	if (!more)
		return finish(r, op);
	g->round = ROUND_LENGTHS;
	return start_round(r, g, &len, sizeof(len), sizeof(len));
}

static int after_lengths(struct pmi2x_ring *r, struct op *op)
{
	struct pmi_gather *g = op->pmi;

	memcpy(g->lengths, g->pieces, r->size * sizeof(*g->lengths));
	for (int i = 0; i < r->size; i++)
		if (g->lengths[i] > g->longest)
			g->longest = g->lengths[i];
	g->offset = FIRST_MAX;
	return start_rest(r, op);
}

static int after_round(struct pmi2x_ring *r, struct op *op)
{
	switch (op->pmi->round) {
	case ROUND_FIRST: return after_first(r, op);
	case ROUND_LENGTHS: return after_lengths(r, op);
	default:
		place(r, op);
		op->pmi->offset += REST_MAX;
		return start_rest(r, op);
	}
}

int pmi_gather_step(struct pmi2x_ring *r, struct op *op, bool wait)
{
	int flag = 1;
	int code = wait ? r->pmi.wait(op->pmi->request)
			: r->pmi.test(op->pmi->request, &flag);

	if (code)
		return pmi_gather_fail(r, code);
	return flag ? after_round(r, op) : PMI_GATHER_AGAIN;
}
