/* SPDX-License-Identifier: BSD-3-Clause */
/* Operation of pmi2x bench collectives: values of other ranks that no fence has published. */
#include "bench_rank.h"

#include <stdint.h>

#define FETCH_SECONDS 0.1 /* of fetches in one round */

static void fetch_prepare(struct bench *b)
{
	for (int i = 0; i < b->rounds; i++)
		bench_put(b, i);
	bench_settle(b);
}

static void fetch_one(struct bench *b, int rank, int i)
{
	char key[PMI2_MAX_KEYLEN], value[BENCH_VALUE_MAX + 1];
	size_t len = sizeof(value) - 1;

	bench_key(key, rank, i);
	bench_check(b, b->pmi.fetch(rank, key, value, &len, -1), "fetch");
	value[len] = '\0';
	bench_compare(b, value, (int)len, rank, i);
}

/* A key of another rank; all ranks fetch at once. */
static int any_other(const struct bench *b, uint32_t *x)
{
	*x = *x * 1664525u + 1013904223u;
	if (b->size == 1)
		return 0;
	return (int)((b->rank + 1 + (*x >> 8) % (b->size - 1)) % b->size);
}

/* Time and CPU time of one. */
static void fetch_round(struct bench *b, int i, struct bench_stamp *stamp)
{
	uint32_t x = b->rank + 1;
	double cpu, begin, end;
	long count = 0;

	bench_await_all(b);
	cpu = bench_cpu_now();
	begin = bench_now();
	do {
		fetch_one(b, any_other(b, &x), i);
		count++;
		end = bench_now();
	} while (end - begin < FETCH_SECONDS);
	stamp->in = 0;
	stamp->out = (end - begin) / count;
	stamp->part = (bench_cpu_now() - cpu) / count;
}

static const char *fetch_lacks(const struct bench_pmi *pmi)
{
	return pmi->fetch ? NULL : "PMIX_KVS_Fetch";
}

const struct bench_op bench_op_fetch = {
	.name = "fetch", .clock = BENCH_EACH, .lacks = fetch_lacks,
	.prepare = fetch_prepare, .round = fetch_round,
};
