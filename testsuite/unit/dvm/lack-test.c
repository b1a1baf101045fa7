/* SPDX-License-Identifier: BSD-3-Clause */
/* Starts on nodes that lack descriptors, processes or memory. */
#include "bed.h"

#include <errno.h>
#include <signal.h>

#define RANK(node, core) "{'node':'" node "','cores':[" core "]}"
#define ON(node, core) "'place':[" RANK(node, core) "]"
#define TRY_MS 1000

/* The node can have `room` processes. */
static struct bed *bed_with_room(uint32_t node, uint32_t room)
{
	struct bed *b = bed_create(100);

	b->is_full[node] = true;
	b->room[node] = room;
	return b;
}

#define ROOM_TEST(name, node, room) TEST_ON(name, struct bed *b, bed_with_room(node, room))

static long long drained(struct bed *b)
{
	const char *word;
	long long n = 0;
	json_t *node;
	size_t i;

	ask(b, "{'op':'status'}");
	json_array_foreach(json_object_get(event(b, "status"), "nodes"), i, node) {
		word = text(node, "state");
		n += !strcmp(word, "drained");
	}
	return n;
}

ROOM_TEST(start_waits_until_another_task_has_ended, 0, 1)
{
	submit(b, "{'argv':['a']," ON("n0", "0") "},{'argv':['b']," ON("n0", "1") "},"
	       "{'argv':['c']," ON("n0", "2") "}");
	assert_int_equal(b->nprocesses, 1);
	pass(b, 5 * TRY_MS);
	assert_int_equal(b->nprocesses, 1);
	end_now(b, 1, 0);
	assert_int_equal(b->nprocesses, 2);
	end_now(b, 2, 0);
	end_now(b, 3, 0);
	for (int i = 1; i <= 3; i++) {
		assert_int_equal(number(end_of(b, i), "code"), 0);
		assert_int_equal(number(end_of(b, i), "instance"), 0);
	}
	assert_int_equal(drained(b), 0);
}

ROOM_TEST(start_is_tried_each_second, 0, 0)
{
	submit(b, "{'argv':['a']," ON("n0", "0") "}");
	assert_int_equal(b->nprocesses, 0);
	b->is_full[0] = false;
	pass(b, TRY_MS);
	assert_int_equal(b->nprocesses, 1);
}

BED_TEST(idle_node_that_can_start_nothing_is_drained)
{
	for (int i = 0; i < NODES - 1; i++)
		b->is_full[i] = true;
	submit(b, "{'argv':['a'],'cores':4},{'argv':['b'],'cores':4}");
	for (int i = 0; i < 8; i++)
		pass(b, TRY_MS);
	assert_int_equal(drained(b), NODES - 1);
	end_now(b, 1, 0);
	end_now(b, 2, 0);
	assert_int_equal(number(end_of(b, 1), "code"), 0);
	assert_int_equal(number(end_of(b, 2), "code"), 0);
}

ROOM_TEST(drained_node_says_why_until_undrain, 0, 0)
{
	json_t *node;

	submit(b, "{'argv':['a']," ON("n0", "0") "}");
	for (int i = 0; i < 3; i++)
		pass(b, TRY_MS);
	assert_string_equal(text(event(b, "node"), "state"), "drained");
	assert_int_equal(drained(b), 1);
	node = json_array_get(json_object_get(event(b, "status"), "nodes"), 0);
	assert_non_null(strstr(text(node, "why"), strerror(EMFILE)));
	b->is_full[0] = false;
	request(b, "{'op':'undrain','node':'n0'}");
	assert_int_equal(drained(b), 0);
	assert_int_equal(b->nprocesses, 1);
}

ROOM_TEST(rest_of_the_ranks_is_started_later, 0, 2)
{
	submit(b, "{'argv':['a']," ON("n0", "0") "},"
	       "{'argv':['b'],'ranks':2,'place':[" RANK("n0", "1") "," RANK("n0", "2") "]}");
	assert_int_equal(b->nprocesses, 2);
	end_now(b, 1, 0);
	assert_int_equal(b->nprocesses, 3);
	end_process(b, 2, 0);
	end_now(b, 3, 0);
	assert_int_equal(number(end_of(b, 2), "code"), 0);
	assert_int_equal(b->pmis, 0);
}

ROOM_TEST(waiting_task_is_cancelled_at_once, 0, 1)
{
	submit(b, "{'argv':['a']," ON("n0", "0") "},{'argv':['b']," ON("n0", "1") "}");
	request(b, "{'op':'cancel','ids':[2]}");
	assert_string_equal(text(end_of(b, 2), "state"), "cancelled");
	end_now(b, 1, 0);
	assert_int_equal(b->nprocesses, 1);
	assert_int_equal(free_cores(b), NODES * CORES);
}

ROOM_TEST(task_over_nodes_waits_for_a_limited_time, 0, 1)
{
	submit(b, "{'argv':['a']," ON("n0", "0") "},"
	       "{'argv':['b'],'ranks':2,'place':[" RANK("n0", "1") "," RANK("n1", "0") "]}");
	assert_int_equal(b->nprocesses, 2);
	pass(b, 30 * TRY_MS);
	assert_true(b->processes[2].told);
	end_process(b, 2, SIGTERM);
	end_now(b, 1, 0);
	assert_int_equal(b->nprocesses, 4);
	end_process(b, 3, 0);
	end_now(b, 4, 0);
	assert_int_equal(number(end_of(b, 2), "code"), 0);
	assert_int_equal(number(end_of(b, 2), "instance"), 1);
}

BED_TEST(process_that_lacked_something_is_started_again)
{
	submit(b, "{'argv':['a']," ON("n0", "0") "}");
	end_lacking(b, 1);
	assert_int_equal(b->nprocesses, 1); /* not at once */
	pass(b, TRY_MS);
	assert_int_equal(b->nprocesses, 2);
	end_now(b, 2, 0);
	assert_int_equal(number(end_of(b, 1), "code"), 0);
}

/* The zygote stands still, and reports the end after the task's time limit. */
BED_TEST(process_that_lacked_something_has_not_run_too_long)
{
	submit(b, "{'argv':['a'],'time':2," ON("n0", "0") "}");
	pass(b, 2000);
	assert_true(b->processes[1].told);
	end_lacking(b, 1);
	pass(b, TRY_MS);
	assert_int_equal(b->nprocesses, 2);
	end_now(b, 2, 0);
	assert_int_equal(number(end_of(b, 1), "code"), 0);
}

BED_TEST(task_whose_processes_always_lack_something_fails)
{
	submit(b, "{'argv':['a']}");
	for (int64_t i = 1; i <= HEAD_INSTANCES_MAX; i++) {
		assert_int_equal(b->nprocesses, i);
		end_lacking(b, i);
		pass(b, TRY_MS);
	}
	assert_int_equal(number(end_of(b, 1), "code"), 126);
	assert_string_equal(text(end_of(b, 1), "why"), "no file");
	assert_int_equal(drained(b), 0);
}
