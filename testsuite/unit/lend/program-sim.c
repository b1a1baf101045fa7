/* SPDX-License-Identifier: BSD-3-Clause */
/* Events of ranks in virtual time: threads that end, ranks that lend, helpers that act. */
#include "program-sim.h"

#include <math.h>
#include <stdlib.h>

#include "unit.h"

#define THREADS_MAX 64 /* of a rank */
#define NEVER HUGE_VAL
#define DONE_US 1e-6 /* work that is none */

enum phase { PHASE_COMPUTES, PHASE_WAITS, PHASE_LENDS, PHASE_NAPS };

struct sim_rank {
	enum phase phase;
	uint32_t regions;   /* that are left until the meeting */
	uint32_t meetings;  /* to which it has come */
	double since;       /* when it began to wait */
	double timer;       /* when it lends, or wakes up */
	double helper;      /* when its helper acts */
	uint32_t nplaces;
	uint32_t places[BED_CORES_MAX];
	uint32_t core[THREADS_MAX];
	double work[THREADS_MAX]; /* that is left, in microseconds of a core */
};

struct sim {
	const struct sim_program *program;
	struct ledger_bed bed;
	struct ledger ledger;
	struct sim_rank ranks[BED_RANKS_MAX];
	double now;
	uint32_t busy[BED_CORES_MAX]; /* threads that compute there */
	unsigned random;
};

static uint32_t threads_of(const struct sim *s)
{
	return s->program->factor * s->program->each;
}

/* From -1 to 1. */
static double vary(struct sim *s)
{
	s->random = s->random * 1103515245u + 12345u;
	return (double)(s->random >> 8 & 0xffff) / 0x7fff - 1.0;
}

/* ---- threads ---- */

/* As the helper binds them: thread i of n to core i * places / n. */
static void place_threads(struct sim *s, uint32_t rank)
{
	uint32_t order[BED_CORES_MAX], n = threads_of(s);
	struct sim_rank *r = &s->ranks[rank];

	for (uint32_t i = 0; i < s->ledger.ncores; i++)
		order[i] = (rank * s->program->each + i) % s->ledger.ncores;
	r->nplaces = ledger_places(&s->ledger, rank, order, r->places);
	for (uint32_t i = 0; i < n; i++) {
		uint32_t core = r->places[i * r->nplaces / n];

		if (core != r->core[i] && r->work[i] > DONE_US)
			r->work[i] += SIM_MOVE_US;
		r->core[i] = core;
	}
}

static void begin_region(struct sim *s, uint32_t rank)
{
	const struct sim_program *p = s->program;
	uint32_t n = threads_of(s);
	double work = p->load[rank] * p->region_us * p->each / n;

	work *= 1.0 + p->jitter * vary(s);
	for (uint32_t i = 0; i < n; i++)
		s->ranks[rank].work[i] = work + (p->factor > 1 ? SIM_REGION_US / p->factor : 0);
}

static void count_busy(struct sim *s)
{
	memset(s->busy, 0, sizeof(s->busy));
	for (uint32_t r = 0; r < s->program->ranks; r++)
		for (uint32_t i = 0; i < threads_of(s); i++)
			if (s->ranks[r].work[i] > DONE_US)
				s->busy[s->ranks[r].core[i]]++;
}

/* ---- ranks ---- */

static void wake_helpers(struct sim *s)
{
	for (uint32_t r = 0; r < s->program->ranks; r++)
		if (s->program->lends && s->ranks[r].helper == NEVER)
			s->ranks[r].helper = s->now + SIM_HELPER_US;
}

static void compute(struct sim *s, uint32_t rank)
{
	struct sim_rank *r = &s->ranks[rank];

	if (r->phase == PHASE_LENDS || r->phase == PHASE_NAPS) {
		ledger_resume(&s->ledger, rank, (uint32_t)(s->now - r->since));
		wake_helpers(s);
	} else if (s->program->lends) {
		/* A rank that has not lent has waited little. */
		ledger_resume(&s->ledger, rank, (uint32_t)(s->now - r->since));
	}
	bed_check(&s->bed);
	r->phase = PHASE_COMPUTES;
	r->timer = NEVER;
	r->regions = s->program->regions;
	place_threads(s, rank);
	begin_region(s, rank);
}

/* All have come: those that nap come back late. */
static void meet(struct sim *s)
{
	for (uint32_t i = 0; i < s->program->ranks; i++) {
		struct sim_rank *r = &s->ranks[i];

		if (r->phase == PHASE_LENDS && ledger_is_used(&s->ledger, i)) {
			r->phase = PHASE_NAPS;
			r->timer = s->now + SIM_NAP_US;
		} else if (r->meetings < s->program->meetings) {
			compute(s, i);
		}
	}
}

static bool all_have_come(const struct sim *s, uint32_t meetings)
{
	for (uint32_t i = 0; i < s->program->ranks; i++)
		if (s->ranks[i].meetings < meetings)
			return false;
	return true;
}

static void come(struct sim *s, uint32_t rank)
{
	struct sim_rank *r = &s->ranks[rank];

	r->phase = PHASE_WAITS;
	r->since = s->now;
	r->timer = s->program->lends ? s->now + SIM_LEND_AFTER_US : NEVER;
	r->meetings++;
	if (all_have_come(s, r->meetings))
		meet(s);
}

static void end_region(struct sim *s, uint32_t rank)
{
	if (--s->ranks[rank].regions)
		begin_region(s, rank);
	else
		come(s, rank);
}

static void on_timer(struct sim *s, uint32_t rank)
{
	struct sim_rank *r = &s->ranks[rank];

	r->timer = NEVER;
	if (r->phase == PHASE_NAPS) {
		if (r->meetings < s->program->meetings)
			compute(s, rank);
		return;
	}
	r->phase = PHASE_LENDS;
	ledger_wait(&s->ledger, rank);
	bed_check(&s->bed);
	wake_helpers(s);
}

static void on_helper(struct sim *s, uint32_t rank)
{
	uint32_t before = word_load(s->ledger.changes);

	s->ranks[rank].helper = NEVER;
	if (bed_share(&s->bed, rank) && s->ranks[rank].phase == PHASE_COMPUTES)
		place_threads(s, rank);
	if (word_load(s->ledger.changes) != before)
		wake_helpers(s);
}

/* ---- time ---- */

static double next_event(const struct sim *s)
{
	double next = NEVER;

	for (uint32_t k = 0; k < s->program->ranks; k++) {
		const struct sim_rank *r = &s->ranks[k];

		next = fmin(next, fmin(r->timer, r->helper));
		for (uint32_t i = 0; i < threads_of(s); i++)
			if (r->work[i] > DONE_US)
				next = fmin(next, s->now + r->work[i] * s->busy[r->core[i]]);
	}
	return next;
}

static void pass(struct sim *s, double until)
{
	for (uint32_t k = 0; k < s->program->ranks; k++)
		for (uint32_t i = 0; i < threads_of(s); i++) {
			struct sim_rank *r = &s->ranks[k];

			if (r->work[i] > DONE_US)
				r->work[i] -= (until - s->now) / s->busy[r->core[i]];
		}
	s->now = until;
}

static bool has_work(const struct sim *s, uint32_t rank)
{
	for (uint32_t i = 0; i < threads_of(s); i++)
		if (s->ranks[rank].work[i] > DONE_US)
			return true;
	return false;
}

static void act(struct sim *s)
{
	for (uint32_t k = 0; k < s->program->ranks; k++) {
		struct sim_rank *r = &s->ranks[k];

		if (r->helper <= s->now)
			on_helper(s, k);
		if (r->timer <= s->now)
			on_timer(s, k);
		if (r->phase == PHASE_COMPUTES && !has_work(s, k))
			end_region(s, k);
	}
}

double sim_run(const struct sim_program *p)
{
	struct sim *s = calloc(1, sizeof(*s));
	double end;

	assert_non_null(s);
	s->program = p;
	s->random = 1;
	bed_make(&s->bed, p->ranks, p->each, p->factor);
	s->ledger = bed_ledger(&s->bed);
	for (uint32_t r = 0; r < p->ranks; r++)
		s->ranks[r].timer = s->ranks[r].helper = NEVER;
	for (uint32_t r = 0; r < p->ranks; r++)
		compute(s, r);
	while (!all_have_come(s, p->meetings)) {
		count_busy(s);
		pass(s, next_event(s));
		act(s);
	}
	end = s->now;
	free(s);
	return end;
}
