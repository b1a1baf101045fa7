/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One rank of pmi2x bench collectives: carries out one operation a few times over the PMI
 * client it is told to load, checks the values, and lets rank 0 print one line:
 *
 *     result op=OP client=VERSION ranks=N bytes=B clock=CLOCK puts=PUTS
 *            times=S,... parts=S,... waits=S,...
 *
 * with one time, part and wait for each stamp (a round may have several, and a
 * stamp may cover several operations). CLOCK says what a time is:
 *
 *     span  from the first rank's entry to the last rank's exit; all ranks run
 *           on one machine, so their stamps compare
 *     rank  the longest that any rank was in the operation, where they do not
 *     each  the median over the ranks of what the operation took
 *     most  the most of any rank; bytes, not seconds
 *     wall  nothing: the time of the whole srun counts
 *
 * Parts and waits are medians over the ranks of what the operation names so.
 * PUTS is "met" when the ranks met outside of PMI before they entered a timed
 * collective; else "before" when all ranks' puts were done before the first rank
 * entered it, "local" when a put is no message, "inside" when the client has
 * nothing to make sure of it.
 *
 * Without PMI (the library "none") a rank prints a line of its own:
 *
 *     stamp MACHINE IN SECONDS
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "bench_pmi.h"

#define BENCH_ROUNDS_MAX 16
#define BENCH_PHASES_MAX 3
#define BENCH_STAMPS_MAX (BENCH_ROUNDS_MAX * BENCH_PHASES_MAX)
#define BENCH_VALUE_MAX (PMI2_MAX_VALLEN - 1)
#define BENCH_MACHINE_LEN 9 /* NUL included */

/*
 * Seconds; in and out are of CLOCK_MONOTONIC when the clock is `span`. All zero for a
 * rank that has no part in the operation.
 */
struct bench_stamp {
	double in, out;
	double part; /* in the call that starts a non-blocking operation, or as
	                the operation says */
	double wait; /* in the call that completes it */
};

enum bench_clock { BENCH_SPAN, BENCH_EACH, BENCH_MOST, BENCH_WALL };

struct bench {
	struct bench_pmi pmi;
	const struct bench_op *op;
	int rank, size;
	int local, locals; /* place among the ranks of the node, and their number */
	int bytes;  /* of a value, without NUL */
	int rounds;
	double work; /* CPU seconds that a rank computes; see bench_compute */
	int rest;    /* milliseconds in which nothing happens, before a round */
	bool check_node; /* the ranks of a node share the check of all values */
	bool alone;      /* no PMI */
	const char *puts; /* see above */
	struct bench_meeting *meeting; /* NULL: ranks meet over PMI only */
	double begin;     /* when main started */
	struct bench_stamp stamps[BENCH_STAMPS_MAX];
	void *state; /* of the operation */
};

struct bench_op {
	const char *name;
	enum bench_clock clock;
	bool once;  /* one round a step: it includes the start of the session */
	bool alone; /* without PMI: it needs only what the launcher gives */
	int rounds; /* fixed number of them; 0: as many as asked for */
	int phases; /* stamps of a round; 0: one */
	/* Which of the functions it needs are not there; NULL: none. */
	const char *(*lacks)(const struct bench_pmi *pmi);
	void (*start)(struct bench *b);   /* before PMI init; may be NULL */
	void (*prepare)(struct bench *b); /* may be NULL */
	void (*round)(struct bench *b, int i, struct bench_stamp *stamps);
	void (*check)(struct bench *b); /* after all rounds; may be NULL */
};

/* NULL when there is no such operation. */
const struct bench_op *bench_op_find(const char *name);
void bench_op_list(void); /* names to stdout, one a line */

static inline int bench_stamp_count(const struct bench *b)
{
	return b->rounds * (b->op->phases ? b->op->phases : 1);
}

/* ---- the operations: bench_fence.c, bench_gather.c and so on ---- */

extern const struct bench_op bench_op_fence, bench_op_exchange, bench_op_first,
	bench_op_ifence, bench_op_many;
extern const struct bench_op bench_op_allgather, bench_op_getall,
	bench_op_iallgather, bench_op_view;
extern const struct bench_op bench_op_overlap, bench_op_overlap_fence;
extern const struct bench_op bench_op_init, bench_op_init_only, bench_op_iinit,
	bench_op_step;
extern const struct bench_op bench_op_ring, bench_op_group, bench_op_get,
	bench_op_fetch, bench_op_memory;

/* ---- bench_value.c: what several operations do ---- */

/* The value that `rank` gives in round i; value has bytes + 1 bytes. */
void bench_value(const struct bench *b, char *value, int rank, int i);
/* Ends the job unless `value` is what that rank gave in that round. */
void bench_compare(const struct bench *b, const char *value, int len, int rank,
		   int i);
/* The key of this rank and number. */
void bench_key(char key[PMI2_MAX_KEYLEN], int rank, int i);
/* Put the value of this rank for round i. */
void bench_put(struct bench *b, int i);
/* Look up what that rank put in round i; returns the length of the value. */
int bench_get(struct bench *b, int rank, int i, char *value);
/* Looks the value up and compares it. */
void bench_check_value(struct bench *b, int rank, int i);
/* Whether this rank is one of those that check what `rank` gave. */
bool bench_checks(const struct bench *b, int rank);
/* Check the values of rounds that were put, as far as this rank checks them; in all. */
void bench_check_rounds(struct bench *b, int rounds);
void bench_check_all(struct bench *b);
/*
 * Collective, before what is timed: every rank is there, and its puts have
 * reached the server. As far as it can be had; see `puts` above.
 */
void bench_settle(struct bench *b);
/*
 * Collective, without PMI: every rank is there, where they can meet; else nothing
 * happens. After what is timed: a rank that goes on, to check values or to put,
 * keeps the CPU from those still in it.
 */
void bench_await_all(const struct bench *b);
/* Finds out how bench_settle has to do it. */
void bench_settle_choose(struct bench *b);

/* ---- bench_meet.c ---- */

/* Map the file for the life of the process; NULL: it cannot be, which is said. */
struct bench_meeting *bench_meet_open(const char *path);
/* Return once `size` ranks have called it. */
void bench_meet(struct bench_meeting *meeting, int size);

/* ---- bench_base.c ---- */

double bench_now(void);
double bench_cpu_now(void); /* of this thread */
/* Keep the CPU busy until this thread has had b->work seconds of it. */
void bench_compute(const struct bench *b);
/* Ends the whole job when rc is not PMI2_SUCCESS. */
void bench_check(const struct bench *b, int rc, const char *what);
/* bench_check for memory. */
void *bench_alloc(const struct bench *b, size_t len);

/* ---- bench_node.c ---- */

/* From Slurm's environment; one rank on its node where there is none. */
void bench_place(int *local, int *locals);
/* Which machine this is: CLOCK_MONOTONIC compares within one boot of it. */
void bench_machine(char machine[BENCH_MACHINE_LEN]);

/* ---- bench_report.c ---- */

/* Collective: gathers all stamps; rank 0 prints the line. */
void bench_report(struct bench *b);
