/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests of running tasks to a head: names and other tasks. Two nodes of 4 cores are
 * played by the test.
 */
#include "played.h"

#include <signal.h>
#include <stdlib.h>

#define NODES 2
#define CORES 4
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
	struct played p;
	struct seen tasks[TASKS_MAX]; /* by number, from 1 */
	unsigned answers;
	struct dvm_spawned answer;    /* the last, and its reason */
	char why[DVM_TEXT_MAX];
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

static void on_message(void *arg, uint32_t node, const struct dvm_msg *m)
{
	struct bed *b = arg;

	if (m->type == DVM_LAUNCH)
		note_launch(b, node, &m->launch);
	else if (m->type == DVM_SIGNAL)
		b->tasks[m->signal.task].signalled++;
	else if (m->type == DVM_SPAWNED)
		note_answer(b, &m->spawned);
}

static bool on_event(void *arg, json_t *event)
{
	json_array_append(((struct bed *)arg)->events, event);
	return false;
}

static void names(void *arg, uint32_t node, const struct dvm_names *m)
{
	((struct bed *)arg)->asked_names++;
}

static void names_end(void *arg, uint64_t task, uint32_t instance)
{
	((struct bed *)arg)->names_ended++;
}

static void bed_destroy(void *bed)
{
	struct bed *b = bed;

	played_end(&b->p);
	json_decref(b->events);
	free(b);
}

static struct bed *bed_create(void)
{
	static const struct dvm_head_ops ops = { .names = names, .names_end = names_end };
	struct bed *b = calloc(1, sizeof(*b));

	b->events = json_array();
	b->p.options = usual_options(NODES);
	b->p.options.queue.window = 3;
	b->p.cores = CORES;
	b->p.message = on_message;
	b->p.event = on_event;
	played_start(&b->p, &ops, true);
	return unit_at_end(bed_destroy, b);
}

#define BED_TEST(name) TEST_ON(name, struct bed *b, bed_create())

#define SUBMIT(tasks, more)                                                      \
	"{'op':'submit','profile':{'id':'p','cwd':'/','env':{}},'tasks':[" tasks "]" more "}"

/* A bed with a task that uses PMI, and so may spawn: task 1. */
static struct bed *bed_with_parent(void)
{
	struct bed *b = bed_create();

	ask(&b->p, SUBMIT("{'argv':['x'],'pmi':true}", ""));
	return b;
}

#define PARENT_TEST(name) TEST_ON(name, struct bed *b, bed_with_parent())

/* The task of this number spawns this number of ranks of "child". */
static void spawn(struct bed *b, uint64_t task, uint32_t ranks)
{
	const struct seen *s = &b->tasks[task];

	say(&b->p, s->node, &(struct dvm_msg){
		.type = DVM_SPAWN,
		.spawn = { task, s->instance, 7, ranks, { "child\0x", 8 }, { "about", 6 } },
	});
}

static void ready(struct bed *b, uint64_t task, const char *why)
{
	say(&b->p, b->tasks[task].node, &(struct dvm_msg){
		.type = DVM_READY, .ready = { task, b->tasks[task].instance, { why, strlen(why) } } });
}

static void end(struct bed *b, uint64_t task, int32_t status)
{
	say(&b->p, b->tasks[task].node, &(struct dvm_msg){
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
	ask(&b->p, "{'op':'show','id':%u}", (unsigned)task);
	return json_object_get(json_object_get(event(b, "task"), "task"), key);
}

/* ---- spawning ---- */

BED_TEST(a_task_spawns_another)
{
	ask(&b->p, SUBMIT("{'argv':['x'],'ranks':2,'pmi':true}", ""));
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
}

PARENT_TEST(one_that_ends_before_it_is_there_is_answered)
{
	spawn(b, 1, 1);
	end(b, 2, 3 << 8);
	assert_string_equal(b->why, "task 2 ended with exit code 3 before its first rank had started PMI");
	spawn(b, 1, 1);
	end(b, 3, 0);
	assert_int_equal(b->answers, 2);
	assert_int_equal(b->answer.why.len, 0);
}

PARENT_TEST(one_whose_first_rank_is_never_there_is_answered)
{
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
}

BED_TEST(spawned_task_waits_for_room_before_queued_ones)
{
	ask(&b->p, SUBMIT("{'argv':['x'],'pmi':true},{'argv':['x'],'ranks':3},"
		      "{'argv':['x'],'ranks':4},{'argv':['x'],'ranks':2}", ""));
	spawn(b, 1, 2);
	assert_int_equal(b->tasks[5].launched, 0);
	end(b, 2, 0);
	assert_int_equal(b->tasks[4].launched, 0);
	assert_int_equal(b->tasks[5].launched, 1);
}

BED_TEST(one_that_can_never_fit_is_refused)
{
	ask(&b->p, SUBMIT("{'argv':['x'],'ranks':3,'pmi':true}", ""));
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
}

PARENT_TEST(a_spawn_of_a_task_that_has_ended_is_refused)
{
	end(b, 1, 0);
	spawn(b, 1, 1);
	assert_string_equal(b->why, "it has ended");
}

BED_TEST(a_spawn_is_refused_that_the_journal_cannot_take)
{
	ask(&b->p, SUBMIT("{'argv':['x'],'pmi':true}", ""));
	b->p.full = true;
	ask(&b->p, "{'op':'cancel','ids':[1]}"); /* the head finds out by this */
	ask(&b->p, SUBMIT("{'argv':['x'],'pmi':true}", ""));
	spawn(b, 1, 1);
	assert_int_equal(b->answers, 1);
	assert_true(b->answer.why.len > 0);
	assert_int_equal(b->tasks[2].launched, 0);
}

/* ---- ends ---- */

PARENT_TEST(children_end_with_a_parent_that_fails)
{
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
}

PARENT_TEST(children_end_at_once_with_a_parent_that_is_cancelled)
{
	spawn(b, 1, 1);
	ready(b, 2, "");
	ask(&b->p, "{'op':'cancel','ids':[1]}");
	assert_int_equal(b->tasks[2].signalled, 1);
	end(b, 1, SIGTERM);
	assert_int_equal(b->tasks[2].signalled, 1);
	end(b, 2, SIGTERM);
	assert_int_equal(b->answers, 1);
}

PARENT_TEST(children_outlive_a_parent_that_ends_well)
{
	spawn(b, 1, 1);
	end(b, 1, 0);
	assert_int_equal(b->tasks[2].signalled, 0);
	end(b, 2, 0);
	assert_string_equal(json_string_value(show(b, 2, "state")), "done");
}

/* The parent is run again and will spawn again. */
BED_TEST(a_lost_node_ends_a_child_for_ever)
{
	uint32_t node;

	ask(&b->p, SUBMIT("{'argv':['x'],'cores':4,'pmi':true}", ""));
	spawn(b, 1, 4);
	node = b->tasks[2].node;
	assert_int_not_equal(node, b->tasks[1].node);
	dvm_head_node_lost(b->p.head, node, "it burns", b->p.now);
	turn(&b->p);
	assert_int_equal(b->tasks[2].launched, 1);
	assert_non_null(strstr(b->why, "was lost: it burns"));
	assert_string_equal(json_string_value(show(b, 2, "state")), "failed");
	assert_string_equal(json_string_value(show(b, 1, "state")), "running");
}

BED_TEST(a_parent_that_is_run_again_has_no_children)
{
	ask(&b->p, SUBMIT("{'argv':['x'],'pmi':true,'retries':1}", ""));
	spawn(b, 1, 1);
	end(b, 1, 1 << 8);
	assert_int_equal(b->tasks[1].launched, 2);
	assert_int_equal(b->tasks[2].signalled, 1);
	end(b, 2, SIGTERM);
	spawn(b, 1, 1);
	end(b, 1, 0);
	assert_int_equal(b->tasks[3].signalled, 0);
}

/* ---- who hears of it ---- */

BED_TEST(client_that_follows_is_notified_of_children)
{
	ask(&b->p, SUBMIT("{'argv':['x'],'pmi':true}", ",'spawned':true"));
	spawn(b, 1, 1);
	assert_int_equal(json_integer_value(json_object_get(event(b, "spawned"), "id")), 2);
	assert_int_equal(json_integer_value(json_object_get(event(b, "spawned"), "parent")), 1);
	json_array_clear(b->events);
	end(b, 2, 0);
	assert_non_null(event(b, "ended"));
}

PARENT_TEST(client_that_does_not_follow_is_not_notified)
{
	spawn(b, 1, 1);
	assert_null(event(b, "spawned"));
	end(b, 2, 0);
	assert_null(event(b, "ended"));
}

BED_TEST(children_end_with_the_client_that_their_parent_is_tied_to)
{
	ask(&b->p, SUBMIT("{'argv':['x'],'pmi':true}", ",'tied':true"));
	spawn(b, 1, 1);
	end(b, 1, 0);
	dvm_head_client_closed(b->p.head, CLIENT, b->p.now);
	turn(&b->p);
	assert_int_equal(b->tasks[2].signalled, 1);
}

/* ---- another head ---- */

PARENT_TEST(another_head_does_not_run_a_child)
{
	struct dvm_resumed found;

	spawn(b, 1, 1);
	found = played_next_head(&b->p, b->p.journal.len, false, 0);
	turn(&b->p);
	assert_int_equal(found.again, 1);
	assert_string_equal(json_string_value(show(b, 2, "state")), "cancelled");
	assert_int_equal(b->tasks[1].launched, 2);
	assert_int_equal(b->tasks[2].launched, 1);
}

/* ---- names ---- */

static void say_names(struct bed *b, uint64_t task, uint32_t instance)
{
	say(&b->p, 0, &(struct dvm_msg){ .type = DVM_NAMES,
				     .names = { task, instance, { "bytes", 5 } } });
}

BED_TEST(names_go_with_their_task)
{
	ask(&b->p, SUBMIT("{'argv':['x']},{'argv':['y']}", ""));
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
}

/* The parent may wait for names that the child was to publish. */
PARENT_TEST(the_end_of_a_child_is_told_although_it_has_not_asked)
{
	spawn(b, 1, 1);
	end(b, 2, 0);
	assert_int_equal(b->names_ended, 1);
}
