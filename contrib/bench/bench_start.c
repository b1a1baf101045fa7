/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Operations of pmi2x bench collectives: what a program does when it starts. Without PMI
 * they show what the launch alone takes.
 */
#include "bench_gather.h"

static void look_at_neighbours(struct bench *b, int i)
{
	bench_check_value(b, (b->rank + 1) % b->size, i);
	bench_check_value(b, (b->rank + b->size - 1) % b->size, i);
}

/* Acts like MPI_Init: publishes everything, and looks up the neighbours. */
static void init_round(struct bench *b, int i, struct bench_stamp *stamp)
{
	stamp->in = b->begin;
	if (!b->alone) {
		bench_put(b, i);
		bench_check(b, b->pmi.fence(), "fence");
		look_at_neighbours(b, i);
	}
	stamp->out = bench_now();
}

/* PMI init alone, which was before this. */
static void init_only_round(struct bench *b, int i, struct bench_stamp *stamp)
{
	stamp->in = b->begin;
	stamp->out = bench_now();
}

/* An MPI_Init that returns while the exchange is under way; work; Wait. */
static void iinit_round(struct bench *b, int i, struct bench_stamp *stamp)
{
	PMIX_Request request;
	double worked;

	stamp->in = b->begin;
	if (b->alone) {
		stamp->out = bench_now();
		return;
	}
	gathered_start(b, i, &request);
	stamp->out = bench_now();
	bench_compute(b);
	worked = bench_now();
	bench_check(b, b->pmi.wait(request), "wait");
	stamp->wait = bench_now() - worked;
	gathered_check(b, i);
}

/* The whole of a short program; only srun's time counts. */
static void step_round(struct bench *b, int i, struct bench_stamp *stamp)
{
	(void)stamp;
	if (b->alone)
		return;
	bench_put(b, i);
	bench_check(b, b->pmi.fence(), "fence");
	look_at_neighbours(b, i);
}

const struct bench_op bench_op_init = {
	.name = "init", .once = true, .alone = true, .round = init_round,
	.check = bench_check_all,
};
const struct bench_op bench_op_init_only = {
	.name = "init-only", .once = true, .alone = true, .round = init_only_round,
};
const struct bench_op bench_op_iinit = {
	.name = "iinit", .once = true, .alone = true, .lacks = gathered_lacks,
	.prepare = gathered_prepare, .round = iinit_round,
};
const struct bench_op bench_op_step = {
	.name = "step", .clock = BENCH_WALL, .once = true, .alone = true,
	.round = step_round,
};
