/* SPDX-License-Identifier: BSD-3-Clause */
/* Operation of pmi2x bench collectives: PMIX_Ring, and whether neighbours are neighbours. */
#include "bench_rank.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct neighbours {
	int ring_rank;
	char left[BENCH_VALUE_MAX + 1], right[BENCH_VALUE_MAX + 1];
};

static void ring_prepare(struct bench *b)
{
	b->state = bench_alloc(b, sizeof(struct neighbours) * b->rounds);
}

static void ring_round(struct bench *b, int i, struct bench_stamp *stamp)
{
	struct neighbours *n = (struct neighbours *)b->state + i;
	char value[BENCH_VALUE_MAX + 1];
	int size;

	bench_value(b, value, b->rank, i);
	bench_settle(b);
	stamp->in = bench_now();
	bench_check(b, b->pmi.ring(value, &n->ring_rank, &size, n->left,
				   n->right, sizeof(n->left)), "ring");
	stamp->out = bench_now();
	bench_check(b, size == b->size ? PMI2_SUCCESS : PMI2_FAIL,
		    "size of the ring");
}

/* Which rank of the job has that place in the ring of round i. */
static int rank_at(struct bench *b, int place, int i)
{
	char key[PMI2_MAX_KEYLEN], value[PMI2_MAX_VALLEN];
	int len;

	snprintf(key, sizeof(key), "ring-%d-%d", i,
		 (place + b->size) % b->size);
	bench_check(b, b->pmi.get(NULL, PMI2_ID_NULL, key, value,
				  sizeof(value), &len), "get of a ring rank");
	return atoi(value);
}

/* The ring's order is the server's business, so its ranks are exchanged. */
static void ring_check(struct bench *b)
{
	struct neighbours *n = b->state;
	char key[PMI2_MAX_KEYLEN], value[16];

	snprintf(value, sizeof(value), "%d", b->rank);
	for (int i = 0; i < b->rounds; i++) {
		snprintf(key, sizeof(key), "ring-%d-%d", i, n[i].ring_rank);
		bench_check(b, b->pmi.put(key, value), "put of a ring rank");
	}
	bench_check(b, b->pmi.fence(), "fence of ring ranks");
	for (int i = 0; i < b->rounds; i++) {
		bench_compare(b, n[i].left, strlen(n[i].left),
			      rank_at(b, n[i].ring_rank - 1, i), i);
		bench_compare(b, n[i].right, strlen(n[i].right),
			      rank_at(b, n[i].ring_rank + 1, i), i);
	}
}

static const char *ring_lacks(const struct bench_pmi *pmi)
{
	return pmi->ring ? NULL : "PMIX_Ring";
}

const struct bench_op bench_op_ring = {
	.name = "ring", .lacks = ring_lacks, .prepare = ring_prepare,
	.round = ring_round, .check = ring_check,
};
