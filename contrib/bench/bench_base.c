/* SPDX-License-Identifier: BSD-3-Clause */
/* Clocks, computing, memory and errors for all operations of a rank; see bench_rank.h. */
#include "bench_rank.h"

#include <stdio.h>
#include <stdlib.h>

#include "libio/clock.h"

#define COMPUTE_STEPS 10000 /* between two looks at the clock, some 20 us */

double bench_now(void)
{
	return clock_s(CLOCK_MONOTONIC);
}

double bench_cpu_now(void)
{
	return clock_s(CLOCK_THREAD_CPUTIME_ID);
}

void bench_compute(const struct bench *b)
{
	double end = bench_cpu_now() + b->work;
	volatile double x = 1;

	while (bench_cpu_now() < end) {
		for (int i = 0; i < COMPUTE_STEPS; i++)
			x = x * 0.999 + 0.001;
	}
}

void bench_check(const struct bench *b, int rc, const char *what)
{
	if (rc == PMI2_SUCCESS)
		return;
	fprintf(stderr, "pmi2x-bench-rank: rank %d: %s failed with %d\n",
		b->rank, what, rc);
	if (b->pmi.abort)
		b->pmi.abort(1, "pmi2x-bench-rank failed");
	exit(1);
}

void *bench_alloc(const struct bench *b, size_t len)
{
	void *memory = calloc(1, len);

	bench_check(b, memory ? PMI2_SUCCESS : PMI2_ERR_NOMEM, "allocation");
	return memory;
}
