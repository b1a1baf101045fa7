/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Operation of pmi2x bench collectives: a barrier of the first ranks of all nodes, by which MPICH 5
 * starts. The others sleep meanwhile.
 */
#include "bench_rank.h"

#include <stdio.h>

#define DIGITS 11 /* of a rank, and a comma */

/* The leaders' ranks follow from the rank only where nodes are alike. */
static bool nodes_are_alike(const struct bench *b)
{
	return b->size % b->locals == 0 && b->rank % b->locals == b->local;
}

static void group_prepare(struct bench *b)
{
	int leaders = b->size / b->locals, len = 0;
	char *list = bench_alloc(b, (size_t)leaders * DIGITS + 1);

	bench_check(b, nodes_are_alike(b) ? PMI2_SUCCESS : PMI2_FAIL,
		    "a layout in blocks of one size, which 'group' needs,");
	for (int i = 0; i < leaders; i++)
		len += sprintf(list + len, "%s%d", i ? "," : "",
			       i * b->locals);
	b->state = list;
}

static void meet_leaders(struct bench *b)
{
	bench_check(b, b->pmi.group(b->state), "barrier of a group");
}

static void group_round(struct bench *b, int i, struct bench_stamp *stamp)
{
	bench_settle(b);
	if (b->local == 0) {
		meet_leaders(b); /* while the others go to sleep */
		stamp->in = bench_now();
		meet_leaders(b);
		stamp->out = bench_now();
	}
	bench_await_all(b);
}

static const char *group_lacks(const struct bench_pmi *pmi)
{
	return pmi->group ? NULL : "barrier of a group";
}

const struct bench_op bench_op_group = {
	.name = "group", .lacks = group_lacks, .prepare = group_prepare,
	.round = group_round,
};
