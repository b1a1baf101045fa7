/* SPDX-License-Identifier: BSD-3-Clause */
/* Operations of pmi2x bench collectives: fences of one key a rank. */
#include "bench_rank.h"

#include <stdint.h>
#include <stdio.h>

#define MANY_ROUNDS 10 /* with MANY_BATCH fences in each */
#define MANY_BATCH 10
#define MANY_GETS 32 /* look-ups after each round */

static void timed_fence(struct bench *b, struct bench_stamp *stamp)
{
	stamp->in = bench_now();
	bench_check(b, b->pmi.fence(), "fence");
	stamp->out = bench_now();
}

static void fence_round(struct bench *b, int i, struct bench_stamp *stamp)
{
	bench_put(b, i);
	bench_settle(b);
	timed_fence(b, stamp);
	bench_await_all(b); /* the next put is not of this fence */
}

/* The put counts. */
static void exchange_round(struct bench *b, int i, struct bench_stamp *stamp)
{
	stamp->in = bench_now();
	bench_put(b, i);
	bench_check(b, b->pmi.fence(), "fence");
	stamp->out = bench_now();
}

/* Nothing of PMI may come before it that connects the nodes. */
static void first_round(struct bench *b, int i, struct bench_stamp *stamp)
{
	bench_put(b, i);
	bench_await_all(b); /* else the time includes the launch of the last rank */
	timed_fence(b, stamp);
}

static void ifence_round(struct bench *b, int i, struct bench_stamp *stamp)
{
	PMIX_Request request;
	double called;

	bench_put(b, i);
	bench_settle(b);
	stamp->in = bench_now();
	bench_check(b, b->pmi.ifence(&request), "ifence");
	called = bench_now();
	bench_check(b, b->pmi.wait(request), "wait");
	stamp->out = bench_now();
	stamp->part = called - stamp->in;
	stamp->wait = stamp->out - called;
}

static const char *ifence_lacks(const struct bench_pmi *pmi)
{
	return pmi->ifence && pmi->wait ? NULL : "PMIX_KVS_Ifence";
}

/* CPU time of one look-up among all that has been put so far. */
static double look_up(struct bench *b, int puts)
{
	uint32_t x = b->rank + 1;
	char value[BENCH_VALUE_MAX + 1];
	double cpu = bench_cpu_now();

	for (int n = 0; n < MANY_GETS; n++) {
		x = x * 1664525u + 1013904223u;
		bench_get(b, (x >> 8) % b->size, (x >> 4) % puts, value);
	}
	return (bench_cpu_now() - cpu) / MANY_GETS;
}

/* Fences in a row, one key each; the look-ups after them may not get slower. */
static void many_round(struct bench *b, int i, struct bench_stamp *stamp)
{
	int last = (i + 1) * MANY_BATCH;

	bench_check(b, b->pmi.fence(), "fence before a batch");
	stamp->in = bench_now();
	for (int n = i * MANY_BATCH; n < last; n++) {
		bench_put(b, n);
		bench_check(b, b->pmi.fence(), "fence");
	}
	stamp->out = stamp->in + (bench_now() - stamp->in) / MANY_BATCH;
	stamp->part = look_up(b, last);
}

static void many_check(struct bench *b)
{
	bench_check_rounds(b, MANY_ROUNDS * MANY_BATCH);
}

const struct bench_op bench_op_fence = {
	.name = "fence", .round = fence_round, .check = bench_check_all,
};
const struct bench_op bench_op_exchange = {
	.name = "exchange", .round = exchange_round, .check = bench_check_all,
};
const struct bench_op bench_op_first = {
	.name = "first", .once = true, .round = first_round,
	.check = bench_check_all,
};
const struct bench_op bench_op_ifence = {
	.name = "ifence", .lacks = ifence_lacks, .round = ifence_round,
	.check = bench_check_all,
};
const struct bench_op bench_op_many = {
	.name = "many", .clock = BENCH_EACH, .rounds = MANY_ROUNDS,
	.round = many_round, .check = many_check,
};
