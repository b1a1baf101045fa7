/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Heads that are lost, and others that go on with their journal. Nodes are played by the
 * test: it notes what they are told to launch, and says that it has ended.
 */
#include "idle.h"
#include "requests.h"
#include "sealed.h"
#include "unit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include <jansson.h>

#include "dvm/core/head.h"

#define NODES 2
#define CORES 3
#define CLIENT 1
#define TASKS 1000
#define JOURNAL_MAX ((size_t)64 << 20)

/* A part that a node runs. */
struct part {
	uint64_t task;
	uint32_t instance, node;
};

/* Facts that the test knows of a task, over all heads. */
struct known {
	uint32_t launches; /* of its first part */
	uint32_t told;     /* ends that the client was told */
	uint32_t instance; /* of the last launch */
};

struct bed {
	struct dvm_head *head;
	struct dvm_time now;
	struct part parts[TASKS];
	size_t nparts;
	struct known known[TASKS];
	int submitted;      /* that the client was told */
	int refused;
	struct buf journal;
	bool full;          /* nothing can be written */
	bool once;          /* of heads */
	uint32_t away_ms;   /* the same; daemons of the last one are not known then */
	uint32_t lost;      /* nodes that the next head loses before it resumes the journal */
	bool down;          /* the head has left */
	json_t *answer;     /* the last that was neither an end nor a submit */
};

/* ---- operations ---- */

static void launched(struct bed *b, uint32_t node, const struct dvm_launch *m)
{
	struct known *k = &b->known[m->task];

	b->parts[b->nparts++] = (struct part){ m->task, m->instance, node };
	if (m->node)
		return;
	if (k->launches++)
		assert_true(m->instance > k->instance);
	k->instance = m->instance;
}

static void node_send(void *arg, uint32_t node, const void *data, size_t len)
{
	struct dvm_msg m;
	struct cursor c;

	cursor_init(&c, data, len);
	while (cursor_left(&c)) {
		assert_int_equal(dvm_msg_unpack(&c, &m), 0);
		if (m.type == DVM_LAUNCH)
			launched(arg, node, &m.launch);
	}
}

static void node_break(void *arg, uint32_t node, const char *why)
{
	fail_msg("node %u is broken off: %s", node, why);
}

static void note_ended(struct bed *b, json_t *tasks)
{
	json_t *t;
	size_t i;

	json_array_foreach(tasks, i, t)
		b->known[json_integer_value(json_object_get(t, "id"))].told++;
}

static void client_send(void *arg, uint32_t client, const char *line, size_t len)
{
	struct bed *b = arg;
	json_t *e = json_loadb(line, len, 0, NULL);
	const char *name = json_string_value(json_object_get(e, "ev"));

	note_ended(b, json_object_get(e, "tasks"));
	if (!strcmp(name, "submitted")) {
		b->submitted += (int)json_array_size(json_object_get(e, "ids"));
		b->refused += (int)json_array_size(json_object_get(e, "refused"));
	}
	json_decref(b->answer);
	b->answer = e;
}

static int record(void *arg, const void *data, size_t len, enum durable_wait wait)
{
	struct bed *b = arg;

	return b->full ? -ENOSPC : append_sealed(&b->journal, data, len);
}

static void on_end(void *arg)
{
	((struct bed *)arg)->down = true;
}

/* ---- heads ---- */

static void make_head(struct bed *b)
{
	static const struct dvm_head_ops ops = {
		.node_send = node_send, .node_break = node_break,
		.format = &dvm_json, .client_send = client_send, .record = record, .end = on_end,
	};
	struct dvm_head_options options = usual_options(NODES);

	options.max_waiting = TASKS;
	options.once = b->once;
	options.away_ms = b->away_ms;
	options.unheard = b->away_ms;
	assert_int_equal(dvm_head_create(&b->head, &options, &ops, b, NULL), 0);
	for (uint32_t i = 0; i < NODES; i++)
		assert_int_equal(tell_registered(b->head, i, CORES, b->now), 0);
}

static struct bed *bed_create(void)
{
	struct bed *b = calloc(1, sizeof(*b));

	b->now = (struct dvm_time){ 1000000000, 1000 };
	buf_init(&b->journal, JOURNAL_MAX);
	assert_int_equal(journal_put_header(&b->journal), 0);
	make_head(b);
	dvm_head_keep_journal(b->head);
	dvm_head_client_opened(b->head, CLIENT);
	return b;
}

static void bed_destroy(struct bed *b)
{
	dvm_head_destroy(b->head);
	buf_free(&b->journal);
	json_decref(b->answer);
	free(b);
}

/* Another head goes on with the first `len` bytes of the journal. */
static struct dvm_resumed another_head(struct bed *b, size_t len, bool once)
{
	struct journal_reader in;
	struct dvm_resumed found;
	uint32_t version;
	char *copy = malloc(len);

	memcpy(copy, b->journal.data, len);
	dvm_head_destroy(b->head);
	b->nparts = 0;
	b->down = false;
	make_head(b);
	for (uint32_t i = 0; i < b->lost; i++)
		dvm_head_node_lost(b->head, i, "the test has", b->now);
	assert_int_equal(journal_open(&in, copy, len, &version), 0);
	assert_int_equal(dvm_head_resume(b->head, &in, once, &found, b->now), 0);
	b->journal.len = in.cut;
	free(copy);
	dvm_head_client_opened(b->head, CLIENT);
	return found;
}

static struct dvm_resumed next_head(struct bed *b)
{
	struct dvm_resumed found = another_head(b, b->journal.len, false);

	dvm_head_turn(b->head, b->now);
	return found;
}

/* Leave out of the journal what the head does not need. */
static void make_smaller(struct bed *b)
{
	struct journal_record r;
	struct journal_reader in;
	struct buf old = b->journal;
	uint32_t version;

	buf_init(&b->journal, JOURNAL_MAX);
	assert_int_equal(journal_put_header(&b->journal), 0);
	assert_int_equal(journal_open(&in, old.data, old.len, &version), 0);
	while (journal_next(&in, &r))
		if (dvm_head_knows(b->head, &r))
			assert_int_equal(put_sealed(&b->journal, &r), 0);
	r.type = JOURNAL_COUNTS;
	dvm_head_forgotten(b->head, &r.counts);
	assert_int_equal(put_sealed(&b->journal, &r), 0);
	buf_free(&old);
}

static void ask(struct bed *b, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	tell_request(b->head, CLIENT, b->now, fmt, ap);
	va_end(ap);
}

#define SUBMIT "{'op':'submit','profile':{'id':'p','cwd':'/','env':{'A':'b'}},'tasks':["

static json_int_t number(struct bed *b, const char *key)
{
	return json_integer_value(json_object_get(b->answer, key));
}

static json_int_t status(struct bed *b, const char *key)
{
	ask(b, "{'op':'status'}");
	return number(b, key);
}

static void assert_refused(struct bed *b, const char *why)
{
	const char *said = json_string_value(json_object_get(b->answer, "why"));

	if (!said || !strstr(said, why))
		fail_msg("\"%s\" does not say %s", said ? said : "", why);
}

/* Part `i` of those that run ends. */
static void end_rank(struct bed *b, size_t i, uint32_t rank, int32_t code)
{
	const struct part p = b->parts[i];
	const struct dvm_msg m = {
		.type = DVM_ENDED,
		.ended = { .task = p.task, .instance = p.instance,
			   .status = code << 8, .rank = rank, .started_ns = b->now.wall_ns,
			   .ended_ns = b->now.wall_ns },
	};

	b->parts[i] = b->parts[--b->nparts];
	assert_int_equal(tell_msg(b->head, p.node, &m, b->now), 0);
	dvm_head_turn(b->head, b->now);
}

static void end_part(struct bed *b, size_t i, int32_t code)
{
	end_rank(b, i, 0, code);
}

/* The first part of this task that is found. */
static void end_task(struct bed *b, uint64_t task, int32_t code)
{
	size_t i = 0;

	while (i < b->nparts && b->parts[i].task != task)
		i++;
	assert_true(i < b->nparts);
	end_part(b, i, code);
}

static void end_all(struct bed *b)
{
	while (b->nparts)
		end_part(b, 0, 0);
}

/* In the journal: how often each task has ended. */
static void assert_each_has_ended_once(struct bed *b)
{
	uint32_t submits[TASKS] = { 0 }, ends[TASKS] = { 0 }, version;
	struct journal_reader in;
	struct journal_record r;

	assert_int_equal(journal_open(&in, b->journal.data, b->journal.len,
				      &version), 0);
	while (journal_next(&in, &r)) {
		if (r.type == JOURNAL_SUBMIT)
			submits[r.submit.task]++;
		else if (r.type == JOURNAL_END)
			ends[r.end.task]++;
	}
	for (int i = 1; i <= b->submitted; i++) {
		assert_int_equal(submits[i], 1);
		assert_int_equal(ends[i], 1);
		assert_true(b->known[i].told <= 1);
	}
}

/* ---- tests ---- */

static void ended_tasks_stay_ended_and_the_others_go_on(void **state)
{
	struct bed *b = bed_create();
	struct dvm_resumed found;

	ask(b, SUBMIT "{'argv':['a'],'cores':3},{'argv':['b'],'cores':3},{'argv':['c'],'cores':3,'name':'last'}]}");
	assert_int_equal(b->submitted, 3);
	end_task(b, 1, 7);
	found = next_head(b);
	assert_int_equal(found.ended, 1);
	assert_int_equal(found.queued, 2);
	assert_int_equal(found.again, 2);
	assert_int_equal(status(b, "ended"), 1);
	assert_int_equal(status(b, "failed"), 1);
	assert_int_equal(b->known[1].launches, 1);
	assert_int_equal(b->known[3].instance, 1);
	ask(b, "{'op':'show','id':1}");
	assert_int_equal(json_integer_value(json_object_get(
		json_object_get(b->answer, "task"), "code")), 7);
	end_all(b);
	ask(b, SUBMIT "{'argv':['d']}]}");
	end_all(b);
	assert_int_equal(status(b, "ended"), 4);
	assert_each_has_ended_once(b);
	bed_destroy(b);
}

static void running_task_with_once_is_lost_with_its_head(void **state)
{
	struct bed *b = bed_create();
	struct dvm_resumed found;

	ask(b, SUBMIT "{'argv':['a'],'cores':3},{'argv':['b'],'cores':3},{'argv':['c'],'cores':3}]}");
	found = another_head(b, b->journal.len, true);
	dvm_head_turn(b->head, b->now);
	assert_int_equal(found.lost, 2);
	assert_int_equal(found.queued, 1);
	assert_int_equal(b->known[1].launches, 1);
	end_all(b);
	assert_int_equal(status(b, "failed"), 2);
	assert_each_has_ended_once(b);
	bed_destroy(b);
}

static void the_last_line_that_was_taken_is_known(void **state)
{
	struct bed *b = bed_create();

	ask(b, SUBMIT "{'argv':['a'],'line':4},{'argv':['b'],'line':7},{'argv':[],'line':8}]}");
	b->full = true;
	ask(b, SUBMIT "{'argv':['c'],'line':9}]}");
	b->full = false;
	ask(b, "{'op':'wait','all':true}");
	assert_int_equal(number(b, "line"), 7);
	end_all(b);
	make_smaller(b);
	next_head(b);
	ask(b, "{'op':'wait','all':true}");
	assert_int_equal(number(b, "line"), 7);
	assert_int_equal(number(b, "ended"), 2);
	assert_int_equal(number(b, "tasks"), 0);
	bed_destroy(b);
}

static void retries_of_a_failed_task_are_made_also_with_once(void **state)
{
	struct bed *b = bed_create();

	dvm_head_destroy(b->head);
	b->once = true;
	make_head(b);
	dvm_head_keep_journal(b->head);
	dvm_head_client_opened(b->head, CLIENT);
	ask(b, SUBMIT "{'argv':['a'],'retries':1},{'argv':['b']}]}");
	end_task(b, 1, 1 << 8);
	end_task(b, 2, 1 << 8);
	assert_int_equal(b->known[1].launches, 2);
	assert_int_equal(b->known[2].launches, 1);
	dvm_head_node_lost(b->head, b->parts[0].node, "the test has", b->now);
	dvm_head_turn(b->head, b->now);
	assert_int_equal(b->known[1].launches, 2);
	assert_int_equal(status(b, "failed"), 2);
	bed_destroy(b);
}

/* Daemons that were cut off from their head run ranks until their lease is over. */
static void started_task_waits_where_nobody_knows_its_daemon(void **state)
{
	struct bed *b = bed_create();

	b->away_ms = 50000;
	ask(b, SUBMIT "{'argv':['a'],'ranks':%d},{'argv':['b']}]}", NODES * CORES);
	assert_int_equal(next_head(b).again, 1);
	assert_int_equal(b->known[1].launches, 1);
	assert_int_equal(b->known[2].launches, 1); /* the task was not started before */
	end_task(b, 2, 0);
	b->now.ms += 49999;
	dvm_head_turn(b->head, b->now);
	assert_int_equal(b->known[1].launches, 1);
	b->now.ms++;
	dvm_head_turn(b->head, b->now);
	assert_int_equal(b->known[1].launches, 2);
	end_all(b);
	assert_each_has_ended_once(b);
	bed_destroy(b);
}

/* A client that hears of its loss may run it again. */
static void task_to_be_run_once_is_lost_when_its_ranks_have_ended(void **state)
{
	struct bed *b = bed_create();

	b->away_ms = 50000;
	ask(b, SUBMIT "{'argv':['a'],'ranks':%d},{'argv':['b'],'ranks':%d}]}", NODES * CORES,
	    NODES * CORES);
	assert_int_equal(another_head(b, b->journal.len, true).lost, 1);
	dvm_head_turn(b->head, b->now);
	end_task(b, 2, 0);
	assert_int_equal(status(b, "failed"), 0);
	b->now.ms += 50000;
	dvm_head_turn(b->head, b->now);
	assert_int_equal(status(b, "failed"), 1);
	assert_int_equal(b->known[1].launches, 1);
	bed_destroy(b);
}

static void started_task_does_not_wait_after_a_head_that_left_no_rank(void **state)
{
	struct bed *b = bed_create();

	b->away_ms = 50000;
	ask(b, SUBMIT "{'argv':['a']}]}");
	dvm_head_stop(b->head, b->now);
	b->now.ms += 500;
	dvm_head_turn(b->head, b->now);
	end_part(b, 0, 1);
	assert_true(b->down);
	next_head(b);
	assert_int_equal(b->known[1].launches, 2);
	end_all(b);
	assert_each_has_ended_once(b);
	bed_destroy(b);
}

/* The second head has waited for nothing yet when it is told to end. */
static void head_that_waits_for_ranks_does_not_say_that_none_is_left(void **state)
{
	struct bed *b = bed_create();

	b->away_ms = 50000;
	ask(b, SUBMIT "{'argv':['a']}]}");
	next_head(b);
	dvm_head_stop(b->head, b->now);
	dvm_head_turn(b->head, b->now);
	assert_true(b->down);
	next_head(b);
	assert_int_equal(b->known[1].launches, 1);
	bed_destroy(b);
}

static void cancelled_tasks_are_not_run_again(void **state)
{
	struct bed *b = bed_create();

	ask(b, SUBMIT "{'argv':['a']}]}");
	ask(b, "{'op':'cancel','ids':[1]}");
	next_head(b);
	assert_int_equal(b->nparts, 0);
	assert_int_equal(status(b, "ended"), 1);
	assert_each_has_ended_once(b);
	bed_destroy(b);
}

static void tasks_tied_to_a_client_end_with_the_head(void **state)
{
	struct bed *b = bed_create();

	ask(b, SUBMIT "{'argv':['a']}],'tied':true}");
	next_head(b);
	assert_int_equal(b->nparts, 0);
	assert_each_has_ended_once(b);
	bed_destroy(b);
}

static void tries_are_counted_over_heads(void **state)
{
	struct bed *b = bed_create();

	ask(b, SUBMIT "{'argv':['a'],'retries':2}]}");
	end_part(b, 0, 1);
	next_head(b);
	end_part(b, 0, 1);
	assert_int_equal(b->nparts, 1); /* the second of two */
	next_head(b);
	end_part(b, 0, 1);
	assert_int_equal(b->nparts, 0);
	assert_each_has_ended_once(b);
	bed_destroy(b);
}

static void a_full_disk_harms_nothing_that_runs(void **state)
{
	struct bed *b = bed_create();

	ask(b, SUBMIT "{'argv':['a'],'cores':3},{'argv':['b'],'cores':3},{'argv':['c'],'cores':3}]}");
	b->full = true;
	ask(b, SUBMIT "{'argv':['d']},{'argv':['e']}]}");
	assert_refused(b, "the journal cannot be written: No space left on device");
	(void)status(b, "queued");
	assert_string_equal(json_string_value(json_object_get(b->answer, "journal")),
			    "No space left on device");
	assert_int_equal(status(b, "queued"), 1);
	end_task(b, 1, 0);
	assert_int_equal(b->known[1].told, 0); /* another head would run it again */
	assert_int_equal(b->known[3].launches, 0);
	b->full = false;
	dvm_head_turn(b->head, b->now);
	assert_int_equal(b->known[1].told, 1);
	assert_int_equal(b->known[3].launches, 1);
	ask(b, SUBMIT "{'argv':['d']}]}");
	assert_int_equal(json_integer_value(json_array_get(
		json_object_get(b->answer, "ids"), 0)), 4);
	end_all(b);
	end_all(b);
	assert_each_has_ended_once(b);
	bed_destroy(b);
}

static void a_start_that_is_not_written_does_not_happen(void **state)
{
	struct bed *b = bed_create();
	const char *submit = SUBMIT "{'argv':['a']},{'argv':['b']}]}";

	ask(b, "{'op':'drain','node':'n0'}");
	ask(b, "{'op':'drain','node':'n1'}");
	ask(b, "%s", submit);
	b->full = true;
	ask(b, "{'op':'undrain','node':'n0'}");
	assert_int_equal(b->nparts, 0);
	ask(b, "{'op':'cancel','ids':[1]}");
	b->full = false;
	dvm_head_turn(b->head, b->now);
	assert_int_equal(b->nparts, 2);
	end_all(b);
	assert_each_has_ended_once(b);
	bed_destroy(b);
}

static void a_dvm_without_room_for_its_journal_ends_all_the_same(void **state)
{
	struct bed *b = bed_create();

	ask(b, SUBMIT "{'argv':['a']}]}");
	b->full = true;
	ask(b, "{'op':'down','work':'wait'}");
	end_part(b, 0, 0);
	assert_true(b->down);
	assert_int_equal(b->known[1].told, 0); /* the journal does not have that end */
	bed_destroy(b);
}

static void tasks_wait_for_another_head_when_all_nodes_go(void **state)
{
	struct bed *b = bed_create();
	struct dvm_resumed found;

	ask(b, SUBMIT "{'argv':['a'],'ranks':6},{'argv':['b']}]}");
	dvm_head_node_lost(b->head, 0, "the test has", b->now);
	dvm_head_turn(b->head, b->now);
	assert_int_equal(status(b, "ended"), 0);
	b->now.ms += HEAD_HOPE_MS / 2;
	dvm_head_node_lost(b->head, 1, "the test has", b->now);
	b->now.ms += HEAD_HOPE_MS;
	dvm_head_turn(b->head, b->now);
	assert_true(b->down);
	found = next_head(b);
	assert_int_equal(found.queued, 2);
	bed_destroy(b);
}

static void tasks_wait_for_another_head_if_one_loses_all_nodes_before_it_resumes(void **state)
{
	struct bed *b = bed_create();
	struct dvm_resumed found;

	ask(b, SUBMIT "{'argv':['a'],'ranks':%d},{'argv':['b']}]}", NODES * CORES);
	b->lost = NODES;
	found = next_head(b);
	assert_int_equal(found.queued, 2);
	assert_int_equal(status(b, "ended"), 0);
	assert_true(dvm_head_deadline(b->head) <= b->now.ms + HEAD_HOPE_MS);
	b->now.ms += HEAD_HOPE_MS;
	dvm_head_turn(b->head, b->now);
	assert_true(b->down);
	b->lost = 0;
	found = next_head(b);
	assert_int_equal(found.queued, 2);
	end_all(b);
	assert_each_has_ended_once(b);
	bed_destroy(b);
}

static void task_too_large_for_the_nodes_of_the_next_head_ends(void **state)
{
	struct bed *b = bed_create();

	ask(b, SUBMIT "{'argv':['a'],'ranks':%d},{'argv':['b']}]}", NODES * CORES);
	b->lost = 1;
	next_head(b);
	assert_int_equal(status(b, "ended"), 0);
	b->now.ms += HEAD_HOPE_MS;
	dvm_head_turn(b->head, b->now);
	assert_false(b->down);
	assert_int_equal(status(b, "ended"), 1);
	bed_destroy(b);
}

static void a_task_for_which_too_few_nodes_are_left_ends(void **state)
{
	struct bed *b = bed_create();

	ask(b, SUBMIT "{'argv':['a'],'ranks':6}]}");
	dvm_head_node_lost(b->head, 0, "the test has", b->now);
	b->nparts = 0;
	b->now.ms += HEAD_HOPE_MS;
	dvm_head_turn(b->head, b->now);
	assert_false(b->down);
	assert_int_equal(status(b, "ended"), 0); /* its part on n1 has not */
	b->parts[b->nparts++] = (struct part){ 1, 0, 1 };
	end_part(b, 0, 9);
	assert_int_equal(status(b, "ended"), 1);
	assert_each_has_ended_once(b);
	bed_destroy(b);
}

/* The end of a journal that was cut is that of an earlier moment. */
static void a_journal_cut_anywhere_is_gone_on_with(void **state)
{
	struct bed *b = bed_create();
	size_t len;

	ask(b, SUBMIT "{'argv':['a'],'cores':3},{'argv':['b'],'cores':3},{'argv':['c'],'retries':1}]}");
	end_part(b, 0, 0);
	end_part(b, 0, 1);
	ask(b, "{'op':'cancel','all':true}");
	len = b->journal.len;
	for (size_t n = JOURNAL_HEADER_SIZE; n <= len; n++) {
		struct bed *c = bed_create();

		buf_clear(&c->journal);
		assert_int_equal(buf_append(&c->journal, b->journal.data, n), 0);
		next_head(c);
		end_all(c);
		c->submitted = (int)status(c, "ended");
		assert_int_equal(status(c, "queued"), 0);
		assert_each_has_ended_once(c);
		bed_destroy(c);
	}
	bed_destroy(b);
}

/* The record of a type that follows `others` of its type; it points into the journal. */
static struct journal_record find_record(struct bed *b, enum journal_type type, int others)
{
	struct journal_reader in;
	struct journal_record r;
	uint32_t version;

	assert_int_equal(journal_open(&in, b->journal.data, b->journal.len,
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

static void a_journal_says_what_there_is_and_where_tasks_end(void **state)
{
	struct bed *b = bed_create();
	const char *node;

	ask(b, SUBMIT "{'argv':['a'],'ranks':5}]}");
	assert_nodes(b, 0, true, 2, 2 * CORES);
	assert_int_equal(find_record(b, JOURNAL_START, 0).start.slots, 5);
	end_rank(b, b->parts[0].node == 1 ? 0 : 1, 4, 7);
	end_part(b, 0, 0);
	assert_ended_on(b, 0, 4, "n1");
	ask(b, SUBMIT "{'argv':['c']}]}");
	ask(b, "{'op':'cancel','all':true}");
	node = b->parts[0].node ? "n1" : "n0";
	end_part(b, 0, 0);
	assert_ended_on(b, 1, 0, node);
	dvm_head_node_lost(b->head, 0, "the test has", b->now);
	dvm_head_turn(b->head, b->now);
	assert_nodes(b, 1, false, 1, CORES);
	next_head(b);
	assert_nodes(b, 2, true, 2, 2 * CORES);
	make_smaller(b);
	assert_nodes(b, 2, true, 2, 2 * CORES);
	bed_destroy(b);
}

/* ---- anything in any order ---- */

static void random_event(struct bed *b, bool smaller)
{
	switch (rand() % 12) {
	case 0:
	case 1:
		if (b->submitted < TASKS - 10)
			ask(b, SUBMIT "{'argv':['x'],'ranks':%d,'retries':%d},{'argv':['y'],'name':'n'}]}",
			    1 + rand() % 5, rand() % 2);
		break;
	case 2:
		if (b->submitted)
			ask(b, "{'op':'cancel','ids':[%d]}",
			    1 + rand() % b->submitted);
		break;
	case 3:
		b->full = !b->full && rand() % 2;
		break;
	case 4:
		if (rand() % 4)
			break;
		if (rand() % 2) /* of a record that was being written */
			(void)buf_append(&b->journal, "_DVJ....", 1 + (size_t)rand() % 7);
		next_head(b);
		break;
	case 5:
		if (smaller && !b->full)
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
	b->full = false;
	dvm_head_turn(b->head, b->now);
	while (b->nparts)
		end_part(b, 0, 0);
	assert_int_equal(status(b, "ended"), b->submitted);
	assert_int_equal(status(b, "queued"), 0);
	assert_int_equal(status(b, "running"), 0);
	for (int i = 1; i <= b->submitted; i++)
		assert_true(b->known[i].told <= 1);
	if (!smaller)
		assert_each_has_ended_once(b);
	next_head(b);
	assert_int_equal(status(b, "ended"), b->submitted);
	bed_destroy(b);
}

static void every_task_ends_once_whatever_happens_to_heads(void **state)
{
	for (unsigned seed = 0; seed < 200; seed++)
		run_seed(seed, seed % 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ended_tasks_stay_ended_and_the_others_go_on),
		cmocka_unit_test(running_task_with_once_is_lost_with_its_head),
		cmocka_unit_test(the_last_line_that_was_taken_is_known),
		cmocka_unit_test(retries_of_a_failed_task_are_made_also_with_once),
		cmocka_unit_test(started_task_waits_where_nobody_knows_its_daemon),
		cmocka_unit_test(task_to_be_run_once_is_lost_when_its_ranks_have_ended),
		cmocka_unit_test(started_task_does_not_wait_after_a_head_that_left_no_rank),
		cmocka_unit_test(head_that_waits_for_ranks_does_not_say_that_none_is_left),
		cmocka_unit_test(cancelled_tasks_are_not_run_again),
		cmocka_unit_test(tasks_tied_to_a_client_end_with_the_head),
		cmocka_unit_test(tries_are_counted_over_heads),
		cmocka_unit_test(a_full_disk_harms_nothing_that_runs),
		cmocka_unit_test(a_start_that_is_not_written_does_not_happen),
		cmocka_unit_test(a_dvm_without_room_for_its_journal_ends_all_the_same),
		cmocka_unit_test(tasks_wait_for_another_head_when_all_nodes_go),
		cmocka_unit_test(tasks_wait_for_another_head_if_one_loses_all_nodes_before_it_resumes),
		cmocka_unit_test(task_too_large_for_the_nodes_of_the_next_head_ends),
		cmocka_unit_test(a_task_for_which_too_few_nodes_are_left_ends),
		cmocka_unit_test(a_journal_cut_anywhere_is_gone_on_with),
		cmocka_unit_test(a_journal_says_what_there_is_and_where_tasks_end),
		cmocka_unit_test(every_task_ends_once_whatever_happens_to_heads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
