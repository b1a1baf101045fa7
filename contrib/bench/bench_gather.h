/* SPDX-License-Identifier: BSD-3-Clause */
/* An allgather into memory of the rank, checked: for several operations. */
#pragma once

#include "bench_rank.h"

/* b->state of an operation that gathers. */
struct gathered {
	int *lengths;
	char *values; /* slots of bytes + 1 */
};

void gathered_prepare(struct bench *b);
/* Which function is missing for gathered_start; NULL: none. */
const char *gathered_lacks(const struct bench_pmi *pmi);
/* Gather the values of round i, or start to. */
void gathered_blocking(struct bench *b, int i);
void gathered_start(struct bench *b, int i, PMIX_Request *request);
/* Collective: every value is right; they are forgotten after it. */
void gathered_check(struct bench *b, int i);
