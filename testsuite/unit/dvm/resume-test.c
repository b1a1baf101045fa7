/* SPDX-License-Identifier: BSD-3-Clause */
/* Heads that are lost, and others that go on with their journal. */
#include "resume-bed.h"

#include <stdlib.h>

BED_TEST(ended_tasks_stay_ended_and_the_others_go_on)
{
	struct dvm_resumed found;

	ask(&b->p, SUBMIT "{'argv':['a'],'cores':3},{'argv':['b'],'cores':3},{'argv':['c'],'cores':3,'name':'last'}]}");
	assert_int_equal(b->submitted, 3);
	end_task(b, 1, 7);
	found = next_head(b);
	assert_int_equal(found.ended, 1);
	assert_int_equal(found.queued, 2);
	assert_int_equal(found.again, 2);
	assert_int_equal(status(&b->p, "ended"), 1);
	assert_int_equal(status(&b->p, "failed"), 1);
	assert_int_equal(b->known[1].launches, 1);
	assert_int_equal(b->known[3].instance, 1);
	ask(&b->p, "{'op':'show','id':1}");
	assert_int_equal(json_integer_value(json_object_get(
		json_object_get(b->p.answer, "task"), "code")), 7);
	end_all(b);
	ask(&b->p, SUBMIT "{'argv':['d']}]}");
	end_all(b);
	assert_int_equal(status(&b->p, "ended"), 4);
	assert_each_has_ended_once(b);
}

/* A part ends whose task has printed this, and has a file. */
static void end_with_output(struct bed *b, size_t i, const char *out, size_t len)
{
	const struct part p = b->parts[i];
	const struct dvm_msg m = {
		.type = DVM_ENDED,
		.ended = { .task = p.task, .instance = p.instance, .out = { out, len },
			   .err = { out, len }, .files = { "7.out", 6 }, .unkept = { "full", 4 },
			   .started_ns = b->p.now.wall_ns, .ended_ns = b->p.now.wall_ns },
	};

	b->parts[i] = b->parts[--b->nparts];
	say(&b->p, p.node, &m);
}

static json_t *shown(struct bed *b, int id)
{
	ask(&b->p, "{'op':'show','id':%d}", id);
	return json_object_get(b->p.answer, "task");
}

BED_TEST(output_of_ended_tasks_is_in_the_journal)
{
	json_t *task;

	ask(&b->p, "{'op':'submit','profile':{'id':'o','cwd':'/','env':{},'outputs':'/outputs'},"
		   "'tasks':[{'argv':['a']},{'argv':['b']}]}");
	end_with_output(b, 0, "hello", 5);
	end_task(b, 2, 0);
	for (int i = 0; i < 2; i++) {
		next_head(b);
		task = shown(b, 1);
		assert_string_equal(json_string_value(json_object_get(task, "out")), "hello");
		assert_string_equal(json_string_value(json_array_get(
			json_object_get(task, "files"), 0)), "/outputs/7.out");
		assert_string_equal(json_string_value(json_object_get(task, "files_lost")), "full");
		task = shown(b, 2);
		assert_null(json_object_get(task, "out"));
		assert_null(json_object_get(task, "output_lost"));
		make_smaller(b);
	}
}

/* So that the journal of tasks that print much does not grow without a limit. */
BED_TEST(smaller_journal_has_the_output_of_the_last_tasks_only)
{
	static char out[DVM_TAIL_MAX];
	const int tasks = 1200; /* with 8 KiB each */

	memset(out, 'x', sizeof(out));
	for (int i = 0; i < tasks; i++) {
		ask(&b->p, "{'op':'submit','profile':{'id':'p','cwd':'/','env':{'A':'b'}},'tasks':[{'argv':['a']}],'watch':false}");
		end_with_output(b, 0, out, sizeof(out));
	}
	make_smaller(b);
	assert_true(b->p.journal.len < (size_t)9 << 20);
	next_head(b);
	assert_true(json_is_true(json_object_get(shown(b, 1), "output_lost")));
	assert_null(json_object_get(shown(b, 1), "out"));
	assert_int_equal(json_string_length(json_object_get(shown(b, tasks), "out")), sizeof(out));
}

BED_TEST(running_task_with_once_is_lost_with_its_head)
{
	struct dvm_resumed found;

	ask(&b->p, SUBMIT "{'argv':['a'],'cores':3},{'argv':['b'],'cores':3},{'argv':['c'],'cores':3}]}");
	found = another_head(b, b->p.journal.len, true);
	turn(&b->p);
	assert_int_equal(found.lost, 2);
	assert_int_equal(found.queued, 1);
	assert_int_equal(b->known[1].launches, 1);
	end_all(b);
	assert_int_equal(status(&b->p, "failed"), 2);
	assert_each_has_ended_once(b);
}

BED_TEST(the_last_line_that_was_taken_is_known)
{
	ask(&b->p, SUBMIT "{'argv':['a'],'line':4},{'argv':['b'],'line':7},{'argv':[],'line':8}]}");
	b->p.full = true;
	ask(&b->p, SUBMIT "{'argv':['c'],'line':9}]}");
	b->p.full = false;
	ask(&b->p, "{'op':'wait','all':true}");
	assert_int_equal(number(b, "line"), 7);
	end_all(b);
	make_smaller(b);
	next_head(b);
	ask(&b->p, "{'op':'wait','all':true}");
	assert_int_equal(number(b, "line"), 7);
	assert_int_equal(number(b, "ended"), 2);
	assert_int_equal(number(b, "tasks"), 0);
}

TEST_ON(retries_of_a_failed_task_are_made_also_with_once, struct bed *b, bed_create_as(true))
{
	ask(&b->p, SUBMIT "{'argv':['a'],'retries':1},{'argv':['b']}]}");
	end_task(b, 1, 1 << 8);
	end_task(b, 2, 1 << 8);
	assert_int_equal(b->known[1].launches, 2);
	assert_int_equal(b->known[2].launches, 1);
	dvm_head_node_lost(b->p.head, b->parts[0].node, "the test has", b->p.now);
	turn(&b->p);
	assert_int_equal(b->known[1].launches, 2);
	assert_int_equal(status(&b->p, "failed"), 2);
}

/* Daemons that were cut off from their head run ranks until their lease is over. */
BED_TEST(started_task_waits_where_nobody_knows_its_daemon)
{
	b->p.options.away_ms = 50000;
	ask(&b->p, SUBMIT "{'argv':['a'],'ranks':%d},{'argv':['b']}]}", NODES * CORES);
	assert_int_equal(next_head(b).again, 1);
	assert_int_equal(b->known[1].launches, 1);
	assert_int_equal(b->known[2].launches, 1); /* the task was not started before */
	end_task(b, 2, 0);
	b->p.now.ms += 49999;
	turn(&b->p);
	assert_int_equal(b->known[1].launches, 1);
	b->p.now.ms++;
	turn(&b->p);
	assert_int_equal(b->known[1].launches, 2);
	end_all(b);
	assert_each_has_ended_once(b);
}

/* A client that hears of its loss may run it again. */
BED_TEST(task_to_be_run_once_is_lost_when_its_ranks_have_ended)
{
	b->p.options.away_ms = 50000;
	ask(&b->p, SUBMIT "{'argv':['a'],'ranks':%d},{'argv':['b'],'ranks':%d}]}", NODES * CORES,
	    NODES * CORES);
	assert_int_equal(another_head(b, b->p.journal.len, true).lost, 1);
	turn(&b->p);
	end_task(b, 2, 0);
	assert_int_equal(status(&b->p, "failed"), 0);
	b->p.now.ms += 50000;
	turn(&b->p);
	assert_int_equal(status(&b->p, "failed"), 1);
	assert_int_equal(b->known[1].launches, 1);
}

BED_TEST(started_task_does_not_wait_after_a_head_that_left_no_rank)
{
	b->p.options.away_ms = 50000;
	ask(&b->p, SUBMIT "{'argv':['a']}]}");
	dvm_head_stop(b->p.head, b->p.now);
	b->p.now.ms += 500;
	turn(&b->p);
	end_part(b, 0, 1);
	assert_true(b->p.down);
	next_head(b);
	assert_int_equal(b->known[1].launches, 2);
	end_all(b);
	assert_each_has_ended_once(b);
}

/* The second head has waited for nothing yet when it is told to end. */
BED_TEST(head_that_waits_for_ranks_does_not_say_that_none_is_left)
{
	b->p.options.away_ms = 50000;
	ask(&b->p, SUBMIT "{'argv':['a']}]}");
	next_head(b);
	dvm_head_stop(b->p.head, b->p.now);
	turn(&b->p);
	assert_true(b->p.down);
	next_head(b);
	assert_int_equal(b->known[1].launches, 1);
}

BED_TEST(cancelled_tasks_are_not_run_again)
{
	ask(&b->p, SUBMIT "{'argv':['a']}]}");
	ask(&b->p, "{'op':'cancel','ids':[1]}");
	next_head(b);
	assert_int_equal(b->nparts, 0);
	assert_int_equal(status(&b->p, "ended"), 1);
	assert_each_has_ended_once(b);
}

BED_TEST(tasks_tied_to_a_client_end_with_the_head)
{
	ask(&b->p, SUBMIT "{'argv':['a']}],'tied':true}");
	next_head(b);
	assert_int_equal(b->nparts, 0);
	assert_each_has_ended_once(b);
}

BED_TEST(tries_are_counted_over_heads)
{
	ask(&b->p, SUBMIT "{'argv':['a'],'retries':2}]}");
	end_part(b, 0, 1);
	next_head(b);
	end_part(b, 0, 1);
	assert_int_equal(b->nparts, 1); /* the second of two */
	next_head(b);
	end_part(b, 0, 1);
	assert_int_equal(b->nparts, 0);
	assert_each_has_ended_once(b);
}

BED_TEST(a_full_disk_harms_nothing_that_runs)
{
	ask(&b->p, SUBMIT "{'argv':['a'],'cores':3},{'argv':['b'],'cores':3},{'argv':['c'],'cores':3}]}");
	b->p.full = true;
	ask(&b->p, SUBMIT "{'argv':['d']},{'argv':['e']}]}");
	assert_refused(b, "the journal cannot be written: No space left on device");
	(void)status(&b->p, "queued");
	assert_string_equal(json_string_value(json_object_get(b->p.answer, "journal")),
			    "No space left on device");
	assert_int_equal(status(&b->p, "queued"), 1);
	end_task(b, 1, 0);
	assert_int_equal(b->known[1].told, 0); /* another head would run it again */
	assert_int_equal(b->known[3].launches, 0);
	b->p.full = false;
	turn(&b->p);
	assert_int_equal(b->known[1].told, 1);
	assert_int_equal(b->known[3].launches, 1);
	ask(&b->p, SUBMIT "{'argv':['d']}]}");
	assert_int_equal(json_integer_value(json_array_get(
		json_object_get(b->p.answer, "ids"), 0)), 4);
	end_all(b);
	end_all(b);
	assert_each_has_ended_once(b);
}

BED_TEST(a_start_that_is_not_written_does_not_happen)
{
	const char *submit = SUBMIT "{'argv':['a']},{'argv':['b']}]}";

	ask(&b->p, "{'op':'drain','node':'n0'}");
	ask(&b->p, "{'op':'drain','node':'n1'}");
	ask(&b->p, "%s", submit);
	b->p.full = true;
	ask(&b->p, "{'op':'undrain','node':'n0'}");
	assert_int_equal(b->nparts, 0);
	ask(&b->p, "{'op':'cancel','ids':[1]}");
	b->p.full = false;
	turn(&b->p);
	assert_int_equal(b->nparts, 2);
	end_all(b);
	assert_each_has_ended_once(b);
}

BED_TEST(a_dvm_without_room_for_its_journal_ends_all_the_same)
{
	ask(&b->p, SUBMIT "{'argv':['a']}]}");
	b->p.full = true;
	ask(&b->p, "{'op':'down','work':'wait'}");
	end_part(b, 0, 0);
	assert_true(b->p.down);
	assert_int_equal(b->known[1].told, 0); /* the journal does not have that end */
}

BED_TEST(tasks_wait_for_another_head_when_all_nodes_go)
{
	struct dvm_resumed found;

	ask(&b->p, SUBMIT "{'argv':['a'],'ranks':6},{'argv':['b']}]}");
	dvm_head_node_lost(b->p.head, 0, "the test has", b->p.now);
	turn(&b->p);
	assert_int_equal(status(&b->p, "ended"), 0);
	b->p.now.ms += HEAD_HOPE_MS / 2;
	dvm_head_node_lost(b->p.head, 1, "the test has", b->p.now);
	b->p.now.ms += HEAD_HOPE_MS;
	turn(&b->p);
	assert_true(b->p.down);
	found = next_head(b);
	assert_int_equal(found.queued, 2);
}

BED_TEST(tasks_wait_for_another_head_if_one_loses_all_nodes_before_it_resumes)
{
	struct dvm_resumed found;

	ask(&b->p, SUBMIT "{'argv':['a'],'ranks':%d},{'argv':['b']}]}", NODES * CORES);
	b->lost = NODES;
	found = next_head(b);
	assert_int_equal(found.queued, 2);
	assert_int_equal(status(&b->p, "ended"), 0);
	assert_true(dvm_head_deadline(b->p.head) <= b->p.now.ms + HEAD_HOPE_MS);
	b->p.now.ms += HEAD_HOPE_MS;
	turn(&b->p);
	assert_true(b->p.down);
	b->lost = 0;
	found = next_head(b);
	assert_int_equal(found.queued, 2);
	end_all(b);
	assert_each_has_ended_once(b);
}

BED_TEST(task_too_large_for_the_nodes_of_the_next_head_ends)
{
	ask(&b->p, SUBMIT "{'argv':['a'],'ranks':%d},{'argv':['b']}]}", NODES * CORES);
	b->lost = 1;
	next_head(b);
	assert_int_equal(status(&b->p, "ended"), 0);
	b->p.now.ms += HEAD_HOPE_MS;
	turn(&b->p);
	assert_false(b->p.down);
	assert_int_equal(status(&b->p, "ended"), 1);
}

BED_TEST(a_task_for_which_too_few_nodes_are_left_ends)
{
	ask(&b->p, SUBMIT "{'argv':['a'],'ranks':6}]}");
	dvm_head_node_lost(b->p.head, 0, "the test has", b->p.now);
	b->nparts = 0;
	b->p.now.ms += HEAD_HOPE_MS;
	turn(&b->p);
	assert_false(b->p.down);
	assert_int_equal(status(&b->p, "ended"), 0); /* its part on n1 has not */
	b->parts[b->nparts++] = (struct part){ 1, 0, 1 };
	end_part(b, 0, 9);
	assert_int_equal(status(&b->p, "ended"), 1);
	assert_each_has_ended_once(b);
}

/* The end of a journal that was cut is that of an earlier moment. */
BED_TEST(a_journal_cut_anywhere_is_gone_on_with)
{
	size_t len;

	ask(&b->p, SUBMIT "{'argv':['a'],'cores':3},{'argv':['b'],'cores':3},{'argv':['c'],'retries':1}]}");
	end_part(b, 0, 0);
	end_part(b, 0, 1);
	ask(&b->p, "{'op':'cancel','all':true}");
	len = b->p.journal.len;
	for (size_t n = JOURNAL_HEADER_SIZE; n <= len; n++) {
		struct bed *c = bed_create();

		buf_clear(&c->p.journal);
		assert_int_equal(buf_append(&c->p.journal, b->p.journal.data, n), 0);
		next_head(c);
		end_all(c);
		c->submitted = (int)status(&c->p, "ended");
		assert_int_equal(status(&c->p, "queued"), 0);
		assert_each_has_ended_once(c);
		unit_end(c);
	}
}

/* The record of a type that follows `others` of its type; it points into the journal. */
static struct journal_record find_record(struct bed *b, enum journal_type type, int others)
{
	struct journal_reader in;
	struct journal_record r;
	uint32_t version;

	assert_int_equal(journal_open(&in, b->p.journal.data, b->p.journal.len,
				      &version), 0);
	while (journal_next(&in, &r))
		if (r.type == type && !others--)
			return r;
	fail_msg("there is no such record of type %d", type);
	return r;
}

static void assert_nodes(struct bed *b, int which, bool begins, uint32_t nodes,
			 uint64_t slots)
{
	struct journal_nodes n = find_record(b, JOURNAL_NODES, which).nodes;

	assert_int_equal(n.begins, begins);
	assert_int_equal(n.nodes, nodes);
	assert_int_equal(n.slots, slots);
}

static void assert_ended_on(struct bed *b, int which, uint32_t rank, const char *node)
{
	struct journal_end e = find_record(b, JOURNAL_END, which).end;

	assert_int_equal(e.rank, rank);
	assert_int_equal(e.node.len, strlen(node));
	assert_memory_equal(e.node.data, node, e.node.len);
}

BED_TEST(a_journal_says_what_there_is_and_where_tasks_end)
{
	const char *node;

	ask(&b->p, SUBMIT "{'argv':['a'],'ranks':5}]}");
	assert_nodes(b, 0, true, 2, 2 * CORES);
	assert_int_equal(find_record(b, JOURNAL_START, 0).start.slots, 5);
	end_rank(b, b->parts[0].node == 1 ? 0 : 1, 4, 7);
	end_part(b, 0, 0);
	assert_ended_on(b, 0, 4, "n1");
	ask(&b->p, SUBMIT "{'argv':['c']}]}");
	ask(&b->p, "{'op':'cancel','all':true}");
	node = b->parts[0].node ? "n1" : "n0";
	end_part(b, 0, 0);
	assert_ended_on(b, 1, 0, node);
	dvm_head_node_lost(b->p.head, 0, "the test has", b->p.now);
	turn(&b->p);
	assert_nodes(b, 1, false, 1, CORES);
	next_head(b);
	assert_nodes(b, 2, true, 2, 2 * CORES);
	make_smaller(b);
	assert_nodes(b, 2, true, 2, 2 * CORES);
}

/* ---- anything in any order ---- */

static void random_event(struct bed *b, bool smaller)
{
	switch (rand() % 12) {
	case 0:
	case 1:
		if (b->submitted < TASKS - 10)
			ask(&b->p, SUBMIT "{'argv':['x'],'ranks':%d,'retries':%d},{'argv':['y'],'name':'n'}]}",
			    1 + rand() % 5, rand() % 2);
		break;
	case 2:
		if (b->submitted)
			ask(&b->p, "{'op':'cancel','ids':[%d]}",
			    1 + rand() % b->submitted);
		break;
	case 3:
		b->p.full = !b->p.full && rand() % 2;
		break;
	case 4:
		if (rand() % 4)
			break;
		if (rand() % 2) /* of a record that was being written */
			(void)buf_append(&b->p.journal, "_DVJ....", 1 + (size_t)rand() % 7);
		next_head(b);
		break;
	case 5:
		if (smaller && !b->p.full)
			make_smaller(b);
		break;
	default:
		if (b->nparts)
			end_part(b, (size_t)rand() % b->nparts, rand() % 4 == 0);
	}
}

static void run_seed(unsigned seed, bool smaller)
{
	struct bed *b = bed_create();

	srand(seed);
	for (int i = 0; i < 400; i++)
		random_event(b, smaller);
	b->p.full = false;
	turn(&b->p);
	while (b->nparts)
		end_part(b, 0, 0);
	assert_int_equal(status(&b->p, "ended"), b->submitted);
	assert_int_equal(status(&b->p, "queued"), 0);
	assert_int_equal(status(&b->p, "running"), 0);
	for (int i = 1; i <= b->submitted; i++)
		assert_true(b->known[i].told <= 1);
	if (!smaller)
		assert_each_has_ended_once(b);
	next_head(b);
	assert_int_equal(status(&b->p, "ended"), b->submitted);
	unit_end(b);
}

TEST(every_task_ends_once_whatever_happens_to_heads)
{
	for (unsigned seed = 0; seed < 200; seed++)
		run_seed(seed, seed % 2);
}
