/* SPDX-License-Identifier: BSD-3-Clause */
/* The life of tasks on nodes that outlive their head. */
#include "orphan-bed.h"

#include <signal.h>
#include <stdlib.h>

BED_TEST(running_tasks_go_on_under_the_next_head)
{
	struct dvm_resumed found;

	run(b, "{'argv':['a']},{'argv':['b'],'ranks':5,'cores':2}");
	assert_int_equal(b->nprocesses, 6);
	found = change_head(b, true);
	assert_int_equal(found.adopted, 2);
	assert_int_equal(found.again + found.lost, 0);
	assert_int_equal(status(b, "running"), 2);
	assert_int_equal(instance(b, 2), 0);
	end_all(b, 0);
	deliver_all(b);
	assert_string_equal(shown_state(b, 1), "done");
	assert_string_equal(shown_state(b, 2), "done");
	assert_int_equal(b->nprocesses, 6);
	assert_nothing_is_kept(b);
}

/* New tasks do not get the cores of a running one. */
BED_TEST(cores_of_running_tasks_stay_taken)
{
	run(b, "{'argv':['a'],'cores':4},{'argv':['b'],'cores':2}");
	change_head(b, false);
	run(b, "{'argv':['c'],'ranks':3,'cores':2},{'argv':['d']}");
	assert_string_equal(shown_state(b, 3), "running");
	assert_string_equal(shown_state(b, 4), "queued");
	finish(b);
	assert_int_equal(status(b, "ended"), 4);
	assert_int_equal(status(b, "failed"), 0);
}

BED_TEST(ends_without_a_head_are_reported_to_the_next)
{
	run(b, "{'argv':['a']},{'argv':['b'],'ranks':5,'cores':2}");
	lose_head(b);
	end_process(b, process_of(b, 1), 3 << 8);
	end_process(b, process_of(b, 2), 0);
	next_head(b, false);
	assert_string_equal(shown_state(b, 1), "failed");
	assert_int_equal(json_integer_value(json_object_get(task(b, 1), "code")), 3);
	assert_string_equal(shown_state(b, 2), "running");
	finish(b);
	assert_string_equal(shown_state(b, 2), "done");
	assert_int_equal(ends(b, 1) + ends(b, 2), 2);
	assert_nothing_is_kept(b);
}

/* Between a task's end in the journal and what the node hears of it. */
BED_TEST(an_end_counts_once)
{
	run(b, "{'argv':['a']}");
	end_process(b, 1, 0);
	deliver_up(&b->nodes[0]);
	deliver_up(&b->nodes[1]);
	deliver_up(&b->nodes[2]);
	assert_int_equal(ends(b, 1), 1);
	for (int i = 0; i < NODES; i++)
		buf_clear(&b->nodes[i].down);
	assert_int_equal(change_head(b, false).ended, 1);
	finish(b);
	assert_int_equal(ends(b, 1), 1);
	assert_int_equal(b->nprocesses, 1);
	assert_nothing_is_kept(b);
}

/* The node keeps an end that the journal does not have. */
BED_TEST(an_end_that_cannot_be_written_is_kept)
{
	run(b, "{'argv':['a']}");
	b->full = true;
	end_now(b, 1, 5 << 8);
	b->full = false;
	change_head(b, false);
	assert_int_equal(json_integer_value(json_object_get(task(b, 1), "code")), 5);
	assert_int_equal(b->nprocesses, 1);
}

BED_TEST(unstarted_tasks_are_run_by_the_next_head)
{
	struct dvm_resumed found;

	ask(b, SUBMIT "{'argv':['a']},{'argv':['b']}]}");
	for (int i = 0; i < NODES; i++)
		buf_clear(&b->nodes[i].down);
	found = change_head(b, false);
	assert_int_equal(found.again, 2);
	finish(b);
	assert_int_equal(starts(b, 1), 1);
	assert_int_equal(starts(b, 2), 1);
	assert_int_equal(status(b, "ended"), 2);
}

/* One of a task's nodes is lost with the head, or has not got its part. */
static void check_partial(bool gone, bool once)
{
	struct bed *b = bed_create();
	int last = NODES - 1;

	ask(b, SUBMIT "{'argv':['a'],'ranks':4,'cores':2}]}");
	while (!b->nodes[last].down.len)
		last--;
	if (gone)
		deliver_all(b);
	else
		buf_clear(&b->nodes[last].down);
	b->nodes[last].gone = gone;
	for (int64_t i = 1; gone && i <= b->nprocesses; i++)
		if (b->processes[i].node == (uint32_t)last)
			end_process(b, i, SIGKILL);
	assert_int_equal(change_head(b, once).adopted, 1);
	deliver_all(b);
	assert_true(b->processes[1].killed && b->processes[2].killed);
	reap(b);
	if (once) {
		assert_string_equal(shown_state(b, 1), "failed");
		assert_int_equal(ends(b, 1), 1);
	} else {
		assert_int_equal(instance(b, 1), 1);
	}
	finish(b);
	assert_int_equal(ends(b, 1), 1);
	unit_end(b);
}

TEST(a_task_of_which_a_part_is_missing)
{
	check_partial(false, false);
	check_partial(false, true);
	check_partial(true, false);
	check_partial(true, true);
}

BED_TEST(a_failure_ends_the_other_parts)
{
	run(b, "{'argv':['a'],'ranks':6,'cores':2}");
	lose_head(b);
	end_process(b, 1, 1 << 8); /* another rank of its node still runs */
	next_head(b, false);
	deliver_all(b);
	for (int i = 2; i <= 6; i++)
		assert_true(b->processes[i].polite);
	reap(b);
	assert_string_equal(shown_state(b, 1), "failed");
	assert_int_equal(json_integer_value(json_object_get(task(b, 1), "code")), 1);
}

/* The part here has ended well, so other parts would wait for it forever. */
BED_TEST(a_failure_that_is_found_while_there_is_no_head)
{
	const struct node_failure failed = { .status = 1 << 8, .why = "fence 0" };
	struct fake_node *n;

	run(b, "{'argv':['a'],'ranks':2,'nodes':2}");
	n = &b->nodes[b->processes[1].node];
	end_now(b, 1, 0);
	lose_head(b);
	dvm_node_failed_late(n->node, 1, 0, &failed);
	dvm_node_turn(n->node, b->now);
	buf_clear(&n->up);
	next_head(b, false);
	deliver_all(b);
	assert_true(b->processes[2].polite);
	reap(b);
	assert_string_equal(json_string_value(json_object_get(task(b, 1), "why")),
			    "fence 0");
}

/* The end of another task says that their node is to be drained. */
BED_TEST(other_ranks_end_before_a_task_of_a_drained_node_runs_again)
{
	struct fake_node *n = &b->nodes[1];

	n->lacks = true;
	run(b, "{'argv':['a'],'ranks':6},{'argv':['b'],'ranks':6}");
	assert_int_equal(starts(b, 1) + starts(b, 2), 8);
	lose_head(b);
	for (int64_t i = 1; i <= b->nprocesses; i++)
		if (b->processes[i].task == 1)
			end_process(b, i, 0);
	for (int i = 0; i < 3; i++) {
		b->now.ms += 1000;
		tell_node(n, &n->down);
	}
	buf_clear(&n->up);
	assert_int_equal(next_head(b, false).adopted, 2);
	deliver_all(b);
	assert_int_equal(status(b, "running"), 1);
	assert_int_equal(starts(b, 2), 4);
	assert_true(b->processes[process_of(b, 2)].polite);
	n->lacks = false;
	reap(b);
	assert_int_equal(instance(b, 2), 1);
	ask(b, "{'op':'undrain','node':'n1'}");
	finish(b);
	assert_int_equal(status(b, "failed"), 0);
	assert_nothing_is_kept(b);
}

BED_TEST(cancelled_tasks_are_ended_by_the_next_head)
{
	ask(b, SUBMIT "{'argv':['a']},{'argv':['b']}]}");
	ask(b, SUBMIT "{'argv':['c']}],'tied':true}");
	deliver_all(b);
	ask(b, "{'op':'cancel','ids':[2]}");
	for (int i = 0; i < NODES; i++)
		buf_clear(&b->nodes[i].down);
	change_head(b, false);
	deliver_all(b);
	assert_false(b->processes[1].polite);
	assert_true(b->processes[2].polite && b->processes[3].polite);
	reap(b);
	assert_string_equal(shown_state(b, 1), "running");
	assert_string_equal(shown_state(b, 2), "cancelled");
	assert_string_equal(shown_state(b, 3), "cancelled");
	assert_int_equal(b->nprocesses, 3);
}

/* The journal has lost its begin: nobody knows of the task. */
BED_TEST(task_unknown_to_the_journal_is_killed)
{
	run(b, "{'argv':['a']}");
	lose_head(b);
	b->journal.len = JOURNAL_HEADER_SIZE;
	assert_int_equal(next_head(b, false).adopted, 0);
	deliver_all(b);
	assert_true(b->processes[1].killed);
	reap(b);
	assert_int_equal(ends(b, 1), 0);
	assert_nothing_is_kept(b);
}

/* Numbers of profiles are a head's: this one has not heard of the other's. */
BED_TEST(each_head_has_its_own_profiles)
{
	run(b, "{'argv':['a']},{'argv':['b']}");
	end_process(b, 1, 0); /* the other has it still */
	lose_head(b);
	b->journal.len = JOURNAL_HEADER_SIZE;
	next_head(b, false);
	ask(b, "{'op':'submit','profile':{'id':'r','cwd':'/usr','env':{}},'tasks':[{'argv':['c'],'nodes':3,'ranks':3}]}");
	deliver_all(b);
	assert_int_equal(b->nprocesses, 5);
	assert_string_equal(b->processes[1].cwd, "/");
	for (int i = 3; i <= 5; i++)
		assert_string_equal(b->processes[i].cwd, "/usr");
}

/* A power failure loses starts that were not synced, and what was started goes on. */
BED_TEST(try_goes_on_whose_start_the_journal_has_lost)
{
	size_t len;

	run(b, "{'argv':['a'],'retries':1}");
	len = b->journal.len;
	end_now(b, 1, 1 << 8);
	assert_int_equal(b->nprocesses, 2);
	lose_head(b);
	b->journal.len = len;
	assert_int_equal(next_head(b, false).adopted, 1);
	deliver_all(b);
	assert_false(b->processes[2].killed);
	assert_string_equal(shown_state(b, 1), "running");
	assert_int_equal(instance(b, 1), 1);
	finish(b);
	assert_int_equal(ends(b, 1), 1);
	assert_int_equal(b->nprocesses, 2);
}

/* Loses DONE, and keeps all else that the head has sent to the node. */
static void lose_done(struct fake_node *n)
{
	struct buf in = n->down;
	struct dvm_msg m;
	struct cursor c;

	buf_init(&n->down, QUEUE_MAX);
	cursor_init(&c, in.data, in.len);
	while (cursor_left(&c)) {
		assert_int_equal(dvm_msg_unpack(&c, &m), 0);
		if (m.type != DVM_DONE)
			assert_int_equal(dvm_msg_pack(&n->down, &m), 0);
	}
	buf_free(&in);
}

/* The first has ended, and the second was given its cores: the journal has lost both. */
BED_TEST(task_goes_on_that_has_the_cores_of_one_that_ended)
{
	struct fake_node *n;
	size_t len;

	run(b, "{'argv':['a'],'cores':4},{'argv':['b'],'cores':4},{'argv':['c'],'cores':4},{'argv':['d'],'cores':4}");
	assert_int_equal(b->nprocesses, 3);
	len = b->journal.len;
	n = &b->nodes[b->processes[1].node];
	end_process(b, 1, 0);
	deliver_up(n);
	lose_done(n);
	deliver_all(b);
	assert_int_equal(b->nprocesses, 4);
	lose_head(b);
	b->journal.len = len;
	assert_int_equal(next_head(b, false).adopted, 4);
	deliver_all(b);
	assert_string_equal(shown_state(b, (int)b->processes[1].task), "done");
	assert_string_equal(shown_state(b, 4), "running");
	assert_false(b->processes[4].killed);
	finish(b);
	assert_int_equal(b->nprocesses, 4);
	assert_nothing_is_kept(b);
}

/* The journal has lost the task, and its node ends it. */
BED_TEST(number_that_a_node_holds_is_not_given_again)
{
	run(b, "{'argv':['a']}");
	lose_head(b);
	b->journal.len = JOURNAL_HEADER_SIZE;
	next_head(b, false);
	run(b, "{'argv':['b']}");
	assert_int_equal(b->processes[2].task, 2);
}

BED_TEST(end_is_kept_of_a_task_that_does_not_fit_any_more)
{
	run(b, "{'argv':['a'],'ranks':12}");
	end_all(b, 3 << 8);
	deliver_all(b);
	assert_string_equal(shown_state(b, 1), "failed");
	run(b, "{'argv':['c']},{'argv':['b'],'ranks':12}");
	lose_head_and_node(b, (b->processes[13].node + 1) % NODES);
	next_head(b, false);
	assert_string_equal(shown_state(b, 1), "failed");
	assert_int_equal(json_integer_value(json_object_get(task(b, 1), "code")), 3);
	assert_string_equal(shown_state(b, 2), "running");
	pass(b, HEAD_HOPE_MS);
	assert_int_equal(json_integer_value(json_object_get(task(b, 3), "code")), 127);
	assert_int_equal(ends(b, 3), 1);
}

/* The node's ranks may run until their lease is over. */
BED_TEST(work_of_a_node_that_is_not_heard_waits)
{
	uint32_t node;

	b->away_ms = 50000;
	run(b, "{'argv':['a']}");
	node = b->processes[1].node;
	lose_head_and_node(b, node);
	assert_int_equal(next_head(b, false).again, 1);
	deliver_all(b);
	assert_int_equal(b->nprocesses, 1);
	ask(b, "{'op':'why','id':1}");
	assert_non_null(strstr(json_string_value(json_array_get(
		json_object_get(b->answer, "reasons"), 0)), "waits for 50 s"));
	pass(b, HEAD_HOPE_MS);
	assert_int_equal(dvm_head_deadline(b->head), b->now.ms + 50000 - HEAD_HOPE_MS);
	end_process(b, 1, SIGKILL);
	pass(b, 50000 - HEAD_HOPE_MS);
	assert_int_equal(b->nprocesses, 2);
	finish(b);
	assert_int_equal(ends(b, 1), 1);
}

BED_TEST(work_of_a_daemon_that_is_gone_does_not_wait)
{
	b->away_ms = 50000;
	run(b, "{'argv':['a']}");
	lose_head(b);
	b->nodes[b->processes[1].node].gone = b->gone_for_sure = true;
	end_process(b, 1, SIGKILL);
	assert_int_equal(next_head(b, false).again, 1);
	deliver_all(b);
	assert_int_equal(b->nprocesses, 2);
}

/* The head after the next one calls it, too. */
BED_TEST(place_of_a_node_that_is_not_heard_is_known)
{
	struct dvm_address where;

	b->away_ms = 50000;
	lose_head_and_node(b, 1);
	next_head(b, false);
	assert_true(dvm_head_is_unheard(b->head));
	assert_string_equal(dvm_head_node_where(b->head, 1, &where), "n1");
	assert_int_equal(where.port, 7001);
	b->now.ms += 50000;
	dvm_head_turn(b->head, b->now);
	assert_false(dvm_head_is_unheard(b->head));
}

/* The task ends when its ranks have: a client that hears of the end may go on. */
BED_TEST(task_of_a_node_that_is_not_heard_ends_when_its_ranks_have)
{
	b->away_ms = 50000;
	run(b, "{'argv':['a']}");
	lose_head_and_node(b, b->processes[1].node);
	next_head(b, false);
	ask(b, "{'op':'cancel','ids':[1]}");
	assert_string_equal(shown_state(b, 1), "queued");
	end_process(b, 1, SIGKILL);
	pass(b, 50000);
	assert_string_equal(shown_state(b, 1), "cancelled");
	assert_int_equal(b->nprocesses, 1);
}

/* With `down` nobody waits for longer than ten seconds. */
BED_TEST(cancelled_task_of_a_node_that_is_not_heard_does_not_keep_the_head)
{
	b->away_ms = 50000;
	run(b, "{'argv':['a']}");
	lose_head_and_node(b, b->processes[1].node);
	next_head(b, false);
	ask(b, "{'op':'down','work':'cancel'}");
	pass(b, 9999);
	assert_false(b->down);
	b->now.ms++;
	deliver_all(b);
	assert_true(b->down);
	assert_int_equal(ends(b, 1), 1);
	end_process(b, 1, SIGKILL);
}

/* Parts that are heard have ended, and the other one may still run. */
BED_TEST(task_of_which_a_part_is_not_heard_ends_when_that_has)
{
	uint32_t node;

	b->away_ms = 50000;
	b->once = true;
	run(b, "{'argv':['a'],'ranks':4,'cores':2}");
	lose_head(b);
	node = b->processes[1].node;
	b->nodes[node].gone = true;
	assert_int_equal(next_head(b, true).adopted, 1);
	deliver_all(b);
	reap(b);
	assert_string_equal(shown_state(b, 1), "queued");
	for (int64_t i = 1; i <= b->nprocesses; i++)
		if (b->processes[i].node == node)
			end_process(b, i, SIGKILL);
	pass(b, 50000);
	assert_string_equal(shown_state(b, 1), "failed");
	assert_int_equal(ends(b, 1), 1);
}

BED_TEST(task_to_be_run_once_fails_with_its_node)
{
	uint32_t node;

	b->once = true;
	run(b, "{'argv':['a']}");
	change_head(b, true);
	node = b->processes[1].node;
	dvm_head_node_lost(b->head, node, "it is gone", b->now);
	dvm_head_turn(b->head, b->now);
	assert_string_equal(shown_state(b, 1), "failed");
	deliver_all(b);
	assert_int_equal(b->nprocesses, 1);
}

static void told_to_stop(bool now)
{
	const struct dvm_msg stop = { .type = DVM_STOP, .stop.now = now };
	struct bed *b = bed_create();

	run(b, "{'argv':['a'],'cores':4},{'argv':['b'],'cores':4},{'argv':['c'],'cores':4}");
	lose_head(b);
	assert_int_equal(dvm_msg_pack(&b->nodes[0].down, &stop), 0);
	deliver_down(&b->nodes[0]);
	assert_int_equal(b->nodes[0].left, now);
	for (int i = 1; i <= 3; i++)
		assert_int_equal(b->processes[i].polite,
				 !now && b->processes[i].node == 0);
	b->now.ms += 500;
	dvm_node_turn(b->nodes[0].node, b->now);
	end_killed(b);
	assert_true(b->nodes[0].left);
	make_head(b, true);
	unit_end(b);
}

TEST(a_node_to_which_no_head_comes)
{
	told_to_stop(false);
	told_to_stop(true);
}

/* ---- any moment ---- */

static uint32_t any(struct bed *b, uint32_t below)
{
	b->random = b->random * UINT64_C(6364136223846793005) + 1442695040888963407;
	return (uint32_t)(b->random >> 33) % below;
}

static void some_process_ends(struct bed *b)
{
	int64_t i = b->nprocesses ? 1 + any(b, (uint32_t)b->nprocesses) : 0;

	if (i && b->processes[i].runs)
		end_process(b, i, b->processes[i].killed ? SIGKILL : 0);
}

static void some_step(struct bed *b)
{
	struct fake_node *n = &b->nodes[any(b, NODES)];

	b->now.ms++;
	b->now.wall_ns += 1000000;
	switch (any(b, 4)) {
	case 0: deliver_down(n); break;
	case 1: deliver_up(n); break;
	default: some_process_ends(b);
	}
}

/* The last that it has sent is lost with it, on some nodes. */
static void lose_head_somehow(struct bed *b)
{
	for (int i = 0; i < NODES; i++)
		if (any(b, 2))
			buf_clear(&b->nodes[i].down);
	lose_head(b);
	for (uint32_t i = any(b, 8); i; i--)
		some_process_ends(b);
	for (int i = 0; i < NODES; i++)
		buf_clear(&b->nodes[i].up);
}

static void submit_some(struct bed *b, int *wide)
{
	for (int i = 1; i <= 24; i++) {
		wide[i] = i % 4 == 0;
		if (wide[i])
			ask(b, SUBMIT "{'argv':['w'],'ranks':5,'cores':1,'nodes':3}]}");
		else
			ask(b, SUBMIT "{'argv':['n'],'cores':%d}]}", 1 + (int)any(b, 2));
	}
}

/* A task of one node is started once; one of several may be ended half begun. */
static void check_seed(uint64_t seed)
{
	struct bed *b = bed_create();
	int wide[25];

	b->random = seed;
	submit_some(b, wide);
	for (int heads = 0; heads < 6; heads++) {
		for (uint32_t i = any(b, 40); i; i--)
			some_step(b);
		lose_head_somehow(b);
		next_head(b, false);
	}
	finish(b);
	for (uint64_t i = 1; i <= 24; i++) {
		assert_int_equal(ends(b, i), 1);
		if (!wide[i])
			assert_int_equal(starts(b, i), 1);
	}
	assert_int_equal(status(b, "failed"), 0);
	assert_int_equal(status(b, "ended"), 24);
	assert_nothing_is_kept(b);
	unit_end(b);
}

TEST(heads_are_lost_at_any_moment)
{
	for (uint64_t seed = 1; seed <= 300; seed++)
		check_seed(seed);
}
