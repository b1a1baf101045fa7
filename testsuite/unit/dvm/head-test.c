/* SPDX-License-Identifier: BSD-3-Clause */
/* The life of tasks in a DVM, from submit to end. */
#include "bed.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

BED_TEST(a_task_runs_and_its_end_is_told)
{
	submit(b, "{'argv':['x'],'ranks':2,'name':'mine'}");
	assert_int_equal(b->nprocesses, 2);
	assert_int_equal(free_cores(b), NODES * CORES - 2);
	end_now(b, 1, 0);
	assert_null(end_of(b, 1));
	end_now(b, 2, 0);
	assert_int_equal(number(end_of(b, 1), "code"), 0);
	assert_string_equal(text(end_of(b, 1), "name"), "mine");
	assert_int_equal(free_cores(b), NODES * CORES);
}

static json_t *shown(struct bed *b, unsigned id)
{
	ask(b, "{'op':'show','id':%u}", id);
	return json_object_get(event(b, "task"), "task");
}

static const char *argument(json_t *task, size_t i)
{
	return json_string_value(json_array_get(json_object_get(task, "argv"), i));
}

BED_TEST(ended_task_keeps_its_command_and_line)
{
	submit(b, "{'argv':['a','b c'],'line':7},{'argv':['good']}");
	assert_string_equal(argument(shown(b, 1), 1), "b c");
	end_process(b, 1, 3 << 8);
	end_now(b, 2, 0);
	assert_string_equal(argument(end_of(b, 1), 0), "a");
	assert_int_equal(number(end_of(b, 1), "line"), 7);
	assert_null(json_object_get(end_of(b, 2), "argv")); /* many succeed */
	assert_string_equal(argument(shown(b, 1), 1), "b c");
	assert_int_equal(number(shown(b, 1), "line"), 7);
	assert_string_equal(argument(shown(b, 2), 0), "good");
}

/* Each character has two bytes: a limit may be in the middle of one. */
BED_TEST(long_command_is_cut_between_characters)
{
	char request[4200] = "{'argv':['", *at = request + strlen(request);
	const char *cut;

	for (int i = 0; i < 2000; i++, at += 2)
		memcpy(at, "\xc3\xa9", 2);
	strcpy(at, "','x']}");
	submit(b, request);
	assert_int_equal(strlen(argument(shown(b, 1), 0)), 4000);
	assert_null(json_object_get(shown(b, 1), "argv_cut"));
	end_now(b, 1, 1 << 8);
	cut = argument(end_of(b, 1), 0);
	assert_in_range(strlen(cut), 250, 256);
	assert_true(json_is_true(json_object_get(end_of(b, 1), "argv_cut")));
	cut = argument(shown(b, 1), 0);
	assert_in_range(strlen(cut), 1000, 1024);
	assert_true(json_is_true(json_object_get(shown(b, 1), "argv_cut")));
}

/* When the head knows that it has started; 0: it does not. */
static double start_of(struct bed *b, unsigned id)
{
	json_t *times;

	ask(b, "{'op':'show','id':%u}", id);
	times = json_object_get(json_object_get(event(b, "task"), "task"), "t");
	return json_number_value(json_array_get(times, 2));
}

BED_TEST(a_start_is_told_soon_or_with_the_end)
{
	struct fake_node *n;

	submit(b, "{'argv':['long']}");
	n = &b->nodes[b->processes[1].node];
	assert_true(start_of(b, 1) == 0);
	assert_int_equal(dvm_node_turn(n->node, b->now), 10);
	pass(b, 9);
	assert_true(start_of(b, 1) == 0);
	pass(b, 1);
	assert_true(start_of(b, 1) > 0);

	submit(b, "{'argv':['short']}");
	n = &b->nodes[b->processes[2].node];
	end_process(b, 2, 0);
	dvm_node_turn(n->node, b->now);
	assert_int_equal(n->up.count, 1);
	deliver_all(b);
	assert_true(start_of(b, 2) > 0);
	assert_non_null(end_of(b, 2));
}

#define ACCENTS "\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9" \
		"\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9" \
		"\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9" \
		"\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9"

BED_TEST(invalid_tasks_are_rejected_and_valid_ones_accepted)
{
	static const char *const wrong[][2] = {
		{ "{'argv':[]}", "argv" },
		{ "{'argv':[1]}", "argv" },
		{ "{'argv':['']}", "argv" },
		{ "{}", "argv" },
		{ "7", "tasks" },
		{ "{'argv':['x'],'rnaks':2}", "rnaks" },
		{ "{'argv':['x'],'ranks':0}", "ranks" },
		{ "{'argv':['x'],'ranks':-1}", "ranks" },
		{ "{'argv':['x'],'ranks':13}", "ranks" },
		{ "{'argv':['x'],'cores':5}", "ranks" },
		{ "{'argv':['x'],'ranks':2,'nodes':3}", "nodes" },
		{ "{'argv':['x'],'memory':2000}", "ranks" },
		{ "{'argv':['x'],'memory':1099511627776}", "ranks" },
		{ "{'argv':['x'],'counters':{'l':1}}", "counters" },
		{ "{'argv':['x'],'time':'1'}", "time" },
		{ "{'argv':['x'],'stdin':7}", "stdin" },
		{ "{'argv':['x'],'stdin':'\u20ac'}", "stdin" },
		{ "{'argv':['x'],'output':'there'}", "output" },
		{ "{'argv':['x'],'output':'file'}", "path" },
		{ "{'argv':['x'],'path':'/a/%j'}", "path" },
		{ "{'argv':['x'],'error':'/50%'}", "error" },
		{ "{'argv':['x'],'append':1}", "append" },
		{ "{'argv':['x'],'preloaded':true}", "preloaded" }, /* without up --preload */
		{ "{'argv':['x'],'cwd':'a'}", "cwd" },
		{ "{'argv':['x'],'profile':'q'}", "profile" },
		{ "{'argv':['x'],'profile':{'id':'p'}}", "profile" },
		{ "{'argv':['x'],'place':[]}", "place" },
		{ "{'argv':['x'],'place':[{'node':'n9','cores':[0]}]}", "place" },
		{ "{'argv':['x'],'place':[{'node':'n1','cores':[4]}]}", "place" },
		{ "{'argv':['x'],'place':[{'node':'n1','cores':[1]},{'node':'n1','cores':[1]}]}", "place" },
		{ "{'argv':['x'],'place':[{'node':'n1','cores':[1]},{'node':'n1','cores':[2,3]}]}", "place" },
		{ "{'argv':['x'],'place':[{'node':'n1','cores':[1]},{'node':'n2','cores':[1]},{'node':'n1','cores':[2]}]}", "place" },
		{ "{'argv':['x'],'place':[{'node':'n1','cores':2}]}", "place" },
		{ "{'argv':['x'],'place':[{'node':'n1','cores':[1],'gpu':[]}]}", "place" },
		{ "{'argv':['x','a\\u0000b']}", "argv" },
		{ "{'argv':['x'],'name':'a\\u0000b'}", "name" },
		{ "{'argv':['x'],'place':[{'node':'n1\\u0000','cores':[1]}]}", "place" },
		{ "{'argv':['x'],'place':[{'node':'n" ACCENTS "'}]}", "place" }, /* cut in the middle of one */
	};
	char both[1024];
	json_t *refused;

	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		snprintf(both, sizeof(both), "{'argv':['x'],'cores':0},%s",
			 wrong[i][0]);
		submit(b, both);
		refused = json_object_get(event(b, "submitted"), "refused");
		assert_int_equal(json_array_size(refused), 1);
		refused = json_array_get(refused, 0);
		assert_int_equal(number(refused, "index"), 1);
		assert_string_equal(text(refused, "key"), wrong[i][1]);
		assert_int_equal(b->nprocesses, i + 1);
	}
}

BED_TEST(requests_that_make_no_sense_are_errors)
{
	static const char *const requests[] = {
		"", "nothing", "[]", "{}", "{'op':7}", "{'op':'fly'}",
		"{'op':'submit'}", "{'op':'submit','tasks':{}}",
		"{'op':'submit','profile':{'id':'x','cwd':'y'},'tasks':[]}",
		"{'op':'submit','profile':{'id':'x','cwd':'/','env':{'a=':'b'}},'tasks':[]}",
		"{'op':'wait'}", "{'op':'wait','ids':[1]}", "{'op':'show'}",
		"{'op':'cancel','ids':['x']}", "{'op':'signal','all':true}",
		"{'op':'drain','node':'n7'}", "{'op':'fly" ACCENTS "'}",
		"{'op':'submit','profile':{'id':'x','cwd':'/','env':{'a':'\\u0000'}},'tasks':[]}",
		"{'op':'hello','version':0}",
	};

	for (size_t i = 0; i < sizeof(requests) / sizeof(*requests); i++) {
		json_array_clear(b->events);
		ask(b, "%s", requests[i]);
		assert_int_equal(json_array_size(b->events), 1);
		assert_true(strlen(text(event(b, "error"), "why")) > 0);
	}
}

BED_TEST(a_client_of_another_version_is_not_heard)
{
	ask(b, "{'op':'hello','version':0}"); /* what follows may be on its way already */
	submit(b, "{'argv':['x']}");
	assert_int_equal(json_array_size(b->events), 1);
	assert_non_null(strstr(text(event(b, "error"), "why"), "the client has version 0"));
	assert_int_equal(b->nprocesses, 0);
}

TEST_ON(the_queue_has_a_limit, struct bed *b, bed_create(1))
{
	json_t *refused;

	ask(b, "{'op':'submit'," PROFILE ",'tasks':[{'argv':['x'],'cores':4,'ranks':3},{'argv':['x']}]}");
	refused = json_object_get(event(b, "submitted"), "refused");
	assert_int_equal(json_array_size(refused), 1);
	assert_true(json_is_true(json_object_get(json_array_get(refused, 0), "full")));
	ask(b, "{'op':'submit'," PROFILE ",'tasks':[{'argv':[]}]}");
	refused = json_object_get(event(b, "submitted"), "refused");
	assert_true(json_is_false(json_object_get(json_array_get(refused, 0), "full")));
}

BED_TEST(a_task_is_tried_again_as_often_as_allowed)
{
	submit(b, "{'argv':['x'],'retries':2}");
	for (int64_t i = 1; i <= 3; i++) {
		assert_null(end_of(b, 1));
		end_now(b, i, 1 << 8);
	}
	assert_int_equal(b->nprocesses, 3);
	assert_int_equal(number(end_of(b, 1), "code"), 1);
	assert_int_equal(number(end_of(b, 1), "instance"), 2);
}

BED_TEST(time_limits_hold)
{
	submit(b, "{'argv':['x'],'time':10}");
	pass(b, 9999);
	assert_false(b->processes[1].told);
	pass(b, 1);
	assert_true(b->processes[1].told);
	end_now(b, 1, SIGTERM);
	assert_int_equal(number(end_of(b, 1), "code"), 128 + SIGTERM);
	assert_true(json_is_true(json_object_get(end_of(b, 1), "too_long")));
}

BED_TEST(cancelled_tasks_end)
{
	submit(b, "{'argv':['x'],'ranks':12},{'argv':['y']}");
	assert_int_equal(b->nprocesses, 12);
	request(b, "{'op':'cancel','ids':[1,2]}");
	assert_string_equal(text(end_of(b, 2), "state"), "cancelled");
	assert_null(end_of(b, 1));
	for (int64_t i = 1; i <= 12; i++) {
		assert_true(b->processes[i].told);
		end_process(b, i, SIGTERM);
	}
	deliver_all(b);
	assert_string_equal(text(end_of(b, 1), "state"), "cancelled");
	assert_int_equal(b->nprocesses, 12);
}

BED_TEST(running_task_is_not_cancelled_with_the_queued_ones)
{
	submit(b, "{'argv':['x'],'ranks':12},{'argv':['y']}");
	ask(b, "{'op':'progress'}");
	assert_int_equal(number(event(b, "ok"), "running"), 1);
	request(b, "{'op':'cancel','ids':[1,2],'queued':true}");
	assert_string_equal(text(end_of(b, 2), "state"), "cancelled");
	for (int64_t i = 1; i <= 12; i++) {
		assert_false(b->processes[i].told);
		end_process(b, i, 0);
	}
	deliver_all(b);
	assert_string_equal(text(end_of(b, 1), "state"), "done");
	ask(b, "{'op':'progress'}");
	assert_int_equal(number(event(b, "ok"), "running"), 0);
}

BED_TEST(task_of_negative_priority_starts_last)
{
	submit(b, "{'argv':['x'],'ranks':12}");
	submit(b, "{'argv':['x'],'ranks':12,'priority':-5},{'argv':['x'],'ranks':12}");
	for (int64_t i = 1; i <= 12; i++)
		end_process(b, i, 0);
	deliver_all(b);
	for (int64_t i = 13; i <= 24; i++)
		end_process(b, i, 0);
	deliver_all(b);
	assert_non_null(end_of(b, 3));
	assert_null(end_of(b, 2));
	submit(b, "{'argv':['x'],'priority':-1000001}");
	assert_int_equal(json_array_size(json_object_get(event(b, "submitted"), "refused")), 1);
}

BED_TEST(tasks_are_cancelled_by_name)
{
	submit(b, "{'argv':['x'],'ranks':12,'name':'a'},{'argv':['y'],'name':'b'},{'argv':['y'],'name':'a'},{'argv':['y']}");
	ask(b, "{'op':'cancel','name':'a'}");
	assert_int_equal(number(event(b, "ok"), "tasks"), 2);
	deliver_all(b);
	assert_true(b->processes[1].told);
	assert_string_equal(text(end_of(b, 3), "state"), "cancelled");
	assert_null(end_of(b, 2));
}

BED_TEST(tied_tasks_end_with_their_client)
{
	ask(b, "{'op':'submit','tied':true," PROFILE ",'tasks':[{'argv':['x']}]}");
	submit(b, "{'argv':['x']}");
	dvm_head_client_closed(b->head, CLIENT, b->now);
	deliver_all(b);
	assert_true(b->processes[1].told);
	assert_false(b->processes[2].told);
}

BED_TEST(tasks_of_a_lost_node_run_elsewhere)
{
	submit(b, "{'argv':['x'],'ranks':12,'name':'all'},{'argv':['x'],'cores':4}");
	lose(b, 1);
	deliver_all(b);
	assert_string_equal(text(event(b, "node"), "state"), "lost");
	assert_int_equal(number(event(b, "node"), "tasks"), 1);
	/* The first can never run any more; its other ranks are killed. */
	for (int64_t i = 1; i <= 12; i++)
		if (b->processes[i].runs) {
			assert_true(b->processes[i].killed);
			end_process(b, i, SIGKILL);
		}
	deliver_all(b);
	assert_non_null(strstr(text(end_of(b, 1), "why"), "lost"));
	assert_int_equal(b->nprocesses, 13);
	lose(b, b->processes[13].node);
	deliver_all(b);
	assert_int_equal(b->nprocesses, 14);
	assert_null(end_of(b, 2));
	end_now(b, 14, 0);
	assert_int_equal(number(end_of(b, 2), "code"), 0);
	assert_int_equal(number(end_of(b, 2), "instance"), 1);
}

BED_TEST(drained_nodes_get_nothing)
{
	ask(b, "{'op':'drain','node':'n0'}");
	ask(b, "{'op':'drain','node':'n1'}");
	submit(b, "{'argv':['x'],'cores':4},{'argv':['x'],'cores':4}");
	assert_int_equal(b->nprocesses, 1);
	assert_int_equal(b->processes[1].node, 2);
	request(b, "{'op':'undrain','node':'n1'}");
	assert_int_equal(b->nprocesses, 2);
	assert_int_equal(b->processes[2].node, 1);
}

BED_TEST(placed_tasks_are_where_they_should_be)
{
	submit(b, "{'argv':['x'],'place':[{'node':'n2','cores':[3]},{'node':'n0','cores':[1]}]}");
	assert_int_equal(b->nprocesses, 2);
	assert_int_equal(b->processes[1].node + b->processes[2].node, 2);
	assert_int_equal(free_cores(b), NODES * CORES - 2);
}

BED_TEST(tasks_run_on_the_nodes_that_they_name)
{
	submit(b, "{'argv':['x'],'on':['n2']}");
	submit(b, "{'argv':['x'],'on':['n1','n2'],'nodes':2,'ranks':3}");
	assert_int_equal(b->nprocesses, 4);
	assert_int_equal(b->processes[1].node, 2);
	for (int i = 2; i <= 4; i++)
		assert_int_not_equal(b->processes[i].node, 0);
	assert_int_equal(free_cores(b), NODES * CORES - 4);
}

BED_TEST(tasks_on_impossible_nodes_are_refused)
{
	static const struct {
		const char *task, *key, *why;
	} wrong[] = {
		{ "{'argv':['x'],'on':['n9']}", "on", "no node n9" },
		{ "{'argv':['x'],'on':[3]}", "on", "no node" },
		{ "{'argv':['x'],'on':'n1'}", "on", "must be a list" },
		{ "{'argv':['x'],'on':[]}", "on", "must be a list" },
		{ "{'argv':['x'],'on':['n1','n1']}", "on", "named twice" },
		{ "{'argv':['x'],'on':['n1'],'place':[{'node':'n1','cores':[1]}]}", "on", "place" },
		{ "{'argv':['x'],'on':['n1'],'ranks':5}", "ranks", "on 1 node (4 cores)" },
	};

	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		json_t *refused;

		submit(b, wrong[i].task);
		refused = json_array_get(json_object_get(event(b, "submitted"), "refused"), 0);
		assert_string_equal(text(refused, "key"), wrong[i].key);
		assert_non_null(strstr(text(refused, "why"), wrong[i].why));
	}
	assert_int_equal(b->nprocesses, 0);
}

BED_TEST(a_typo_does_not_end_a_dvm)
{
	ask(b, "{'op':'down','work':'wiat'}");
	assert_non_null(strstr(text(event(b, "error"), "why"), "\"work\" must be"));
	ask(b, "{'op':'down','work':1}");
	assert_non_null(strstr(text(event(b, "error"), "why"), "\"work\" must be"));
	submit(b, "{'argv':['x']}");
	assert_non_null(event(b, "submitted"));
	assert_false(b->ended);
}

BED_TEST(a_dvm_goes_down_when_its_work_is_done)
{
	submit(b, "{'argv':['x']}");
	ask(b, "{'op':'down'}");
	assert_non_null(strstr(text(event(b, "error"), "why"), "1 task has not ended"));
	ask(b, "{'op':'down','work':'wait'}");
	assert_false(b->ended);
	submit(b, "{'argv':['x']}");
	assert_non_null(strstr(text(event(b, "error"), "why"), "is stopping"));
	end_now(b, 1, 0);
	assert_true(b->ended);
}

BED_TEST(clients_that_wait_are_notified_of_ends)
{
	request(b, "{'op':'submit','watch':false," PROFILE ",'tasks':[{'argv':['x']},{'argv':['x']}]}");
	end_now(b, 1, 0);
	assert_null(end_of(b, 1));
	ask(b, "{'op':'wait','ids':[1,2]}");
	assert_int_equal(number(event(b, "ok"), "tasks"), 2);
	assert_non_null(end_of(b, 1));
	end_now(b, 2, 0);
	assert_non_null(end_of(b, 2));
}

/* A client confirms what it was told; until then another wait covers it, too. */
BED_TEST(wait_covers_what_nobody_has_waited_for)
{
	request(b, "{'op':'submit','watch':false," PROFILE ",'tasks':[{'argv':['x']},{'argv':['x']}]}");
	end_now(b, 1, 3 << 8);
	ask(b, "{'op':'wait','unwaited':true}");
	assert_int_equal(number(event(b, "ok"), "tasks"), 2);
	assert_int_equal(number(end_of(b, 1), "code"), 3);
	ask(b, "{'op':'wait','unwaited':true}");
	assert_int_equal(number(event(b, "ok"), "tasks"), 2);
	ask(b, "{'op':'waited'}");
	ask(b, "{'op':'wait','unwaited':true}");
	assert_int_equal(number(event(b, "ok"), "tasks"), 1);
	ask(b, "{'op':'wait','ids':[1,2]}");
	assert_int_equal(number(event(b, "ok"), "tasks"), 2);
}

TEST(results_that_are_not_kept_are_counted)
{
	const int requests = 101, tasks = 100; /* 100 more than HEAD_KEPT_MAX */
	struct bed *b = bed_create((size_t)(requests * tasks));
	struct buf list;

	buf_init(&list, 8192);
	for (int i = 0; i < tasks; i++)
		assert_int_equal(buf_puts(&list, i ? ",{'argv':['x']}" : "{'argv':['x']}"), 0);
	for (int i = 0; i < requests; i++)
		ask(b, "{'op':'submit','watch':false," PROFILE ",'tasks':[%.*s]}", (int)list.len,
		    list.data);
	ask(b, "{'op':'cancel','all':true}");
	ask(b, "{'op':'wait','unwaited':true}");
	assert_int_equal(number(event(b, "ok"), "tasks"), 10000 + status_of(b, "running"));
	assert_int_equal(number(event(b, "ok"), "before"), 100 - status_of(b, "running"));
	assert_int_equal(number(event(b, "ok"), "before_failed"), 100 - status_of(b, "running"));
	ask(b, "{'op':'wait','ids':[50]}");
	assert_int_equal(number(event(b, "ok"), "unkept"), 1);
	ask(b, "{'op':'waited'}");
	ask(b, "{'op':'wait','unwaited':true}");
	assert_int_equal(number(event(b, "ok"), "before"), 0);
	buf_free(&list);
}

/* The client that has it goes, and with it the task. */
BED_TEST(task_of_run_is_no_other_waits_business)
{
	request(b, "{'op':'submit','tied':true," PROFILE ",'tasks':[{'argv':['x']}]}");
	end_now(b, 1, 3 << 8);
	ask(b, "{'op':'wait','unwaited':true}");
	assert_int_equal(number(event(b, "ok"), "tasks"), 0);
}

/* ---- anything in any order ---- */

static int64_t some_running(const struct bed *b)
{
	int64_t from = rand() % (b->nprocesses + 1);

	for (int64_t i = 0; i <= b->nprocesses; i++) {
		int64_t p = (from + i) % (b->nprocesses + 1);

		if (p && b->processes[p].runs)
			return p;
	}
	return 0;
}

static void random_event(struct bed *b, int *submitted)
{
	static const int32_t ends[] = { 0, 0, 1 << 8, SIGTERM, SIGKILL };
	struct fake_node *n = &b->nodes[rand() % NODES];
	int64_t process;

	switch (rand() % 13) {
	case 0:
		if (b->nprocesses > PROCESSES - 100)
			break;
		ask(b, "{'op':'submit'," PROFILE ",'tasks':[{'argv':['x'],'ranks':%d,'cores':%d,'retries':%d,'time':%d}]}",
		    1 + rand() % 5, rand() % 2, rand() % 2, rand() % 3);
		if (!json_array_size(json_object_get(event(b, "submitted"),
						     "refused")))
			++*submitted;
		break;
	case 1:
		if (*submitted)
			ask(b, "{'op':'cancel','ids':[%d]}",
			    1 + rand() % *submitted);
		break;
	case 2:
		b->now.ms += rand() % 400;
		break;
	case 3:
	case 4:
	case 5:
		process = some_running(b);
		if (process)
			end_process(b, process, ends[rand() % 8 % 5]);
		break;
	case 12:
		if (rand() % 8 == 0)
			dvm_node_continued(n->node, b->now);
		break;
	case 6:
	case 7:
	case 8:
		if (!n->lost)
			deliver_up(n);
		break;
	default:
		if (!n->lost) {
			dvm_node_turn(n->node, b->now);
			deliver_down(n);
		}
	}
}

static void finish(struct bed *b)
{
	int64_t process;

	for (;;) {
		pass(b, 2000); /* doubts end, too */
		process = some_running(b);
		if (!process)
			return;
		end_process(b, process, 0);
	}
}

static void run_seed(unsigned seed)
{
	struct bed *b = bed_create(1000);
	int submitted = 0, left = NODES;

	srand(seed);
	for (int i = 0; i < 600; i++) {
		random_event(b, &submitted);
		if (left > 1 && rand() % 400 == 0 && !b->nodes[left - 1].lost)
			lose(b, (uint32_t)--left);
	}
	finish(b);
	for (int i = 1; i <= submitted; i++)
		if (!end_of(b, i))
			fail_msg("seed %u: nothing was told of the end of task %d",
				 seed, i);
	assert_int_equal(status_of(b, "running"), 0);
	assert_int_equal(status_of(b, "queued"), 0);
	assert_int_equal(free_cores(b), left * CORES);
	unit_end(b);
}

TEST(every_task_ends_once_whatever_happens)
{
	for (unsigned seed = 0; seed < 200; seed++)
		run_seed(seed);
}

static void ask_as(struct bed *b, uint32_t client, const char *line)
{
	dvm_json_request(b->head, client, line, strlen(line), b->now);
	dvm_head_turn(b->head, b->now);
}

BED_TEST(last_of_the_clients_that_leave_ends_the_dvm)
{
	static const char leave[] = "{\"op\":\"down\",\"work\":\"cancel\",\"last\":true}";

	dvm_head_client_opened(b->head, OTHER_CLIENT);
	ask_as(b, CLIENT, leave);
	assert_int_equal(number(event(b, "ok"), "others"), 1);
	ask(b, "{'op':'hello','version':%d}", DVM_VERSION);
	assert_true(json_is_false(json_object_get(event(b, "hello"), "ending")));
	ask_as(b, OTHER_CLIENT, leave); /* the first one is still connected */
	ask(b, "{'op':'hello','version':%d}", DVM_VERSION);
	assert_true(json_is_true(json_object_get(event(b, "hello"), "ending")));
}

BED_TEST(client_that_looks_is_no_other_client)
{
	char hello[64];
	static const char leave[] = "{\"op\":\"down\",\"work\":\"cancel\",\"last\":true}";

	dvm_head_client_opened(b->head, OTHER_CLIENT);
	snprintf(hello, sizeof(hello), "{\"op\":\"hello\",\"version\":%d,\"looks\":true}",
		 DVM_VERSION);
	ask_as(b, OTHER_CLIENT, hello);
	ask_as(b, CLIENT, leave);
	assert_null(json_object_get(event(b, "ok"), "others"));
	ask(b, "{'op':'hello','version':%d}", DVM_VERSION);
	assert_true(json_is_true(json_object_get(event(b, "hello"), "ending")));
}

BED_TEST(client_before_the_one_that_started_the_dvm_does_not_end_it)
{
	static const char leave[] = "{\"op\":\"down\",\"work\":\"stop\",\"last\":true}";

	dvm_head_await_starter(b->head, true);
	ask_as(b, CLIENT, leave);
	assert_int_equal(number(event(b, "ok"), "others"), 1);
	dvm_head_client_opened(b->head, OTHER_CLIENT);
	dvm_head_await_starter(b->head, false);
	ask_as(b, CLIENT, leave);
	assert_int_equal(number(event(b, "ok"), "others"), 1);
}

TEST_ON(several_dvms_give_no_number_twice, struct bed *b, bed_create_member(100, 2, 3))
{
	ask(b, "{'op':'hello','version':%d}", DVM_VERSION);
	assert_int_equal(number(event(b, "hello"), "members"), 3);
	submit(b, "{'argv':['a']},{'argv':['b']},{'argv':['c']}");
	for (int i = 0; i < 3; i++)
		assert_int_equal(json_integer_value(json_array_get(json_object_get(
			event(b, "submitted"), "ids"), i)), 2 + 3 * i);
	ask(b, "{'op':'show','id':5}");
	assert_int_equal(number(json_object_get(event(b, "task"), "task"), "id"), 5);
	ask(b, "{'op':'cancel','ids':[4]}");
	assert_string_equal(text(event(b, "error"), "why"), "there is no task 4 here");
}
