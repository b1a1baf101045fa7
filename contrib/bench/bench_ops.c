/* SPDX-License-Identifier: BSD-3-Clause */
/* The operations that pmi2x-bench times: one table, and what is in it. */
#include "bench_rank.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define GET_BATCH 32      /* look-ups between two looks at the clock */
#define GET_SECONDS 0.02  /* of look-ups in one round */

static void put_value(struct bench *b, int i)
{
	char key[PMI2_MAX_KEYLEN], value[BENCH_VALUE_MAX + 1];

	bench_key(key, b->rank, i);
	bench_value(b, value, b->rank, i);
	bench_check(b, b->pmi.put(key, value), "put");
}

/* Returns the length of the value. */
static int get_value(struct bench *b, int rank, int i, char *value)
{
	char key[PMI2_MAX_KEYLEN];
	int len = -1;

	bench_key(key, rank, i);
	bench_check(b, b->pmi.get(NULL, rank, key, value, BENCH_VALUE_MAX + 1,
				  &len), "get");
	return len;
}

static void check_value(struct bench *b, int rank, int i)
{
	char value[BENCH_VALUE_MAX + 1];
	int len = get_value(b, rank, i, value);

	bench_compare(b, value, len, rank, i);
}

static void check_all(struct bench *b)
{
	for (int r = 0; r < b->size; r++) {
		if (b->rank != 0 && r % b->share != b->rank % b->share)
			continue;
		for (int i = 0; i < b->rounds; i++)
			check_value(b, r, i);
	}
}

/* ---- fence, first, ifence ---- */

static void fence_round(struct bench *b, int i, struct bench_stamp *stamp)
{
	put_value(b, i);
	stamp->in = bench_now();
	bench_check(b, b->pmi.fence(), "fence");
	stamp->out = bench_now();
}

static void ifence_round(struct bench *b, int i, struct bench_stamp *stamp)
{
	PMIX_Request request;

	put_value(b, i);
	stamp->in = bench_now();
	bench_check(b, b->pmi.ifence(&request), "ifence");
	stamp->part = bench_now() - stamp->in;
	bench_check(b, b->pmi.wait(request), "wait");
	stamp->out = bench_now();
}

static const char *ifence_lacks(const struct bench_pmi *pmi)
{
	return pmi->ifence && pmi->wait ? NULL : "PMIX_KVS_Ifence";
}

/* ---- allgather, iallgather ---- */

struct gathered {
	int *lengths;
	char *values; /* slots of bytes + 1 */
};

static char *slot_of(struct bench *b, int rank)
{
	struct gathered *g = b->state;

	return g->values + (size_t)rank * (b->bytes + 1);
}

static void allgather_prepare(struct bench *b)
{
	size_t numbers = sizeof(int) * b->size;
	struct gathered *g = bench_alloc(b, sizeof(*g) + numbers +
					 (size_t)b->size * (b->bytes + 1));

	g->lengths = (int *)(g + 1);
	g->values = (char *)(g + 1) + numbers;
	b->state = g;
}

/* What a client without the extension has to do for the same result. */
static void gather_by_get(struct bench *b, int i)
{
	struct gathered *g = b->state;

	put_value(b, i);
	bench_check(b, b->pmi.fence(), "fence");
	for (int r = 0; r < b->size; r++) {
		char value[BENCH_VALUE_MAX + 1];

		g->lengths[r] = get_value(b, r, i, value);
		memcpy(slot_of(b, r), value, b->bytes + 1);
	}
}

/*
 * Values live for a round only, so each round is checked, and a fence keeps
 * the next one from being entered while others still check.
 */
static void check_gathered(struct bench *b, int i)
{
	struct gathered *g = b->state;

	for (int r = 0; r < b->size; r++)
		bench_compare(b, slot_of(b, r), g->lengths[r], r, i);
	memset(g->values, 0, (size_t)b->size * (b->bytes + 1));
	bench_check(b, b->pmi.fence(), "fence");
}

static void allgather_round(struct bench *b, int i, struct bench_stamp *stamp)
{
	struct gathered *g = b->state;
	char value[BENCH_VALUE_MAX + 1];

	bench_value(b, value, b->rank, i);
	stamp->in = bench_now();
	if (b->pmi.allgather)
		bench_check(b, b->pmi.allgather(value, b->bytes, g->values,
						b->bytes + 1, g->lengths),
			    "allgather");
	else
		gather_by_get(b, i);
	stamp->out = bench_now();
	check_gathered(b, i);
}

static void iallgather_round(struct bench *b, int i, struct bench_stamp *stamp)
{
	struct gathered *g = b->state;
	char value[BENCH_VALUE_MAX + 1];
	PMIX_Request request;

	bench_value(b, value, b->rank, i);
	stamp->in = bench_now();
	bench_check(b, b->pmi.iallgather(value, b->bytes, g->values,
					 b->bytes + 1, g->lengths, &request),
		    "iallgather");
	stamp->part = bench_now() - stamp->in;
	bench_check(b, b->pmi.wait(request), "wait");
	stamp->out = bench_now();
	check_gathered(b, i);
}

static const char *iallgather_lacks(const struct bench_pmi *pmi)
{
	return pmi->iallgather && pmi->wait ? NULL : "PMIX_Iallgather_n";
}

/* ---- ring ---- */

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

/* ---- init, iinit ---- */

/* What an MPI_Init does: everything published, the neighbours looked up. */
static void init_round(struct bench *b, int i, struct bench_stamp *stamp)
{
	stamp->in = b->begin;
	put_value(b, i);
	bench_check(b, b->pmi.fence(), "fence");
	check_value(b, (b->rank + 1) % b->size, i);
	check_value(b, (b->rank + b->size - 1) % b->size, i);
	stamp->out = bench_now();
}

/* An MPI_Init that returns while the exchange is under way. */
static void iinit_round(struct bench *b, int i, struct bench_stamp *stamp)
{
	struct gathered *g = b->state;
	char value[BENCH_VALUE_MAX + 1];
	PMIX_Request request;

	stamp->in = b->begin;
	bench_value(b, value, b->rank, i);
	bench_check(b, b->pmi.iallgather(value, b->bytes, g->values,
					 b->bytes + 1, g->lengths, &request),
		    "iallgather");
	stamp->out = bench_now();
	bench_check(b, b->pmi.wait(request), "wait");
	check_gathered(b, i);
}

/* ---- get ---- */

static double cpu_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return ts.tv_sec + ts.tv_nsec * 1e-9;
}

static void get_prepare(struct bench *b)
{
	for (int i = 0; i < b->rounds; i++)
		put_value(b, i);
	bench_check(b, b->pmi.fence(), "fence");
}

/* Time and CPU time of one look-up, of keys of ranks all over the job. */
static void get_round(struct bench *b, int i, struct bench_stamp *stamp)
{
	uint32_t x = b->rank + 1;
	char value[BENCH_VALUE_MAX + 1];
	double cpu = cpu_now(), begin = bench_now(), end;
	long count = 0;

	do {
		for (int n = 0; n < GET_BATCH; n++) {
			x = x * 1664525u + 1013904223u;
			get_value(b, (x >> 8) % b->size, i, value);
		}
		count += GET_BATCH;
		end = bench_now();
	} while (end - begin < GET_SECONDS);
	stamp->in = 0;
	stamp->out = (end - begin) / count;
	stamp->part = (cpu_now() - cpu) / count;
}

static const struct bench_op ops[] = {
	{ .name = "fence", .round = fence_round, .check = check_all },
	{ .name = "first", .once = true, .round = fence_round,
	  .check = check_all },
	{ .name = "ifence", .round = ifence_round, .check = check_all,
	  .lacks = ifence_lacks },
	{ .name = "allgather", .prepare = allgather_prepare,
	  .round = allgather_round },
	{ .name = "iallgather", .prepare = allgather_prepare,
	  .round = iallgather_round, .lacks = iallgather_lacks },
	{ .name = "ring", .prepare = ring_prepare, .round = ring_round,
	  .check = ring_check, .lacks = ring_lacks },
	{ .name = "init", .once = true, .round = init_round,
	  .check = check_all },
	{ .name = "iinit", .once = true, .prepare = allgather_prepare,
	  .round = iinit_round, .lacks = iallgather_lacks },
	{ .name = "get", .each = true, .prepare = get_prepare,
	  .round = get_round, .check = check_all },
};

const struct bench_op *bench_op_find(const char *name)
{
	for (size_t i = 0; i < sizeof(ops) / sizeof(*ops); i++) {
		if (strcmp(ops[i].name, name) == 0)
			return &ops[i];
	}
	return NULL;
}

void bench_op_list(void)
{
	for (size_t i = 0; i < sizeof(ops) / sizeof(*ops); i++)
		puts(ops[i].name);
}
