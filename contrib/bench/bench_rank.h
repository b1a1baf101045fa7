/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One rank of pmi2x-bench: carries out one operation a few times over the PMI
 * client it is told to load, checks the values, and lets rank 0 print one line:
 *
 *     result op=OP client=VERSION ranks=N bytes=B clock=CLOCK times=S,... parts=S,...
 *
 * with one time in seconds for each round. CLOCK says what a time is:
 *
 *     span  from the first rank's entry to the last rank's exit; all ranks run
 *           on one machine, so their stamps compare
 *     rank  the longest that any rank was in the operation, where they do not
 *     each  the median over the ranks of what the operation took
 *
 * A part is the median over the ranks of what the operation names as its part.
 */
#ifndef PMI2X_BENCH_RANK_H
#define PMI2X_BENCH_RANK_H

#include <stdbool.h>
#include <stddef.h>

#include "bench_pmi.h"

#define BENCH_ROUNDS_MAX 16 /* what fits into one PMI-2 value of stamps */
#define BENCH_VALUE_MAX (PMI2_MAX_VALLEN - 1)

/* Seconds. in and out are of CLOCK_MONOTONIC unless the operation is `each`. */
struct bench_stamp {
	double in, out, part;
};

struct bench {
	struct bench_pmi pmi;
	const struct bench_op *op;
	int rank, size;
	int bytes;  /* of a value, without NUL */
	int rounds;
	int share;  /* of so many ranks in a row one checks a given value */
	double begin; /* when main started */
	struct bench_stamp stamps[BENCH_ROUNDS_MAX];
	void *state; /* of the operation */
};

struct bench_op {
	const char *name;
	bool each; /* see above */
	bool once; /* one round a step: it includes the start of the session */
	/* Which of the functions it needs are not there; NULL: none. */
	const char *(*lacks)(const struct bench_pmi *pmi);
	void (*prepare)(struct bench *b); /* may be NULL */
	void (*round)(struct bench *b, int i, struct bench_stamp *stamp);
	void (*check)(struct bench *b); /* after all rounds; may be NULL */
};

/* NULL when there is no such operation. */
const struct bench_op *bench_op_find(const char *name);
void bench_op_list(void); /* names to stdout, one a line */

/* ---- pmi2x-bench-rank.c ---- */

double bench_now(void);
/* Ends the whole job when rc is not PMI2_SUCCESS. */
void bench_check(const struct bench *b, int rc, const char *what);
/* The value that `rank` gives in round i; value has bytes + 1 bytes. */
void bench_value(const struct bench *b, char *value, int rank, int i);
/* Ends the job unless `value` is what that rank gave in that round. */
void bench_compare(const struct bench *b, const char *value, int len, int rank,
		   int i);
/* bench_check for memory. */
void *bench_alloc(const struct bench *b, size_t len);
/* The key under which that rank puts its value of that round. */
void bench_key(char key[PMI2_MAX_KEYLEN], int rank, int i);

/* ---- bench_report.c ---- */

/* Collective: gathers all stamps; rank 0 prints the line. */
void bench_report(struct bench *b);

#endif
