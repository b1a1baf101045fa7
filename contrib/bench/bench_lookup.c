/* SPDX-License-Identifier: BSD-3-Clause */
/* Operation of pmi2x bench collectives: look-ups of published keys. */
#include "bench_rank.h"

#include <stdint.h>

#define GET_BATCH 32      /* look-ups between two looks at the clock */
#define GET_SECONDS 0.02  /* of look-ups in one round */

static void get_prepare(struct bench *b)
{
	for (int i = 0; i < b->rounds; i++)
		bench_put(b, i);
	bench_check(b, b->pmi.fence(), "fence");
}

/* Time and CPU time of one look-up, of keys of ranks all over the job. */
static void get_round(struct bench *b, int i, struct bench_stamp *stamp)
{
	uint32_t x = b->rank + 1;
	char value[BENCH_VALUE_MAX + 1];
	double cpu = bench_cpu_now(), begin = bench_now(), end;
	long count = 0;

	do {
		for (int n = 0; n < GET_BATCH; n++) {
			x = x * 1664525u + 1013904223u;
			bench_get(b, (x >> 8) % b->size, i, value);
		}
		count += GET_BATCH;
		end = bench_now();
	} while (end - begin < GET_SECONDS);
	stamp->in = 0;
	stamp->out = (end - begin) / count;
	stamp->part = (bench_cpu_now() - cpu) / count;
}

const struct bench_op bench_op_get = {
	.name = "get", .clock = BENCH_EACH, .prepare = get_prepare,
	.round = get_round, .check = bench_check_all,
};
