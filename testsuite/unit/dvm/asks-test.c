/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests of running tasks to a head: names and other tasks. Two nodes of 4 cores are
 * played by the test.
 */
#include "idle.h"
#include "requests.h"
#include "sealed.h"
#include "unit.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>

#include <jansson.h>

#include "dvm/core/head.h"

#define NODES 2
#define CORES 4
#define CLIENT 1
#define TASKS_MAX 16

struct seen {
	unsigned launched, signalled;
	uint32_t node;
	uint32_t instance, universe;
	bool pmi;
	char about[16];
	char argv[64];
};

struct bed {
	struct dvm_head *head;
	struct dvm_time now;
	struct seen tasks[TASKS_MAX]; /* by number, from 1 */
	unsigned answers;
	struct dvm_spawned answer;    /* the last, and its reason */
	char why[DVM_TEXT_MAX];
	struct buf journal;
	bool full;                    /* no journal can be written */
	unsigned asked_names, names_ended;
	json_t *events;
};

static void note_launch(struct bed *b, uint32_t node, const struct dvm_launch *l)
{
	struct seen *s = &b->tasks[l->task];

	assert_true(l->task < TASKS_MAX);
	s->launched++;
	s->node = node;
	s->instance = l->instance;
	s->universe = l->universe;
	s->pmi = l->pmi;
	assert_true(l->spawned.len < sizeof(s->about) && l->argv.len <= sizeof(s->argv));
	memcpy(s->about, l->spawned.len ? l->spawned.data : "", l->spawned.len);
	memcpy(s->argv, l->argv.data, l->argv.len);
}

static void note_answer(struct bed *b, const struct dvm_spawned *m)
{
	b->answers++;
	b->answer = *m;
	snprintf(b->why, sizeof(b->why), "%.*s", (int)m->why.len,
		 (const char *)(m->why.len ? m->why.data : ""));
}

static void node_send(void *arg, uint32_t node, const void *data, size_t len)
{
	struct bed *b = arg;
	struct dvm_msg m;
	struct cursor c;

	cursor_init(&c, data, len);
	while (cursor_left(&c)) {
		assert_int_equal(dvm_msg_unpack(&c, &m), 0);
		assert_int_equal(dvm_msg_for_pmi(data, len), m.type == DVM_SPAWNED);
		if (m.type == DVM_LAUNCH)
			note_launch(b, node, &m.launch);
		else if (m.type == DVM_SIGNAL)
			b->tasks[m.signal.task].signalled++;
		else if (m.type == DVM_SPAWNED)
			note_answer(b, &m.spawned);
	}
}

static void node_break(void *arg, uint32_t node, const char *why)
{
	fail_msg("node %u is broken off: %s", node, why);
}

static void client_send(void *arg, uint32_t client, const char *line, size_t len)
{
	struct bed *b = arg;

	json_array_append_new(b->events, json_loadb(line, len, JSON_ALLOW_NUL, NULL));
}

static int record(void *arg, const void *data, size_t len, enum durable_wait wait)
{
	struct bed *b = arg;

	return b->full ? -ENOSPC : append_sealed(&b->journal, data, len);
}

static void names(void *arg, uint32_t node, const struct dvm_names *m)
{
	((struct bed *)arg)->asked_names++;
}

static void names_end(void *arg, uint64_t task, uint32_t instance)
{
	((struct bed *)arg)->names_ended++;
}

static const struct dvm_head_ops head_ops = {
	.node_send = node_send, .node_break = node_break, .format = &dvm_json, .client_send = client_send,
	.record = record, .names = names, .names_end = names_end,
};

static void open_head(struct bed *b)
{
	struct dvm_head_options options = usual_options(NODES);

	options.queue.window = 3;
	assert_int_equal(dvm_head_create(&b->head, &options, &head_ops, b, NULL), 0);
	for (uint32_t i = 0; i < NODES; i++)
		assert_int_equal(tell_registered(b->head, i, CORES, b->now), 0);
}

static struct bed *bed_create(void)
{
	struct bed *b = calloc(1, sizeof(*b));

	b->now = (struct dvm_time){ 1000000000, 1000 };
	b->events = json_array();
	buf_init(&b->journal, 1 << 20);
	assert_int_equal(journal_put_header(&b->journal), 0);
	open_head(b);
	dvm_head_keep_journal(b->head);
	dvm_head_client_opened(b->head, CLIENT);
	return b;
}

static void bed_destroy(struct bed *b)
{
	dvm_head_destroy(b->head);
	json_decref(b->events);
	buf_free(&b->journal);
	free(b);
}

static void ask(struct bed *b, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	tell_request(b->head, CLIENT, b->now, fmt, ap);
	va_end(ap);
}

static void say(struct bed *b, uint32_t node, const struct dvm_msg *m)
{
	assert_int_equal(tell_msg(b->head, node, m, b->now), 0);
	dvm_head_turn(b->head, b->now);
}

#define SUBMIT(tasks, more)                                                      \
	"{'op':'submit','profile':{'id':'p','cwd':'/','env':{}},'tasks':[" tasks "]" more "}"

/* The task of this number spawns this number of ranks of "child". */
static void spawn(struct bed *b, uint64_t task, uint32_t ranks)
{
	const struct seen *s = &b->tasks[task];

	say(b, s->node, &(struct dvm_msg){
		.type = DVM_SPAWN,
		.spawn = { task, s->instance, 7, ranks, { "child\0x", 8 }, { "about", 6 } },
	});
}

static void ready(struct bed *b, uint64_t task, const char *why)
{
	say(b, b->tasks[task].node, &(struct dvm_msg){
		.type = DVM_READY, .ready = { task, b->tasks[task].instance, { why, strlen(why) } } });
}

static void end(struct bed *b, uint64_t task, int32_t status)
{
	say(b, b->tasks[task].node, &(struct dvm_msg){
		.type = DVM_ENDED,
		.ended = { .task = task, .instance = b->tasks[task].instance,
			   .status = status } });
}

static json_t *event(const struct bed *b, const char *name)
{
	json_t *e;
	size_t i;

	json_array_foreach(b->events, i, e)
		if (!strcmp(json_string_value(json_object_get(e, "ev")), name))
			return e;
	return NULL;
}

/* A value of the last answer to "show". */
static json_t *show(struct bed *b, uint64_t task, const char *key)
{
	json_array_clear(b->events);
	ask(b, "{'op':'show','id':%u}", (unsigned)task);
	return json_object_get(json_object_get(event(b, "task"), "task"), key);
}

/* ---- spawning ---- */

static void a_task_spawns_another(void **state)
{
	struct bed *b = bed_create();

	ask(b, SUBMIT("{'argv':['x'],'ranks':2,'pmi':true}", ""));
	assert_int_equal(b->tasks[1].universe, 8);
	spawn(b, 1, 2);
	assert_int_equal(b->tasks[2].launched, 1);
	assert_true(b->tasks[2].pmi);
	assert_string_equal(b->tasks[2].about, "about");
	assert_memory_equal(b->tasks[2].argv, "child\0x", 8);
	assert_int_equal(json_integer_value(show(b, 2, "parent")), 1);
	assert_int_equal(b->answers, 0);
	ready(b, 2, "");
	assert_int_equal(b->answers, 1);
	assert_int_equal(b->answer.token, 7);
	assert_int_equal(b->answer.spawned, 2);
	assert_int_equal(b->answer.why.len, 0);
	end(b, 2, 0);
	assert_int_equal(b->answers, 1);
	bed_destroy(b);
}

static void one_that_ends_before_it_is_there_is_answered(void **state)
{
	struct bed *b = bed_create();

	ask(b, SUBMIT("{'argv':['x'],'pmi':true}", ""));
	spawn(b, 1, 1);
	end(b, 2, 3 << 8);
	assert_string_equal(b->why, "task 2 ended with exit code 3 before its first rank had started PMI");
	spawn(b, 1, 1);
	end(b, 3, 0);
	assert_int_equal(b->answers, 2);
	assert_int_equal(b->answer.why.len, 0);
	bed_destroy(b);
}

static void one_whose_first_rank_is_never_there_is_answered(void **state)
{
	struct bed *b = bed_create();

	ask(b, SUBMIT("{'argv':['x'],'pmi':true}", ""));
	spawn(b, 1, 2);
	ready(b, 2, "rank 0 has ended");
	assert_int_equal(b->answers, 0); /* the end of the task may say more */
	end(b, 2, 0);
	assert_int_equal(b->answers, 1);
	assert_string_equal(b->why, "rank 0 has ended");
	spawn(b, 1, 2);
	ready(b, 3, "rank 0 has ended");
	end(b, 3, 1 << 8);
	assert_string_equal(b->why, "task 3 ended with exit code 1 before its first rank had started PMI: rank 0 has ended");
	bed_destroy(b);
}

static void spawned_task_waits_for_room_before_queued_ones(void **state)
{
	struct bed *b = bed_create();

	ask(b, SUBMIT("{'argv':['x'],'pmi':true},{'argv':['x'],'ranks':3},"
		      "{'argv':['x'],'ranks':4},{'argv':['x'],'ranks':2}", ""));
	spawn(b, 1, 2);
	assert_int_equal(b->tasks[5].launched, 0);
	end(b, 2, 0);
	assert_int_equal(b->tasks[4].launched, 0);
	assert_int_equal(b->tasks[5].launched, 1);
	bed_destroy(b);
}

static void one_that_can_never_fit_is_refused(void **state)
{
	struct bed *b = bed_create();

	ask(b, SUBMIT("{'argv':['x'],'ranks':3,'pmi':true}", ""));
	spawn(b, 1, 6);
	assert_int_equal(b->answers, 1);
	assert_string_equal(b->why, "6 ranks can never fit beside the task that spawns them: the DVM has 8 cores, including those of that task");
	spawn(b, 1, 9);
	assert_non_null(strstr(b->why, "can never fit"));
	spawn(b, 1, 4);
	spawn(b, 2, 2); /* beside both */
	assert_int_equal(b->answers, 3);
	spawn(b, 2, 1);
	assert_int_equal(b->answers, 3);
	bed_destroy(b);
}

static void a_spawn_of_a_task_that_has_ended_is_refused(void **state)
{
	struct bed *b = bed_create();

	ask(b, SUBMIT("{'argv':['x'],'pmi':true}", ""));
	end(b, 1, 0);
	spawn(b, 1, 1);
	assert_string_equal(b->why, "it has ended");
	bed_destroy(b);
}

static void a_spawn_is_refused_that_the_journal_cannot_take(void **state)
{
	struct bed *b = bed_create();

	ask(b, SUBMIT("{'argv':['x'],'pmi':true}", ""));
	b->full = true;
	ask(b, "{'op':'cancel','ids':[1]}"); /* it finds that out */
	ask(b, SUBMIT("{'argv':['x'],'pmi':true}", ""));
	spawn(b, 1, 1);
	assert_int_equal(b->answers, 1);
	assert_true(b->answer.why.len > 0);
	assert_int_equal(b->tasks[2].launched, 0);
	bed_destroy(b);
}

/* ---- ends ---- */

static void children_end_with_a_parent_that_fails(void **state)
{
	struct bed *b = bed_create();

	ask(b, SUBMIT("{'argv':['x'],'pmi':true}", ""));
	spawn(b, 1, 1);
	spawn(b, 2, 1);
	spawn(b, 1, 6); /* waits */
	end(b, 1, 1 << 8);
	assert_int_equal(b->tasks[2].signalled, 1);
	assert_int_equal(b->tasks[3].signalled, 1);
	assert_string_equal(json_string_value(show(b, 4, "state")), "cancelled");
	assert_string_equal(json_string_value(show(b, 4, "why")),
			    "its parent, task 1, failed");
	end(b, 2, SIGTERM);
	end(b, 3, SIGTERM);
	assert_string_equal(json_string_value(show(b, 2, "state")), "cancelled");
	bed_destroy(b);
}

static void children_end_at_once_with_a_parent_that_is_cancelled(void **state)
{
	struct bed *b = bed_create();

	ask(b, SUBMIT("{'argv':['x'],'pmi':true}", ""));
	spawn(b, 1, 1);
	ready(b, 2, "");
	ask(b, "{'op':'cancel','ids':[1]}");
	assert_int_equal(b->tasks[2].signalled, 1);
	end(b, 1, SIGTERM);
	assert_int_equal(b->tasks[2].signalled, 1);
	end(b, 2, SIGTERM);
	assert_int_equal(b->answers, 1);
	bed_destroy(b);
}

static void children_outlive_a_parent_that_ends_well(void **state)
{
	struct bed *b = bed_create();

	ask(b, SUBMIT("{'argv':['x'],'pmi':true}", ""));
	spawn(b, 1, 1);
	end(b, 1, 0);
	assert_int_equal(b->tasks[2].signalled, 0);
	end(b, 2, 0);
	assert_string_equal(json_string_value(show(b, 2, "state")), "done");
	bed_destroy(b);
}

/* The parent is run again and will spawn again. */
static void a_lost_node_ends_a_child_for_ever(void **state)
{
	struct bed *b = bed_create();
	uint32_t node;

	ask(b, SUBMIT("{'argv':['x'],'cores':4,'pmi':true}", ""));
	spawn(b, 1, 4);
	node = b->tasks[2].node;
	assert_int_not_equal(node, b->tasks[1].node);
	dvm_head_node_lost(b->head, node, "it burns", b->now);
	dvm_head_turn(b->head, b->now);
	assert_int_equal(b->tasks[2].launched, 1);
	assert_non_null(strstr(b->why, "was lost: it burns"));
	assert_string_equal(json_string_value(show(b, 2, "state")), "failed");
	assert_string_equal(json_string_value(show(b, 1, "state")), "running");
	bed_destroy(b);
}

static void a_parent_that_is_run_again_has_no_children(void **state)
{
	struct bed *b = bed_create();

	ask(b, SUBMIT("{'argv':['x'],'pmi':true,'retries':1}", ""));
	spawn(b, 1, 1);
	end(b, 1, 1 << 8);
	assert_int_equal(b->tasks[1].launched, 2);
	assert_int_equal(b->tasks[2].signalled, 1);
	end(b, 2, SIGTERM);
	spawn(b, 1, 1);
	end(b, 1, 0);
	assert_int_equal(b->tasks[3].signalled, 0);
	bed_destroy(b);
}

/* ---- who hears of it ---- */

static void client_that_follows_is_notified_of_children(void **state)
{
	struct bed *b = bed_create();

	ask(b, SUBMIT("{'argv':['x'],'pmi':true}", ",'spawned':true"));
	spawn(b, 1, 1);
	assert_int_equal(json_integer_value(json_object_get(event(b, "spawned"), "id")), 2);
	assert_int_equal(json_integer_value(json_object_get(event(b, "spawned"), "parent")), 1);
	json_array_clear(b->events);
	end(b, 2, 0);
	assert_non_null(event(b, "ended"));
	bed_destroy(b);
}

static void client_that_does_not_follow_is_not_notified(void **state)
{
	struct bed *b = bed_create();

	ask(b, SUBMIT("{'argv':['x'],'pmi':true}", ""));
	spawn(b, 1, 1);
	assert_null(event(b, "spawned"));
	end(b, 2, 0);
	assert_null(event(b, "ended"));
	bed_destroy(b);
}

static void children_end_with_the_client_that_their_parent_is_tied_to(void **state)
{
	struct bed *b = bed_create();

	ask(b, SUBMIT("{'argv':['x'],'pmi':true}", ",'tied':true"));
	spawn(b, 1, 1);
	end(b, 1, 0);
	dvm_head_client_closed(b->head, CLIENT, b->now);
	dvm_head_turn(b->head, b->now);
	assert_int_equal(b->tasks[2].signalled, 1);
	bed_destroy(b);
}

/* ---- another head ---- */

static void another_head_does_not_run_a_child(void **state)
{
	struct bed *b = bed_create();
	struct journal_reader reader;
	struct dvm_resumed found;
	struct buf before;
	uint32_t version;

	ask(b, SUBMIT("{'argv':['x'],'pmi':true}", ""));
	spawn(b, 1, 1);
	dvm_head_destroy(b->head);
	before = b->journal;
	buf_init(&b->journal, 1 << 20);
	open_head(b);
	assert_int_equal(journal_open(&reader, before.data, before.len, &version), 0);
	assert_int_equal(dvm_head_resume(b->head, &reader, false, &found, b->now), 0);
	dvm_head_client_opened(b->head, CLIENT);
	dvm_head_turn(b->head, b->now);
	assert_int_equal(found.again, 1);
	assert_string_equal(json_string_value(show(b, 2, "state")), "cancelled");
	assert_int_equal(b->tasks[1].launched, 2);
	assert_int_equal(b->tasks[2].launched, 1);
	buf_free(&before);
	bed_destroy(b);
}

/* ---- names ---- */

static void say_names(struct bed *b, uint64_t task, uint32_t instance)
{
	say(b, 0, &(struct dvm_msg){ .type = DVM_NAMES,
				     .names = { task, instance, { "bytes", 5 } } });
}

static void names_go_with_their_task(void **state)
{
	struct bed *b = bed_create();

	ask(b, SUBMIT("{'argv':['x']},{'argv':['y']}", ""));
	say_names(b, 1, 0);
	assert_int_equal(b->asked_names, 1);
	say_names(b, 1, 1);
	say_names(b, 9, 0);
	assert_int_equal(b->asked_names, 1);
	end(b, 2, 0);
	assert_int_equal(b->names_ended, 0);
	end(b, 1, 0);
	assert_int_equal(b->names_ended, 1);
	say_names(b, 1, 0);
	assert_int_equal(b->asked_names, 1);
	bed_destroy(b);
}

/* Its parent may wait for what it was to publish. */
static void the_end_of_a_child_is_told_although_it_has_not_asked(void **state)
{
	struct bed *b = bed_create();

	ask(b, SUBMIT("{'argv':['x'],'pmi':true}", ""));
	spawn(b, 1, 1);
	end(b, 2, 0);
	assert_int_equal(b->names_ended, 1);
	bed_destroy(b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_task_spawns_another),
		cmocka_unit_test(one_that_ends_before_it_is_there_is_answered),
		cmocka_unit_test(one_whose_first_rank_is_never_there_is_answered),
		cmocka_unit_test(spawned_task_waits_for_room_before_queued_ones),
		cmocka_unit_test(one_that_can_never_fit_is_refused),
		cmocka_unit_test(a_spawn_of_a_task_that_has_ended_is_refused),
		cmocka_unit_test(a_spawn_is_refused_that_the_journal_cannot_take),
		cmocka_unit_test(children_end_with_a_parent_that_fails),
		cmocka_unit_test(children_end_at_once_with_a_parent_that_is_cancelled),
		cmocka_unit_test(children_outlive_a_parent_that_ends_well),
		cmocka_unit_test(a_lost_node_ends_a_child_for_ever),
		cmocka_unit_test(a_parent_that_is_run_again_has_no_children),
		cmocka_unit_test(client_that_follows_is_notified_of_children),
		cmocka_unit_test(client_that_does_not_follow_is_not_notified),
		cmocka_unit_test(children_end_with_the_client_that_their_parent_is_tied_to),
		cmocka_unit_test(another_head_does_not_run_a_child),
		cmocka_unit_test(names_go_with_their_task),
		cmocka_unit_test(the_end_of_a_child_is_told_although_it_has_not_asked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
