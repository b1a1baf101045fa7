/* SPDX-License-Identifier: BSD-3-Clause */
/* The operations that pmi2x bench collectives times: one table. */
#include "bench_rank.h"

#include <stdio.h>
#include <string.h>

static const struct bench_op *const ops[] = {
	&bench_op_fence,
	&bench_op_exchange,
	&bench_op_first,
	&bench_op_ifence,
	&bench_op_many,
	&bench_op_allgather,
	&bench_op_getall,
	&bench_op_iallgather,
	&bench_op_view,
	&bench_op_overlap,
	&bench_op_overlap_fence,
	&bench_op_ring,
	&bench_op_group,
	&bench_op_init,
	&bench_op_init_only,
	&bench_op_iinit,
	&bench_op_step,
	&bench_op_get,
	&bench_op_fetch,
	&bench_op_memory,
};

const struct bench_op *bench_op_find(const char *name)
{
	for (size_t i = 0; i < sizeof(ops) / sizeof(*ops); i++) {
		if (strcmp(ops[i]->name, name) == 0)
			return ops[i];
	}
	return NULL;
}

void bench_op_list(void)
{
	for (size_t i = 0; i < sizeof(ops) / sizeof(*ops); i++)
		puts(ops[i]->name);
}
