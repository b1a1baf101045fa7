/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Nodes of a DVM that come later and go before the end, and a head that is to stop. Nodes
 * are played by the test: it notes what they are told, and says what they do.
 */
#include "idle.h"
#include "requests.h"
#include "unit.h"

#include <errno.h>
#include <stdlib.h>

#include <jansson.h>

#define CLIENT 1
#define CORES 2
#define NODES_MAX 8
#define GRACE_MS 500

struct told {
	unsigned launches, ends; /* tasks that it runs, and is to end */
	uint64_t tasks[16];      /* that it runs */
	uint32_t instances[16];
	bool leave, broken;
};

struct bed {
	struct dvm_head *head;
	struct dvm_time now;
	struct told nodes[NODES_MAX];
	uint32_t grown;  /* how many daemons more have been started */
	uint64_t job;    /* where */
	char names[64];  /* on which nodes */
	int refuses;     /* what ops.grow returns */
	bool down;
	json_t *answer;  /* the last that has a tag */
};

/* ---- operations ---- */

static void take(struct told *n, const struct dvm_msg *m)
{
	if (m->type == DVM_LAUNCH) {
		n->tasks[n->launches] = m->launch.task;
		n->instances[n->launches++] = m->launch.instance;
	}
	n->ends += m->type == DVM_SIGNAL && m->signal.number == 0;
	n->leave = n->leave || m->type == DVM_LEAVE;
}

static void node_send(void *arg, uint32_t node, const void *data, size_t len)
{
	struct bed *b = arg;
	struct dvm_msg m;
	struct cursor c;

	cursor_init(&c, data, len);
	while (cursor_left(&c)) {
		assert_int_equal(dvm_msg_unpack(&c, &m), 0);
		take(&b->nodes[node], &m);
	}
}

static void node_break(void *arg, uint32_t node, const char *why)
{
	((struct bed *)arg)->nodes[node].broken = true;
}

static void client_send(void *arg, uint32_t client, const char *line, size_t len)
{
	struct bed *b = arg;
	json_t *e = json_loadb(line, len, 0, NULL);

	if (!json_object_get(e, "tag")) {
		json_decref(e);
		return;
	}
	json_decref(b->answer);
	b->answer = e;
}

static int record(void *arg, const void *data, size_t len, enum durable_wait wait)
{
	return 0;
}

static int grow(void *arg, uint32_t nodes, uint64_t job, const char *names)
{
	struct bed *b = arg;

	b->grown = nodes;
	b->job = job;
	snprintf(b->names, sizeof(b->names), "%s", names ? names : "any");
	return b->refuses;
}

static void on_end(void *arg)
{
	((struct bed *)arg)->down = true;
}

/* ---- the bed ---- */

static void come(struct bed *b, uint32_t node)
{
	assert_int_equal(tell_registered(b->head, node, CORES, b->now), 0);
	dvm_head_turn(b->head, b->now);
}

/* Two nodes are there. */
static struct bed *bed_create(void)
{
	static const struct dvm_head_ops ops = {
		.node_send = node_send, .node_break = node_break,
		.format = &dvm_json, .client_send = client_send, .record = record, .grow = grow,
		.end = on_end,
	};
	struct dvm_head_options options = usual_options(2);
	struct bed *b = calloc(1, sizeof(*b));

	options.grace_ms = GRACE_MS;
	b->now = (struct dvm_time){ 1000000000, 1000 };
	assert_int_equal(dvm_head_create(&b->head, &options, &ops, b, NULL), 0);
	come(b, 0);
	come(b, 1);
	dvm_head_client_opened(b->head, CLIENT);
	return b;
}

static void bed_destroy(struct bed *b)
{
	dvm_head_destroy(b->head);
	json_decref(b->answer);
	free(b);
}

static void ask(struct bed *b, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	tell_request(b->head, CLIENT, b->now, fmt, ap);
	va_end(ap);
}

static bool answered(const struct bed *b, const char *event)
{
	return b->answer && !strcmp(json_string_value(json_object_get(
					    b->answer, "ev")), event);
}

static long long number(struct bed *b, const char *key)
{
	ask(b, "{'op':'status','tag':9}");
	return json_integer_value(json_object_get(b->answer, key));
}

static const char *state_of(struct bed *b, uint32_t node)
{
	ask(b, "{'op':'status','tag':9}");
	return json_string_value(json_object_get(json_array_get(
		json_object_get(b->answer, "nodes"), node), "state"));
}

/* Submits `tasks` tasks, each of which has a node of its own. */
static void submit(struct bed *b, int tasks)
{
	for (int i = 0; i < tasks; i++)
		ask(b, "{'op':'submit','profile':{'id':'p','cwd':'/','env':{'A':'b'}},'tasks':[{'argv':['x'],'cores':%d}]}",
		    CORES);
}

/* The last task of a node has ended there. */
static void end_task(struct bed *b, uint32_t node, int32_t status)
{
	const struct told *n = &b->nodes[node];
	const struct dvm_msg m = {
		.type = DVM_ENDED,
		.ended = { .task = n->tasks[n->launches - 1],
			   .instance = n->instances[n->launches - 1],
			   .status = status, .told = status != 0 },
	};

	assert_int_equal(tell_msg(b->head, node, &m, b->now), 0);
	dvm_head_turn(b->head, b->now);
}

static void go(struct bed *b, uint32_t node)
{
	dvm_head_node_lost(b->head, node, "its daemon has ended", b->now);
	dvm_head_turn(b->head, b->now);
}

/* Work that is due at a time is done when that time has come, and not before. */
static void wait_for_deadline(struct bed *b)
{
	uint64_t deadline = dvm_head_deadline(b->head);

	assert_true(deadline > b->now.ms && deadline != UINT64_MAX);
	b->now.ms = deadline - 1;
	dvm_head_turn(b->head, b->now);
	assert_int_equal(b->nodes[0].ends + b->nodes[1].ends, 0);
	b->now.ms = deadline;
	dvm_head_turn(b->head, b->now);
}

/* ---- tests ---- */

static void nodes_that_come_later_get_tasks(void **state)
{
	struct bed *b = bed_create();

	submit(b, 4);
	ask(b, "{'op':'grow','nodes':2,'job':7,'tag':1}");
	assert_int_equal(b->grown, 2);
	assert_int_equal(b->job, 7);
	assert_int_equal(dvm_head_positions(b->head), 4);
	come(b, 3);
	assert_null(b->answer);
	assert_int_equal(b->nodes[3].launches, 0);
	ask(b, "{'op':'grow','nodes':1,'tag':2}");
	assert_true(answered(b, "error"));
	come(b, 2);
	assert_true(answered(b, "ok"));
	assert_int_equal(number(b, "running"), 4);
	assert_int_equal(b->nodes[2].launches + b->nodes[3].launches, 2);
	end_task(b, 3, 0);
	assert_int_equal(number(b, "ended"), 1);
	go(b, 2);
	assert_string_equal(state_of(b, 2), "lost");
	assert_int_equal(b->nodes[3].launches, 2);
	bed_destroy(b);
}

/*
 * The node of the only task, among those that have not gone; NODES_MAX: it runs
 * nowhere.
 */
static uint32_t node_that_runs_it(const struct bed *b, const bool *gone)
{
	uint32_t node = 0;

	while (node < NODES_MAX && (gone[node] || !b->nodes[node].launches))
		node++;
	return node;
}

/* The task fails when the fourth node on which it runs is lost, though others are free. */
static void task_is_queued_three_times_when_its_nodes_are_lost(void **state)
{
	struct bed *b = bed_create();
	bool gone[NODES_MAX] = { false };
	uint32_t node;

	ask(b, "{'op':'grow','nodes':%d,'tag':1}", NODES_MAX - 2);
	for (node = 2; node < NODES_MAX; node++)
		come(b, node);
	submit(b, 1);
	for (int run = 1; run <= 4; run++) {
		node = node_that_runs_it(b, gone);
		assert_int_not_equal(node, NODES_MAX);
		assert_int_equal(number(b, "ended"), 0);
		go(b, node);
		gone[node] = true;
	}
	assert_int_equal(node_that_runs_it(b, gone), NODES_MAX);
	assert_int_equal(number(b, "ended"), 1);
	bed_destroy(b);
}

static void nodes_that_are_named(void **state)
{
	struct bed *b = bed_create();

	ask(b, "{'op':'grow','nodes':['x','n1'],'tag':1}");
	assert_true(answered(b, "error"));
	ask(b, "{'op':'grow','nodes':['x',7],'tag':1}");
	assert_true(answered(b, "error"));
	assert_int_equal(b->grown, 0);
	go(b, 1);
	ask(b, "{'op':'grow','nodes':['x','n1'],'tag':1}");
	assert_int_equal(b->grown, 2);
	assert_string_equal(b->names, "x,n1");
	dvm_head_grow_failed(b->head, "srun has ended");
	ask(b, "{'op':'grow','nodes':1,'tag':1}");
	assert_string_equal(b->names, "any");
	bed_destroy(b);
}

static void all_of_them_come_or_none(void **state)
{
	struct bed *b = bed_create();

	ask(b, "{'op':'grow','nodes':2,'tag':1}");
	come(b, 2);
	dvm_head_grow_failed(b->head, "srun has ended");
	assert_true(answered(b, "error"));
	assert_true(b->nodes[2].broken);
	go(b, 2);
	assert_int_equal(dvm_head_positions(b->head), 2);
	ask(b, "{'op':'grow','nodes':1,'tag':2}");
	go(b, 2);
	assert_true(answered(b, "error"));
	b->refuses = -EBUSY;
	ask(b, "{'op':'grow','nodes':1,'tag':3}");
	assert_true(answered(b, "error"));
	assert_int_equal(dvm_head_positions(b->head), 2);
	ask(b, "{'op':'grow','nodes':0,'tag':4}");
	assert_true(answered(b, "error"));
	submit(b, 3);
	assert_int_equal(number(b, "running"), 2);
	bed_destroy(b);
}

static void one_who_asks_for_nodes_may_go(void **state)
{
	struct bed *b = bed_create();

	ask(b, "{'op':'grow','nodes':1,'tag':1}");
	dvm_head_client_closed(b->head, CLIENT, b->now);
	come(b, 2);
	assert_int_equal(dvm_head_registered(b->head), 3);
	bed_destroy(b);
}

static void a_node_leaves_when_nothing_runs_there(void **state)
{
	struct bed *b = bed_create();

	submit(b, 3);
	ask(b, "{'op':'shrink','nodes':['n1'],'tag':1}");
	assert_true(answered(b, "ok"));
	assert_string_equal(state_of(b, 1), "leaving");
	ask(b, "{'op':'undrain','node':'n1','tag':1}");
	assert_true(answered(b, "error"));
	ask(b, "{'op':'shrink','nodes':['n0'],'tag':1}");
	assert_true(answered(b, "error"));
	assert_int_equal(dvm_head_deadline(b->head), UINT64_MAX);
	assert_false(b->nodes[1].leave);
	end_task(b, 1, 0);
	assert_true(b->nodes[1].leave);
	assert_int_equal(b->nodes[1].launches, 1);
	go(b, 1);
	assert_string_equal(state_of(b, 1), "left");
	end_task(b, 0, 0);
	assert_int_equal(b->nodes[0].launches, 2);
	bed_destroy(b);
}

static void task_over_the_grace_of_a_leaving_node_runs_elsewhere(void **state)
{
	struct bed *b = bed_create();
	uint32_t node;

	submit(b, 2);
	ask(b, "{'op':'shrink','nodes':1,'grace':10,'tag':1}");
	assert_true(answered(b, "ok"));
	node = !strcmp(state_of(b, 1), "leaving");
	wait_for_deadline(b);
	assert_int_equal(b->nodes[node].ends, 1);
	assert_int_equal(b->nodes[!node].ends, 0);
	end_task(b, node, 15);
	assert_true(b->nodes[node].leave);
	assert_int_equal(number(b, "queued"), 1);
	end_task(b, !node, 0);
	assert_int_equal(b->nodes[!node].launches, 2);
	assert_int_equal(b->nodes[!node].instances[1], 1);
	end_task(b, !node, 0);
	assert_int_equal(number(b, "failed"), 0);
	bed_destroy(b);
}

static void shrinking_takes_the_idlest(void **state)
{
	struct bed *b = bed_create();

	submit(b, 1);
	ask(b, "{'op':'shrink','nodes':1,'tag':1}");
	for (uint32_t i = 0; i < 2; i++)
		assert_int_equal(b->nodes[i].leave, !b->nodes[i].launches);
	bed_destroy(b);
}

/* Tasks that have not finished then are for a head that goes on. */
static void a_head_that_is_to_stop(void **state)
{
	struct bed *b = bed_create();

	dvm_head_keep_journal(b->head);
	submit(b, 3);
	ask(b, "{'op':'down','work':'keep','tag':1}");
	assert_true(answered(b, "ok"));
	ask(b, "{'op':'submit','tasks':[],'tag':2}");
	assert_true(answered(b, "error"));
	end_task(b, 0, 0);
	assert_int_equal(b->nodes[0].launches, 1);
	wait_for_deadline(b);
	assert_false(b->down);
	assert_int_equal(b->nodes[1].ends, 1);
	end_task(b, 1, 15);
	assert_true(b->down && b->nodes[0].leave && b->nodes[1].leave);
	assert_int_equal(number(b, "queued"), 2);
	assert_int_equal(number(b, "ended"), 1);
	bed_destroy(b);
}

static void without_a_journal_tasks_cannot_be_kept(void **state)
{
	struct bed *b = bed_create();

	ask(b, "{'op':'down','work':'keep','tag':1}");
	assert_true(answered(b, "error"));
	submit(b, 1);
	dvm_head_stop(b->head, b->now);
	dvm_head_turn(b->head, b->now);
	assert_false(b->down);
	end_task(b, b->nodes[1].launches, 0);
	assert_true(b->down);
	bed_destroy(b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nodes_that_come_later_get_tasks),
		cmocka_unit_test(task_is_queued_three_times_when_its_nodes_are_lost),
		cmocka_unit_test(nodes_that_are_named),
		cmocka_unit_test(all_of_them_come_or_none),
		cmocka_unit_test(one_who_asks_for_nodes_may_go),
		cmocka_unit_test(a_node_leaves_when_nothing_runs_there),
		cmocka_unit_test(task_over_the_grace_of_a_leaving_node_runs_elsewhere),
		cmocka_unit_test(shrinking_takes_the_idlest),
		cmocka_unit_test(a_head_that_is_to_stop),
		cmocka_unit_test(without_a_journal_tasks_cannot_be_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
