/* SPDX-License-Identifier: BSD-3-Clause */
/* Starts whose end a node hears later: what comes meanwhile, and how much it asks for. */
#include "bed.h"

#include <signal.h>

static void stand_still(struct bed *b, bool still)
{
	for (uint32_t i = 0; i < NODES; i++)
		b->nodes[i].still = still;
}

BED_TEST(ranks_that_are_being_started_are_signalled)
{
	stand_still(b, true);
	submit(b, "{'argv':['x'],'ranks':2}");
	assert_int_equal(b->nprocesses, 2);
	request(b, "{'op':'cancel','ids':[1]}");
	assert_true(b->processes[1].told && b->processes[2].told);
	stand_still(b, false);
	end_process(b, 1, SIGTERM);
	end_now(b, 2, SIGTERM);
	assert_string_equal(text(end_of(b, 1), "state"), "cancelled");
}

/* One rank of two could be started, and the task is cancelled before the node hears that. */
BED_TEST(cancelled_start_is_not_tried_again)
{
	b->is_full[0] = true;
	b->room[0] = 1;
	stand_still(b, true);
	submit(b, "{'argv':['x'],'ranks':2,'place':[{'node':'n0','cores':[0]},"
	       "{'node':'n0','cores':[1]}]}");
	assert_int_equal(b->nprocesses, 1);
	request(b, "{'op':'cancel','ids':[1]}");
	stand_still(b, false);
	b->is_full[0] = false;
	pass(b, 100);
	pass(b, 2000);
	assert_int_equal(b->nprocesses, 1);
	end_now(b, 1, SIGTERM);
	assert_string_equal(text(end_of(b, 1), "state"), "cancelled");
	assert_int_equal(free_cores(b), NODES * CORES);
}

BED_TEST(time_limit_counts_from_the_start)
{
	stand_still(b, true);
	submit(b, "{'argv':['x'],'time':10}");
	pass(b, 9000);
	stand_still(b, false);
	pass(b, 0);
	pass(b, 9000);
	assert_false(b->processes[1].told);
	pass(b, 1000);
	assert_true(b->processes[1].told);
}

/* The host stands still: what it is to start is bounded, and the rest waits. */
TEST_ON(node_asks_for_a_limited_number_of_starts, struct bed *b, bed_create(1000))
{
	const int tasks = NODES * STARTS_MAX + 10;

	stand_still(b, true);
	for (int i = 0; i < tasks; i++)
		submit(b, "{'argv':['x'],'cores':0}");
	assert_true(b->nprocesses < tasks);
	stand_still(b, false);
	deliver_all(b);
	assert_int_equal(b->nprocesses, tasks);
	for (int i = 1; i <= tasks; i++) {
		end_now(b, i, 0);
		assert_int_equal(number(end_of(b, i), "code"), 0);
	}
}

/* Its parts elsewhere would wait for ever. */
TEST_ON(task_over_nodes_does_not_wait_for_a_host_that_stands_still, struct bed *b, bed_create(1000))
{
	b->nodes[0].still = true;
	for (int i = 0; i < STARTS_MAX; i++)
		submit(b, "{'argv':['x'],'cores':0,'place':[{'node':'n0','cores':[]}]}");
	assert_int_equal(b->nprocesses, STARTS_MAX);
	submit(b, "{'argv':['y'],'ranks':2,'place':[{'node':'n0','cores':[1]},"
	       "{'node':'n1','cores':[1]}]}");
	assert_int_equal(b->nprocesses, STARTS_MAX + 1);
	pass(b, 30000);
	assert_true(b->processes[STARTS_MAX + 1].told);
}
