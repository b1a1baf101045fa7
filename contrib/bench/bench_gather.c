/* SPDX-License-Identifier: BSD-3-Clause */
/* Operations of pmi2x bench collectives: every rank gets the value of every rank. */
#include "bench_rank.h"
#include "bench_gather.h"

#include <string.h>

static char *slot_of(struct bench *b, int rank)
{
	struct gathered *g = b->state;

	return g->values + (size_t)rank * (b->bytes + 1);
}

static void clear_values(struct bench *b)
{
	struct gathered *g = b->state;

	memset(g->values, 0, (size_t)b->size * (b->bytes + 1));
}

void gathered_prepare(struct bench *b)
{
	size_t numbers = sizeof(int) * b->size;
	struct gathered *g = bench_alloc(b, sizeof(*g) + numbers +
					 (size_t)b->size * (b->bytes + 1));

	g->lengths = (int *)(g + 1);
	g->values = (char *)(g + 1) + numbers;
	b->state = g;
	/*
	 * Touch the pages now: they are the application's, and not part of the first round.
	 */
	clear_values(b);
}

/*
 * Values live for a round only, so each round is checked, and a fence keeps
 * the next one from being entered while others still check.
 */
void gathered_check(struct bench *b, int i)
{
	struct gathered *g = b->state;

	bench_await_all(b);
	for (int r = 0; r < b->size; r++)
		bench_compare(b, slot_of(b, r), g->lengths[r], r, i);
	clear_values(b);
	bench_check(b, b->pmi.fence(), "fence");
}

void gathered_start(struct bench *b, int i, PMIX_Request *request)
{
	struct gathered *g = b->state;
	char value[BENCH_VALUE_MAX + 1];

	bench_value(b, value, b->rank, i);
	bench_check(b, b->pmi.iallgather(value, b->bytes, g->values,
					 b->bytes + 1, g->lengths, request),
		    "iallgather");
}

const char *gathered_lacks(const struct bench_pmi *pmi)
{
	return pmi->iallgather && pmi->wait ? NULL : "PMIX_Iallgather_n";
}

/* A client without the extension gets the same result by put, fence and get. */
static void gather_by_get(struct bench *b, int i)
{
	struct gathered *g = b->state;

	bench_put(b, i);
	bench_check(b, b->pmi.fence(), "fence");
	for (int r = 0; r < b->size; r++) {
		char value[BENCH_VALUE_MAX + 1];

		g->lengths[r] = bench_get(b, r, i, value);
		memcpy(slot_of(b, r), value, b->bytes + 1);
	}
}

static void getall_round(struct bench *b, int i, struct bench_stamp *stamp)
{
	bench_settle(b);
	stamp->in = bench_now();
	gather_by_get(b, i);
	stamp->out = bench_now();
	gathered_check(b, i);
}

void gathered_blocking(struct bench *b, int i)
{
	struct gathered *g = b->state;
	char value[BENCH_VALUE_MAX + 1];

	bench_value(b, value, b->rank, i);
	bench_check(b, b->pmi.allgather(value, b->bytes, g->values,
					b->bytes + 1, g->lengths), "allgather");
}

static void allgather_round(struct bench *b, int i, struct bench_stamp *stamp)
{
	bench_settle(b);
	stamp->in = bench_now();
	if (b->pmi.allgather)
		gathered_blocking(b, i);
	else
		gather_by_get(b, i);
	stamp->out = bench_now();
	gathered_check(b, i);
}

static void iallgather_round(struct bench *b, int i, struct bench_stamp *stamp)
{
	PMIX_Request request;
	double called;

	bench_settle(b);
	stamp->in = bench_now();
	gathered_start(b, i, &request);
	called = bench_now();
	bench_check(b, b->pmi.wait(request), "wait");
	stamp->out = bench_now();
	stamp->part = called - stamp->in;
	stamp->wait = stamp->out - called;
	gathered_check(b, i);
}

/* ---- view: the same without a copy for each rank ---- */

static const char *view_lacks(const struct bench_pmi *pmi)
{
	return pmi->iallgather_view && pmi->view_value && pmi->view_free &&
	       pmi->wait ? NULL : "PMIX_Iallgather_view";
}

static void view_round(struct bench *b, int i, struct bench_stamp *stamp)
{
	char value[BENCH_VALUE_MAX + 1];
	PMIX_Request request;
	PMIX_View *view;
	double called;

	bench_value(b, value, b->rank, i);
	bench_settle(b);
	stamp->in = bench_now();
	bench_check(b, b->pmi.iallgather_view(value, b->bytes, &view,
					      &request), "iallgather_view");
	called = bench_now();
	bench_check(b, b->pmi.wait(request), "wait");
	stamp->out = bench_now();
	stamp->part = called - stamp->in;
	stamp->wait = stamp->out - called;
	bench_await_all(b);
	for (int r = 0; r < b->size; r++) {
		int len;
		const void *found = b->pmi.view_value(view, r, &len);

		bench_check(b, found ? PMI2_SUCCESS : PMI2_FAIL, "view_value");
		if (bench_checks(b, r))
			bench_compare(b, found, len, r, i);
	}
	bench_check(b, b->pmi.view_free(view), "view_free");
	bench_check(b, b->pmi.fence(), "fence");
}

const struct bench_op bench_op_allgather = {
	.name = "allgather", .prepare = gathered_prepare,
	.round = allgather_round,
};
const struct bench_op bench_op_getall = {
	.name = "getall", .prepare = gathered_prepare, .round = getall_round,
};
const struct bench_op bench_op_iallgather = {
	.name = "iallgather", .lacks = gathered_lacks,
	.prepare = gathered_prepare, .round = iallgather_round,
};
const struct bench_op bench_op_view = {
	.name = "view", .lacks = view_lacks, .round = view_round,
};
