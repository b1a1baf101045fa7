/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Operations of pmi2x bench collectives: how much of an exchange is hidden behind a
 * computation. A round has three stamps: the exchange alone (blocking), the
 * computation alone, and the exchange started, computation, completion. All
 * ranks compute, for the same amount of CPU time each.
 */
#include "bench_gather.h"

enum phase { EXCHANGE, COMPUTE, BOTH, PHASES };

static void timed_compute(struct bench *b, struct bench_stamp *stamp)
{
	bench_check(b, b->pmi.fence(), "fence before the computation");
	bench_settle(b);
	stamp->in = bench_now();
	bench_compute(b);
	stamp->out = bench_now();
}

/* `called` and `computed` are when the calls before and after Wait returned. */
static void close_stamp(struct bench_stamp *stamp, double called,
			double computed)
{
	stamp->out = bench_now();
	stamp->part = called - stamp->in;
	stamp->wait = stamp->out - computed;
}

static void overlap_round(struct bench *b, int i, struct bench_stamp *stamps)
{
	struct bench_stamp *both = &stamps[BOTH];
	PMIX_Request request;
	double called, computed;

	bench_settle(b);
	stamps[EXCHANGE].in = bench_now();
	gathered_blocking(b, i);
	stamps[EXCHANGE].out = bench_now();
	gathered_check(b, i);
	timed_compute(b, &stamps[COMPUTE]);
	bench_check(b, b->pmi.fence(), "fence before both");
	bench_settle(b);
	both->in = bench_now();
	gathered_start(b, i, &request);
	called = bench_now();
	bench_compute(b);
	computed = bench_now();
	bench_check(b, b->pmi.wait(request), "wait");
	close_stamp(both, called, computed);
	gathered_check(b, i);
}

static void overlap_fence_round(struct bench *b, int i,
				struct bench_stamp *stamps)
{
	struct bench_stamp *both = &stamps[BOTH];
	PMIX_Request request;
	double called, computed;

	bench_put(b, 2 * i);
	bench_settle(b);
	stamps[EXCHANGE].in = bench_now();
	bench_check(b, b->pmi.fence(), "fence");
	stamps[EXCHANGE].out = bench_now();
	timed_compute(b, &stamps[COMPUTE]);
	bench_check(b, b->pmi.fence(), "fence before both");
	bench_put(b, 2 * i + 1);
	bench_settle(b);
	both->in = bench_now();
	bench_check(b, b->pmi.ifence(&request), "ifence");
	called = bench_now();
	bench_compute(b);
	computed = bench_now();
	bench_check(b, b->pmi.wait(request), "wait");
	close_stamp(both, called, computed);
}

static void overlap_fence_check(struct bench *b)
{
	bench_check_rounds(b, 2 * b->rounds);
}

static const char *overlap_lacks(const struct bench_pmi *pmi)
{
	return pmi->allgather ? gathered_lacks(pmi) : "PMIX_Allgather_n";
}

static const char *overlap_fence_lacks(const struct bench_pmi *pmi)
{
	return pmi->ifence && pmi->wait ? NULL : "PMIX_KVS_Ifence";
}

const struct bench_op bench_op_overlap = {
	.name = "overlap", .phases = PHASES, .lacks = overlap_lacks,
	.prepare = gathered_prepare, .round = overlap_round,
};
const struct bench_op bench_op_overlap_fence = {
	.name = "overlap-fence", .phases = PHASES,
	.lacks = overlap_fence_lacks, .round = overlap_fence_round,
	.check = overlap_fence_check,
};
