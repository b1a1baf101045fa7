/* SPDX-License-Identifier: BSD-3-Clause */
/* The part of a task on a node. */
#include "unit.h"

#include <stdlib.h>

#include "dvm/core/head_private.h"

/* A task with one part on each of these nodes, in this order. */
static void place(struct task_run *r, const uint32_t *nodes, uint32_t count)
{
	r->placement = calloc(1, sizeof(*r->placement) + count * sizeof(r->placement->parts[0]));
	assert_non_null(r->placement);
	r->placement->count = count;
	for (uint32_t i = 0; i < count; i++)
		r->placement->parts[i].node = nodes[i];
}

/* Multiples of 7 in an order that is not sorted. */
static void check(uint32_t count)
{
	struct task_run r = { .placement = NULL };
	const struct head_task t = { .run = &r };
	uint32_t nodes[200];

	for (uint32_t i = 0; i < count; i++)
		nodes[i] = 7 * ((i * 89) % count);
	place(&r, nodes, count);
	for (uint32_t node = 0; node < 7 * count + 7; node++) {
		const struct ledger_part *p = task_part_on(&t, node);

		assert_int_equal(p != NULL, node % 7 == 0 && node < 7 * count);
		assert_true(!p || p->node == node);
	}
	task_run_unplace(&r);
	assert_null(r.placement);
}

TEST(part_is_found_among_few_nodes)
{
	check(1);
	check(5);
}

TEST(part_is_found_among_many_nodes)
{
	check(32);
	check(200);
}

TEST(index_goes_with_the_placement)
{
	uint32_t nodes[100];
	struct task_run r = { .placement = NULL };
	const struct head_task t = { .run = &r };

	for (uint32_t i = 0; i < 100; i++)
		nodes[i] = i;
	place(&r, nodes, 100);
	assert_ptr_equal(task_part_on(&t, 99), &r.placement->parts[99]);
	task_run_unplace(&r);
	for (uint32_t i = 0; i < 100; i++)
		nodes[i] = 199 - i;
	place(&r, nodes, 100);
	assert_ptr_equal(task_part_on(&t, 199), &r.placement->parts[0]);
	assert_null(task_part_on(&t, 99));
	task_run_unplace(&r);
}
