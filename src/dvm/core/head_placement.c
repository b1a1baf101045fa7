/* SPDX-License-Identifier: BSD-3-Clause */
/* The parts of a placed task by their nodes. */
#include "dvm/core/head_private.h"

#include <stdlib.h>

#define INDEXED_MIN 32 /* parts */

/* An entry is the node, and in the low 32 bits the part's index. */
static int by_node(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* Without memory there is no index. */
static void make_index(struct task_run *r)
{
	const struct ledger_placement *where = r->placement;

	r->by_node = malloc(where->count * sizeof(*r->by_node));
	if (!r->by_node)
		return;
	for (uint32_t i = 0; i < where->count; i++)
		r->by_node[i] = (uint64_t)where->parts[i].node << 32 | i;
	qsort(r->by_node, where->count, sizeof(*r->by_node), by_node);
}

static struct ledger_part *find_indexed(const struct task_run *r, uint32_t node)
{
	uint32_t from = 0, to = r->placement->count;

	while (from < to) {
		uint32_t middle = from + (to - from) / 2;

		if (r->by_node[middle] >> 32 < node)
			from = middle + 1;
		else
			to = middle;
	}
	if (from == r->placement->count || r->by_node[from] >> 32 != node)
		return NULL;
	return &r->placement->parts[(uint32_t)r->by_node[from]];
}

struct ledger_part *task_part_on(const struct head_task *t, uint32_t node)
{
	struct ledger_placement *where = t->run->placement;

	if (where->count >= INDEXED_MIN && !t->run->by_node)
		make_index(t->run);
	if (t->run->by_node)
		return find_indexed(t->run, node);
	for (uint32_t i = 0; i < where->count; i++)
		if (where->parts[i].node == node)
			return &where->parts[i];
	return NULL;
}

void task_run_unplace(struct task_run *r)
{
	free(r->placement);
	free(r->by_node);
	r->placement = NULL;
	r->by_node = NULL;
}
