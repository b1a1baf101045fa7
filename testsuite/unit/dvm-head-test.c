/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Head and nodes of a DVM in one process, without an operating system: what is sent
 * lies in queues until the test delivers it, in any order between different nodes, and
 * processes are numbers that end when the test says so.
 */
#include "dvm-requests.h"
#include "unit.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include <jansson.h>

#include "libdvm/head.h"
#include "libdvm/node.h"

#define NODES 3
#define CORES 4
#define PROCESSES 4096
#define CLIENT 1

struct queue_of_bytes {
	char **items;
	size_t *lens;
	size_t first, count, cap;
};

struct bed;

struct fake_node {
	struct bed *bed;
	uint32_t number;
	struct dvm_node *node;
	struct queue_of_bytes down, up;
	bool lost;
};

struct process {
	uint32_t node;  /* whose it is */
	bool runs;
	bool told;      /* SIGTERM or SIGKILL */
	bool killed;
};

struct bed {
	struct dvm_head *head;
	struct fake_node nodes[NODES];
	struct process processes[PROCESSES];
	int64_t nprocesses;
	struct dvm_time now;
	struct fake_node *pmi_node; /* of the last part that was to have PMI */
	uint32_t pmi_part;
	unsigned pmis, pmi_ends; /* that are open; ranks of them that have ended */
	bool pmi_is_slow;        /* the test says when it is over */
	char places[256];        /* of the same */
	size_t places_len;
	json_t *events; /* what the client was told */
	bool ended;
};

/* ---- bytes under way ---- */

static void push(struct queue_of_bytes *q, const void *data, size_t len)
{
	if (q->first + q->count == q->cap) {
		q->cap = q->cap ? 2 * q->cap : 64;
		q->items = realloc(q->items, q->cap * sizeof(*q->items));
		q->lens = realloc(q->lens, q->cap * sizeof(*q->lens));
	}
	q->items[q->first + q->count] = malloc(len);
	memcpy(q->items[q->first + q->count], data, len);
	q->lens[q->first + q->count++] = len;
}

/* The next, to be freed; NULL: none. */
static char *pop(struct queue_of_bytes *q, size_t *len)
{
	if (!q->count)
		return NULL;
	q->count--;
	*len = q->lens[q->first];
	return q->items[q->first++];
}

static void queue_free(struct queue_of_bytes *q)
{
	size_t len;
	char *data;

	while ((data = pop(q, &len)))
		free(data);
	free(q->items);
	free(q->lens);
}

/* ---- operations ---- */

static void node_send(void *arg, uint32_t node, const void *data, size_t len)
{
	struct bed *b = arg;

	push(&b->nodes[node].down, data, len);
}

static void node_break(void *arg, uint32_t node, const char *why)
{
	fail_msg("node %u is broken off: %s", node, why);
}

static void client_send(void *arg, uint32_t client, const char *line, size_t len)
{
	struct bed *b = arg;
	json_t *event = json_loadb(line, len, 0, NULL);

	assert_non_null(event);
	assert_int_equal(client, CLIENT);
	json_array_append_new(b->events, event);
}

static void on_end(void *arg)
{
	((struct bed *)arg)->ended = true;
}

static void head_send(void *arg, const void *data, size_t len)
{
	struct fake_node *n = arg;

	push(&n->up, data, len);
}

static int open_output(void *arg, uint32_t part)
{
	return 0;
}

static void close_output(void *arg, uint32_t part)
{
}

static int open_pmi(void *arg, uint32_t part, const struct dvm_launch *launch)
{
	struct fake_node *n = arg;

	assert_true(launch->ranks > 1);
	n->bed->pmi_node = n;
	n->bed->pmi_part = part;
	n->bed->places_len = launch->places.len;
	assert_true(launch->places.len <= sizeof(n->bed->places));
	if (launch->places.len)
		memcpy(n->bed->places, launch->places.data, launch->places.len);
	n->bed->pmis++;
	return 0;
}

static void pmi_rank_ended(void *arg, uint32_t part, uint32_t slot, int32_t status)
{
	((struct fake_node *)arg)->bed->pmi_ends++;
}

static void say_to_node(struct fake_node *n, const struct dvm_msg *m)
{
	struct buf out;

	buf_init(&out, 4096);
	assert_int_equal(dvm_msg_pack(&out, m), 0);
	push(&n->down, out.data, out.len);
	buf_free(&out);
}

static void say_pmi_over(struct fake_node *n, uint32_t part)
{
	const struct dvm_msg m = {
		.type = DVM_PMI_OVER, .pmi_part = { .part = part },
	};

	say_to_node(n, &m);
}

static void close_pmi(void *arg, uint32_t part)
{
	struct fake_node *n = arg;

	assert_true(n->bed->pmis > 0);
	n->bed->pmis--;
	if (!n->bed->pmi_is_slow)
		say_pmi_over(n, part);
}

static int64_t start(void *arg, const struct node_rank *rank)
{
	struct fake_node *n = arg;
	const char *program = rank->launch->argv.data;
	struct process *p;

	if (!strcmp(program, "unstartable"))
		return -EAGAIN;
	assert_true(n->bed->nprocesses + 1 < PROCESSES);
	p = &n->bed->processes[++n->bed->nprocesses];
	*p = (struct process){ .node = n->number, .runs = true };
	return n->bed->nprocesses;
}

static void signal_process(void *arg, int64_t process, int number)
{
	struct fake_node *n = arg;
	struct process *p = &n->bed->processes[process];

	assert_int_equal(p->node, n->number);
	assert_true(p->runs);
	p->told = p->told || number == SIGTERM;
	p->killed = p->killed || number == SIGKILL;
}

static void leave(void *arg)
{
}

/* ---- the bed ---- */

static void say_hello(struct fake_node *n)
{
	char name[8];
	const struct dvm_register r = {
		.version = DVM_VERSION,
		.has = { .cores = CORES, .memory = 1000 },
		.port = (uint16_t)(1000 + n->number),
		.name = { name, (size_t)sprintf(name, "n%u", n->number) },
		.build = { "test", 4 },
	};

	dvm_node_register(n->node, &r);
}

static void deliver_all(struct bed *b);

static struct bed *bed_create_member(size_t max_waiting, uint32_t member,
				     uint32_t members)
{
	static const struct dvm_head_ops head_ops = {
		.node_send = node_send, .node_break = node_break,
		.client_send = client_send, .end = on_end,
	};
	static const struct dvm_node_ops node_ops = {
		.send = head_send, .open_output = open_output,
		.close_output = close_output, .open_pmi = open_pmi,
		.pmi_rank_ended = pmi_rank_ended, .close_pmi = close_pmi,
		.start = start, .signal = signal_process, .leave = leave,
	};
	const struct dvm_head_options options = {
		.name = "test", .build = "test", .nodes = NODES,
		.queue = { .window = 100, .patience_ms = 1000 },
		.grace_ms = 500, .max_waiting = max_waiting,
		.member = member, .members = members,
	};
	struct bed *b = calloc(1, sizeof(*b));

	b->events = json_array();
	b->now = (struct dvm_time){ 1000000000, 1000 };
	assert_int_equal(dvm_head_create(&b->head, &options, &head_ops, b, NULL), 0);
	for (uint32_t i = 0; i < NODES; i++) {
		b->nodes[i] = (struct fake_node){ .bed = b, .number = i };
		assert_int_equal(dvm_node_create(&b->nodes[i].node, &node_ops,
						 &b->nodes[i]), 0);
		say_hello(&b->nodes[i]);
	}
	dvm_head_client_opened(b->head, CLIENT);
	deliver_all(b);
	return b;
}

static struct bed *bed_create(size_t max_waiting)
{
	return bed_create_member(max_waiting, 0, 0);
}

static void bed_destroy(struct bed *b)
{
	dvm_head_destroy(b->head);
	for (uint32_t i = 0; i < NODES; i++) {
		dvm_node_destroy(b->nodes[i].node);
		queue_free(&b->nodes[i].down);
		queue_free(&b->nodes[i].up);
	}
	json_decref(b->events);
	free(b);
}

static void deliver_down(struct fake_node *n)
{
	size_t len;
	char *data = pop(&n->down, &len);

	if (!data)
		return;
	assert_int_equal(dvm_node_input(n->node, data, len, n->bed->now), 0);
	dvm_node_turn(n->node, n->bed->now);
	free(data);
}

static void deliver_up(struct fake_node *n)
{
	size_t len;
	char *data = pop(&n->up, &len);

	if (!data)
		return;
	dvm_head_node_input(n->bed->head, n->number, data, len, n->bed->now);
	dvm_head_turn(n->bed->head, n->bed->now);
	free(data);
}

static bool is_quiet(const struct bed *b)
{
	for (uint32_t i = 0; i < NODES; i++)
		if (!b->nodes[i].lost &&
		    (b->nodes[i].down.count || b->nodes[i].up.count))
			return false;
	return true;
}

static void deliver_all(struct bed *b)
{
	do {
		for (uint32_t i = 0; i < NODES; i++) {
			if (b->nodes[i].lost)
				continue;
			dvm_node_turn(b->nodes[i].node, b->now);
			deliver_down(&b->nodes[i]);
			deliver_up(&b->nodes[i]);
		}
		dvm_head_turn(b->head, b->now);
	} while (!is_quiet(b));
}

static void lose(struct bed *b, uint32_t node)
{
	struct fake_node *n = &b->nodes[node];

	n->lost = true;
	for (int64_t i = 1; i <= b->nprocesses; i++)
		if (b->processes[i].node == node)
			b->processes[i].runs = false;
	dvm_head_node_lost(b->head, node, "the test has", b->now);
	dvm_head_turn(b->head, b->now);
}

static void end_process(struct bed *b, int64_t process, int32_t status)
{
	struct process *p = &b->processes[process];
	const struct node_end end = { .status = status, .user_us = 10 };

	assert_true(p->runs);
	p->runs = false;
	assert_true(dvm_node_ended(b->nodes[p->node].node, process, &end, b->now));
}

static void ask(struct bed *b, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	tell_request(b->head, CLIENT, b->now, fmt, ap);
	va_end(ap);
}

#define PROFILE "'profile':{'id':'p','cwd':'/','env':{'A':'b'}}"

static void submit(struct bed *b, const char *tasks)
{
	ask(b, "{'op':'submit'," PROFILE ",'tasks':[%s]}", tasks);
	deliver_all(b);
}

/* The last event of this name. */
static json_t *event(struct bed *b, const char *name)
{
	size_t i = json_array_size(b->events);

	while (i--) {
		json_t *e = json_array_get(b->events, i);

		if (!strcmp(json_string_value(json_object_get(e, "ev")), name))
			return e;
	}
	fail_msg("no event %s has come", name);
	return NULL;
}

/* What the client was told of the end of a task; NULL: nothing. Once at most. */
static json_t *end_of(struct bed *b, json_int_t id)
{
	json_t *e, *t, *found = NULL;
	size_t i, k;

	json_array_foreach(b->events, i, e)
		json_array_foreach(json_object_get(e, "tasks"), k, t) {
			if (strcmp(json_string_value(json_object_get(e, "ev")),
				   "ended") ||
			    json_integer_value(json_object_get(t, "id")) != id)
				continue;
			assert_null(found);
			found = t;
		}
	return found;
}

static const char *text(json_t *o, const char *key)
{
	const char *value = json_string_value(json_object_get(o, key));

	assert_non_null(value);
	return value;
}

static long long number(json_t *o, const char *key)
{
	assert_non_null(json_object_get(o, key));
	return json_integer_value(json_object_get(o, key));
}

static long long status_of(struct bed *b, const char *key)
{
	ask(b, "{'op':'status'}");
	return number(event(b, "status"), key);
}

static long long free_cores(struct bed *b)
{
	json_t *n;
	long long sum = 0;
	size_t i;

	ask(b, "{'op':'status'}");
	json_array_foreach(json_object_get(event(b, "status"), "nodes"), i, n)
		sum += number(n, "free");
	return sum;
}

/* ---- tests ---- */

static void a_task_runs_and_its_end_is_told(void **state)
{
	struct bed *b = bed_create(100);

	submit(b, "{'argv':['x'],'ranks':2,'name':'mine'}");
	assert_int_equal(b->nprocesses, 2);
	assert_int_equal(free_cores(b), NODES * CORES - 2);
	end_process(b, 1, 0);
	deliver_all(b);
	assert_null(end_of(b, 1));
	end_process(b, 2, 0);
	deliver_all(b);
	assert_int_equal(number(end_of(b, 1), "code"), 0);
	assert_string_equal(text(end_of(b, 1), "name"), "mine");
	assert_int_equal(free_cores(b), NODES * CORES);
	bed_destroy(b);
}

static void what_is_wrong_is_refused_and_the_rest_is_taken(void **state)
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
		{ "{'argv':['x'],'output':'there'}", "output" },
		{ "{'argv':['x'],'output':'file'}", "path" },
		{ "{'argv':['x'],'profile':'q'}", "profile" },
		{ "{'argv':['x'],'profile':{'id':'p'}}", "profile" },
		{ "{'argv':['x'],'place':[]}", "place" },
		{ "{'argv':['x'],'place':[{'node':'n9','cores':[0]}]}", "place" },
		{ "{'argv':['x'],'place':[{'node':'n1','cores':[4]}]}", "place" },
		{ "{'argv':['x'],'place':[{'node':'n1','cores':[1]},{'node':'n1','cores':[1]}]}", "place" },
		{ "{'argv':['x'],'place':[{'node':'n1','cores':[1]},{'node':'n1','cores':[2,3]}]}", "place" },
		{ "{'argv':['x'],'place':[{'node':'n1','cores':[1]},{'node':'n2','cores':[1]},{'node':'n1','cores':[2]}]}", "place" },
	};
	struct bed *b = bed_create(100);
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
	bed_destroy(b);
}

static void requests_that_make_no_sense_are_errors(void **state)
{
	static const char *const requests[] = {
		"", "nothing", "[]", "{}", "{'op':7}", "{'op':'fly'}",
		"{'op':'submit'}", "{'op':'submit','tasks':{}}",
		"{'op':'submit','profile':{'id':'x','cwd':'y'},'tasks':[]}",
		"{'op':'submit','profile':{'id':'x','cwd':'/','env':{'a=':'b'}},'tasks':[]}",
		"{'op':'wait'}", "{'op':'wait','ids':[1]}", "{'op':'show'}",
		"{'op':'cancel','ids':['x']}", "{'op':'signal','all':true}",
		"{'op':'drain','node':'n7'}", "{'op':'hello','version':0}",
	};
	struct bed *b = bed_create(100);

	for (size_t i = 0; i < sizeof(requests) / sizeof(*requests); i++) {
		json_array_clear(b->events);
		ask(b, "%s", requests[i]);
		assert_int_equal(json_array_size(b->events), 1);
		assert_true(strlen(text(event(b, "error"), "why")) > 0);
	}
	bed_destroy(b);
}

static void a_client_of_another_version_is_not_heard(void **state)
{
	struct bed *b = bed_create(100);

	ask(b, "{'op':'hello','version':0}"); /* what follows may be on its way already */
	submit(b, "{'argv':['x']}");
	assert_int_equal(json_array_size(b->events), 1);
	assert_non_null(strstr(text(event(b, "error"), "why"), "the client speaks 0"));
	assert_int_equal(b->nprocesses, 0);
	bed_destroy(b);
}

static void the_queue_has_a_limit(void **state)
{
	struct bed *b = bed_create(1);

	ask(b, "{'op':'submit'," PROFILE ",'tasks':[{'argv':['x'],'cores':4,'ranks':3},{'argv':['x']}]}");
	assert_int_equal(json_array_size(json_object_get(
				 event(b, "submitted"), "refused")), 1);
	bed_destroy(b);
}

static void one_rank_that_fails_ends_the_task(void **state)
{
	struct bed *b = bed_create(100);

	submit(b, "{'argv':['x'],'ranks':6}");
	assert_int_equal(b->nprocesses, 6);
	end_process(b, 2, 3 << 8);
	deliver_all(b);
	for (int64_t i = 1; i <= 6; i++)
		assert_true(i == 2 || b->processes[i].told);
	b->now.ms += 500; /* the grace time */
	deliver_all(b);
	for (int64_t i = 1; i <= 6; i++)
		if (b->processes[i].runs) {
			assert_true(b->processes[i].killed);
			end_process(b, i, SIGKILL);
		}
	deliver_all(b);
	assert_int_equal(number(end_of(b, 1), "code"), 3);
	assert_int_equal(number(end_of(b, 1), "rank"), 1);
	assert_int_equal(free_cores(b), NODES * CORES);
	bed_destroy(b);
}

static void a_task_that_cannot_be_started_says_why(void **state)
{
	struct bed *b = bed_create(100);

	submit(b, "{'argv':['unstartable']},{'argv':['x']}");
	assert_int_equal(number(end_of(b, 1), "code"), 126);
	assert_string_equal(text(end_of(b, 1), "why"), strerror(EAGAIN));
	end_process(b, 1, 0);
	deliver_all(b);
	assert_int_equal(number(end_of(b, 2), "code"), 0);
	bed_destroy(b);
}

/* The PMI of the last part that has one says that. */
static void say_failure(struct bed *b, bool asked, const char *why)
{
	const struct dvm_msg m = {
		.type = DVM_FAIL,
		.fail = { b->pmi_part, 5 << 8, 1, asked, { why, strlen(why) } },
	};

	say_to_node(b->pmi_node, &m);
	deliver_all(b);
}

static void say_fail(struct bed *b, const char *why)
{
	say_failure(b, false, why);
}

static void say_abort(struct bed *b)
{
	say_failure(b, true, "rank 1 called abort");
}

static void a_task_of_several_ranks_has_pmi(void **state)
{
	struct bed *b = bed_create(100);

	submit(b, "{'argv':['x']},{'argv':['x'],'ranks':2,'nodes':1}");
	assert_int_equal(b->nprocesses, 3);
	assert_int_equal(b->pmis, 1);
	for (int64_t i = 1; i <= 3; i++)
		end_process(b, i, 0);
	assert_int_equal(b->pmi_ends, 2);
	assert_int_equal(b->pmis, 0);
	say_fail(b, "it comes too late");
	assert_int_equal(number(end_of(b, 2), "code"), 0);
	bed_destroy(b);
}

static void what_fails_in_its_pmi_ends_a_task(void **state)
{
	struct bed *b = bed_create(100);

	submit(b, "{'argv':['x'],'ranks':2}");
	say_abort(b);
	say_fail(b, "another reason");
	assert_true(b->processes[1].told && b->processes[2].told);
	end_process(b, 1, SIGTERM);
	end_process(b, 2, 7 << 8);
	deliver_all(b);
	assert_int_equal(number(end_of(b, 1), "code"), 5);
	assert_int_equal(number(end_of(b, 1), "rank"), 1);
	assert_string_equal(text(end_of(b, 1), "why"), "rank 1 called abort");
	bed_destroy(b);
}

/* The ends of its processes are known first: their code counts, and the reason is added. */
static void a_reason_that_comes_late_counts(void **state)
{
	struct bed *b = bed_create(100);

	b->pmi_is_slow = true;
	submit(b, "{'argv':['x'],'ranks':2}");
	end_process(b, 1, 3 << 8);
	end_process(b, 2, SIGTERM);
	deliver_all(b);
	assert_null(end_of(b, 1));
	say_fail(b, "fence 1 failed");
	say_pmi_over(b->pmi_node, b->pmi_part);
	deliver_all(b);
	assert_int_equal(number(end_of(b, 1), "code"), 3);
	assert_int_equal(number(end_of(b, 1), "rank"), 0);
	assert_string_equal(text(end_of(b, 1), "why"), "fence 1 failed");
	bed_destroy(b);
}

/* A part that is ended for another's sake may be the first that is known to have ended. */
static void the_part_that_failed_first_counts(void **state)
{
	struct bed *b = bed_create(100);

	submit(b, "{'argv':['x'],'ranks':4,'nodes':2}");
	assert_int_equal(b->nprocesses, 4);
	end_process(b, 1, 3 << 8);
	deliver_all(b);
	end_process(b, 3, SIGTERM);
	end_process(b, 4, SIGTERM);
	deliver_all(b);
	end_process(b, 2, SIGTERM);
	deliver_all(b);
	assert_int_equal(number(end_of(b, 1), "code"), 3);
	assert_int_equal(number(end_of(b, 1), "rank"), 0);
	bed_destroy(b);
}

/* What the PMI of task 1 says where its ranks have ended. */
static void say_failed(struct bed *b, uint32_t node, bool asked, const char *why)
{
	const struct dvm_msg m = {
		.type = DVM_FAILED,
		.failed = { 1, 0, 5 << 8, 3, asked, { why, strlen(why) } },
	};
	struct buf out;

	buf_init(&out, 4096);
	assert_int_equal(dvm_msg_pack(&out, &m), 0);
	dvm_head_node_input(b->head, node, out.data, out.len, b->now);
	buf_free(&out);
	deliver_all(b);
}

static void a_task_may_fail_where_it_is_over(void **state)
{
	static const char why[] = "fence 0 failed";
	struct bed *b = bed_create(100);

	submit(b, "{'argv':['x'],'ranks':2,'nodes':2}");
	end_process(b, 1, 0);
	deliver_all(b);
	say_failed(b, b->processes[1].node, false, why);
	assert_true(b->processes[2].told);
	end_process(b, 2, SIGTERM);
	deliver_all(b);
	assert_int_equal(number(end_of(b, 1), "code"), 5);
	assert_int_equal(number(end_of(b, 1), "rank"), 3);
	assert_string_equal(text(end_of(b, 1), "why"), why);
	bed_destroy(b);
}

/* The node that hears of an abort may be told by the head before that the task fails. */
static void an_abort_is_heard_by_a_part_that_is_being_ended(void **state)
{
	struct bed *b = bed_create(100);

	submit(b, "{'argv':['x'],'ranks':4,'nodes':2}");
	end_process(b, 1, 7 << 8);
	deliver_all(b);
	assert_true(b->processes[3].told);
	say_fail(b, "fence 1 failed");
	say_abort(b);
	for (int64_t i = 2; i <= 4; i++)
		end_process(b, i, SIGTERM);
	deliver_all(b);
	assert_int_equal(number(end_of(b, 1), "code"), 7);
	assert_string_equal(text(end_of(b, 1), "why"), "rank 1 called abort");
	bed_destroy(b);
}

static void an_abort_is_heard_after_the_part_that_aborted_has_ended(void **state)
{
	struct bed *b = bed_create(100);

	submit(b, "{'argv':['x'],'ranks':2,'nodes':2}");
	end_process(b, 1, 7 << 8);
	deliver_all(b);
	say_failed(b, b->processes[2].node, false, "fence 1 failed");
	say_failed(b, b->processes[2].node, true, "rank 0 called abort");
	end_process(b, 2, SIGTERM);
	deliver_all(b);
	assert_int_equal(number(end_of(b, 1), "code"), 7);
	assert_string_equal(text(end_of(b, 1), "why"), "rank 0 called abort");
	bed_destroy(b);
}

/* What fails by it elsewhere may be heard first. */
static void an_abort_is_heard_by_a_part_that_doubts(void **state)
{
	struct bed *b = bed_create(100);

	submit(b, "{'argv':['x'],'ranks':2,'nodes':2}");
	say_fail(b, "fence 1 failed");
	say_abort(b);
	assert_true(b->processes[1].told && b->processes[2].told);
	end_process(b, 1, SIGTERM);
	end_process(b, 2, SIGTERM);
	deliver_all(b);
	assert_string_equal(text(end_of(b, 1), "why"), "rank 1 called abort");
	bed_destroy(b);
}

/* ---- nodes that Slurm ends ---- */

static void pass(struct bed *b, uint64_t ms)
{
	b->now.ms += ms;
	deliver_all(b);
}

/* The daemon is ended a little later: the task runs again elsewhere. */
static void assert_was_lost(struct bed *b)
{
	const uint32_t node = b->processes[1].node;
	const int64_t before = b->nprocesses;

	pass(b, 1900);
	assert_null(end_of(b, 1));
	lose(b, node);
	for (int64_t i = 1; i <= before; i++)
		if (b->processes[i].runs)
			end_process(b, i, SIGKILL);
	deliver_all(b);
	assert_int_equal(b->nprocesses, 2 * before);
	for (int64_t i = before + 1; i <= b->nprocesses; i++)
		end_process(b, i, 0);
	deliver_all(b);
	assert_int_equal(number(end_of(b, 1), "code"), 0);
	assert_int_equal(number(end_of(b, 1), "instance"), 1);
	bed_destroy(b);
}

static void ranks_that_end_with_their_node_have_not_failed(void **state)
{
	static const int32_t ends[] = { SIGTERM, SIGKILL, (128 + SIGTERM) << 8 };
	struct bed *b;

	for (size_t i = 0; i < sizeof(ends) / sizeof(*ends); i++) {
		b = bed_create(100);
		submit(b, "{'argv':['x'],'ranks':2,'nodes':1}");
		end_process(b, 1, ends[i]);
		deliver_all(b);
		assert_false(b->processes[2].told);
		end_process(b, 2, 3 << 8);
		assert_was_lost(b);
	}
}

/* Slurm sends SIGCONT first: a program may end by SIGTERM with any code. */
static void after_sigcont_any_end_may_be_slurms(void **state)
{
	struct bed *b = bed_create(100);

	submit(b, "{'argv':['x']}");
	dvm_node_continued(b->nodes[b->processes[1].node].node, b->now);
	end_process(b, 1, 3 << 8);
	assert_was_lost(b);
}

static void what_fails_for_another_node_waits_for_its_word(void **state)
{
	struct bed *b = bed_create(100);

	submit(b, "{'argv':['x'],'ranks':2,'nodes':2}");
	assert_ptr_not_equal(b->pmi_node, &b->nodes[b->processes[1].node]);
	say_fail(b, "rank 0 was killed by signal 15");
	assert_false(b->processes[1].told || b->processes[2].told);
	end_process(b, 1, SIGTERM);
	assert_was_lost(b);
}

/* Nobody has ended the daemon. */
static void an_end_by_a_signal_is_a_failure_in_the_end(void **state)
{
	struct bed *b = bed_create(100);
	uint64_t at;

	submit(b, "{'argv':['x'],'ranks':2,'time':1}");
	end_process(b, 1, SIGTERM);
	deliver_all(b);
	b->now.wall_ns += 1000000000;
	pass(b, 2000);
	assert_true(b->processes[2].told);
	end_process(b, 2, SIGTERM);
	deliver_all(b);
	assert_int_equal(number(end_of(b, 1), "code"), 128 + SIGTERM);
	assert_int_equal(number(end_of(b, 1), "rank"), 0);
	submit(b, "{'argv':['x']}");
	at = b->now.wall_ns;
	end_process(b, 3, SIGKILL);
	b->now.wall_ns += 1000000000;
	pass(b, 2000);
	assert_int_equal(number(end_of(b, 2), "code"), 128 + SIGKILL);
	assert_true(json_real_value(json_array_get(json_object_get(end_of(b, 2), "t"), 3)) ==
		    (double)at / 1e9);
	assert_int_equal(free_cores(b), NODES * CORES);
	bed_destroy(b);
}

/* Its own failure is told by the other node, or never is. */
static void a_doubt_about_others_has_an_end(void **state)
{
	struct bed *b = bed_create(100);

	submit(b, "{'argv':['x'],'ranks':2,'nodes':2}");
	say_fail(b, "fence 1 failed");
	assert_false(b->processes[1].told || b->processes[2].told);
	end_process(b, 1, 3 << 8);
	deliver_all(b);
	assert_true(b->processes[2].told);
	end_process(b, 2, SIGTERM);
	deliver_all(b);
	assert_int_equal(number(end_of(b, 1), "code"), 3);
	submit(b, "{'argv':['x'],'ranks':2,'nodes':2}");
	say_fail(b, "fence 2 failed");
	pass(b, 4000);
	assert_true(b->processes[3].told && b->processes[4].told);
	end_process(b, 3, SIGTERM);
	end_process(b, 4, SIGTERM);
	deliver_all(b);
	assert_int_equal(number(end_of(b, 2), "code"), 5);
	assert_string_equal(text(end_of(b, 2), "why"), "fence 2 failed");
	bed_destroy(b);
}

static void nodes_are_told_where_a_task_is(void **state)
{
	static const uint8_t ip[16] = { 1, 2, 3 };
	struct bed *b = bed_create(100);
	struct dvm_place p;
	struct cursor c;

	for (uint32_t i = 0; i < NODES; i++)
		dvm_head_node_address(b->head, i, ip);
	submit(b, "{'argv':['x'],'ranks':5,'nodes':2}");
	cursor_init(&c, b->places, b->places_len);
	for (uint32_t ranks = 0; ranks < 5; ranks += p.ranks) {
		assert_int_equal(dvm_place_unpack(&c, &p), 0);
		assert_memory_equal(p.address.ip, ip, sizeof(ip));
		assert_int_equal(p.address.port, 1000 + p.node);
		assert_int_equal(((const char *)p.name.data)[1], '0' + (char)p.node);
	}
	assert_true(cursor_done(&c));
	bed_destroy(b);
}

static void what_fails_by_the_end_of_a_task_is_no_reason(void **state)
{
	struct bed *b = bed_create(100);

	submit(b, "{'argv':['x'],'ranks':2}");
	ask(b, "{'op':'cancel','ids':[1]}");
	deliver_all(b);
	end_process(b, 1, SIGTERM);
	say_fail(b, "fence 1 failed");
	end_process(b, 2, SIGTERM);
	deliver_all(b);
	assert_int_equal(number(end_of(b, 1), "code"), 128 + SIGTERM);
	assert_null(json_object_get(end_of(b, 1), "why"));
	bed_destroy(b);
}

static void a_task_is_tried_again_as_often_as_allowed(void **state)
{
	struct bed *b = bed_create(100);

	submit(b, "{'argv':['x'],'retries':2}");
	for (int64_t i = 1; i <= 3; i++) {
		assert_null(end_of(b, 1));
		end_process(b, i, 1 << 8);
		deliver_all(b);
	}
	assert_int_equal(b->nprocesses, 3);
	assert_int_equal(number(end_of(b, 1), "code"), 1);
	assert_int_equal(number(end_of(b, 1), "instance"), 2);
	bed_destroy(b);
}

static void time_limits_hold(void **state)
{
	struct bed *b = bed_create(100);

	submit(b, "{'argv':['x'],'time':10}");
	b->now.ms += 9999;
	deliver_all(b);
	assert_false(b->processes[1].told);
	b->now.ms += 1;
	deliver_all(b);
	assert_true(b->processes[1].told);
	end_process(b, 1, SIGTERM);
	deliver_all(b);
	assert_int_equal(number(end_of(b, 1), "code"), 128 + SIGTERM);
	assert_true(json_is_true(json_object_get(end_of(b, 1), "too_long")));
	bed_destroy(b);
}

static void cancelled_tasks_end(void **state)
{
	struct bed *b = bed_create(100);

	submit(b, "{'argv':['x'],'ranks':12},{'argv':['y']}");
	assert_int_equal(b->nprocesses, 12);
	ask(b, "{'op':'cancel','ids':[1,2]}");
	deliver_all(b);
	assert_string_equal(text(end_of(b, 2), "state"), "cancelled");
	assert_null(end_of(b, 1));
	for (int64_t i = 1; i <= 12; i++) {
		assert_true(b->processes[i].told);
		end_process(b, i, SIGTERM);
	}
	deliver_all(b);
	assert_string_equal(text(end_of(b, 1), "state"), "cancelled");
	assert_int_equal(b->nprocesses, 12);
	bed_destroy(b);
}

static void tied_tasks_end_with_their_client(void **state)
{
	struct bed *b = bed_create(100);

	ask(b, "{'op':'submit','tied':true," PROFILE ",'tasks':[{'argv':['x']}]}");
	submit(b, "{'argv':['x']}");
	dvm_head_client_closed(b->head, CLIENT, b->now);
	deliver_all(b);
	assert_true(b->processes[1].told);
	assert_false(b->processes[2].told);
	bed_destroy(b);
}

static void what_ran_on_a_lost_node_runs_elsewhere(void **state)
{
	struct bed *b = bed_create(100);

	submit(b, "{'argv':['x'],'ranks':12,'name':'all'},{'argv':['x'],'cores':4}");
	lose(b, 1);
	deliver_all(b);
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
	end_process(b, 14, 0);
	deliver_all(b);
	assert_int_equal(number(end_of(b, 2), "code"), 0);
	assert_int_equal(number(end_of(b, 2), "instance"), 1);
	bed_destroy(b);
}

static void drained_nodes_get_nothing(void **state)
{
	struct bed *b = bed_create(100);

	ask(b, "{'op':'drain','node':'n0'}");
	ask(b, "{'op':'drain','node':'n1'}");
	submit(b, "{'argv':['x'],'cores':4},{'argv':['x'],'cores':4}");
	assert_int_equal(b->nprocesses, 1);
	assert_int_equal(b->processes[1].node, 2);
	ask(b, "{'op':'undrain','node':'n1'}");
	deliver_all(b);
	assert_int_equal(b->nprocesses, 2);
	assert_int_equal(b->processes[2].node, 1);
	bed_destroy(b);
}

static void placed_tasks_are_where_they_should_be(void **state)
{
	struct bed *b = bed_create(100);

	submit(b, "{'argv':['x'],'place':[{'node':'n2','cores':[3]},{'node':'n0','cores':[1]}]}");
	assert_int_equal(b->nprocesses, 2);
	assert_int_equal(b->processes[1].node + b->processes[2].node, 2);
	assert_int_equal(free_cores(b), NODES * CORES - 2);
	bed_destroy(b);
}

static void a_typo_does_not_end_a_dvm(void **state)
{
	struct bed *b = bed_create(100);

	ask(b, "{'op':'down','work':'wiat'}");
	assert_non_null(strstr(text(event(b, "error"), "why"), "\"work\" must be"));
	ask(b, "{'op':'down','work':1}");
	assert_non_null(strstr(text(event(b, "error"), "why"), "\"work\" must be"));
	submit(b, "{'argv':['x']}");
	assert_non_null(event(b, "submitted"));
	assert_false(b->ended);
	bed_destroy(b);
}

static void a_dvm_goes_down_when_its_work_is_done(void **state)
{
	struct bed *b = bed_create(100);

	submit(b, "{'argv':['x']}");
	ask(b, "{'op':'down'}");
	assert_non_null(strstr(text(event(b, "error"), "why"), "1 tasks"));
	ask(b, "{'op':'down','work':'wait'}");
	assert_false(b->ended);
	submit(b, "{'argv':['x']}");
	assert_non_null(strstr(text(event(b, "error"), "why"), "going down"));
	end_process(b, 1, 0);
	deliver_all(b);
	assert_true(b->ended);
	bed_destroy(b);
}

static void those_who_wait_are_told(void **state)
{
	struct bed *b = bed_create(100);

	ask(b, "{'op':'submit','watch':false," PROFILE ",'tasks':[{'argv':['x']},{'argv':['x']}]}");
	deliver_all(b);
	end_process(b, 1, 0);
	deliver_all(b);
	assert_null(end_of(b, 1));
	ask(b, "{'op':'wait','ids':[1,2]}");
	assert_int_equal(number(event(b, "ok"), "tasks"), 2);
	assert_non_null(end_of(b, 1));
	end_process(b, 2, 0);
	deliver_all(b);
	assert_non_null(end_of(b, 2));
	bed_destroy(b);
}

/* ---- what a node says of its ranks ---- */

static bool is_that(void *arg, int64_t process)
{
	return process == *(const int64_t *)arg;
}

static void a_node_knows_which_tasks_run(void **state)
{
	struct bed *b = bed_create(100);
	struct dvm_node *node;
	int64_t first = 1, other = 3;

	submit(b, "{'argv':['x'],'ranks':2}");
	node = b->nodes[b->processes[1].node].node;
	assert_true(dvm_node_runs(node, 1, 0));
	assert_false(dvm_node_runs(node, 1, 1));
	assert_false(dvm_node_runs(node, 2, 0));
	assert_true(dvm_node_is_rank(node, 1));
	assert_false(dvm_node_is_rank(node, other));
	assert_true(dvm_node_any_rank(node, is_that, &first));
	assert_false(dvm_node_any_rank(node, is_that, &other));
	end_process(b, 1, 0);
	assert_false(dvm_node_is_rank(node, 1));
	assert_true(dvm_node_runs(node, 1, 0));
	end_process(b, 2, 0);
	assert_false(dvm_node_runs(node, 1, 0));
	assert_false(dvm_node_any_rank(node, is_that, &first));
	bed_destroy(b);
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
	bed_destroy(b);
}

static void every_task_ends_once_whatever_happens(void **state)
{
	for (unsigned seed = 0; seed < 200; seed++)
		run_seed(seed);
}

static void several_dvms_give_no_number_twice(void **state)
{
	struct bed *b = bed_create_member(100, 2, 3);

	ask(b, "{'op':'hello','version':1}");
	assert_int_equal(number(event(b, "hello"), "members"), 3);
	submit(b, "{'argv':['a']},{'argv':['b']},{'argv':['c']}");
	for (int i = 0; i < 3; i++)
		assert_int_equal(json_integer_value(json_array_get(json_object_get(
			event(b, "submitted"), "ids"), i)), 2 + 3 * i);
	ask(b, "{'op':'show','id':5}");
	assert_int_equal(number(json_object_get(event(b, "task"), "task"), "id"), 5);
	ask(b, "{'op':'cancel','ids':[4]}");
	assert_string_equal(text(event(b, "error"), "why"), "there is no task 4 here");
	bed_destroy(b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_task_runs_and_its_end_is_told),
		cmocka_unit_test(what_is_wrong_is_refused_and_the_rest_is_taken),
		cmocka_unit_test(requests_that_make_no_sense_are_errors),
		cmocka_unit_test(a_client_of_another_version_is_not_heard),
		cmocka_unit_test(the_queue_has_a_limit),
		cmocka_unit_test(several_dvms_give_no_number_twice),
		cmocka_unit_test(one_rank_that_fails_ends_the_task),
		cmocka_unit_test(a_task_that_cannot_be_started_says_why),
		cmocka_unit_test(a_task_of_several_ranks_has_pmi),
		cmocka_unit_test(what_fails_in_its_pmi_ends_a_task),
		cmocka_unit_test(a_reason_that_comes_late_counts),
		cmocka_unit_test(what_fails_by_the_end_of_a_task_is_no_reason),
		cmocka_unit_test(the_part_that_failed_first_counts),
		cmocka_unit_test(a_task_may_fail_where_it_is_over),
		cmocka_unit_test(an_abort_is_heard_by_a_part_that_is_being_ended),
		cmocka_unit_test(an_abort_is_heard_after_the_part_that_aborted_has_ended),
		cmocka_unit_test(an_abort_is_heard_by_a_part_that_doubts),
		cmocka_unit_test(ranks_that_end_with_their_node_have_not_failed),
		cmocka_unit_test(after_sigcont_any_end_may_be_slurms),
		cmocka_unit_test(what_fails_for_another_node_waits_for_its_word),
		cmocka_unit_test(an_end_by_a_signal_is_a_failure_in_the_end),
		cmocka_unit_test(a_doubt_about_others_has_an_end),
		cmocka_unit_test(nodes_are_told_where_a_task_is),
		cmocka_unit_test(a_task_is_tried_again_as_often_as_allowed),
		cmocka_unit_test(time_limits_hold),
		cmocka_unit_test(cancelled_tasks_end),
		cmocka_unit_test(tied_tasks_end_with_their_client),
		cmocka_unit_test(what_ran_on_a_lost_node_runs_elsewhere),
		cmocka_unit_test(drained_nodes_get_nothing),
		cmocka_unit_test(placed_tasks_are_where_they_should_be),
		cmocka_unit_test(a_node_knows_which_tasks_run),
		cmocka_unit_test(a_typo_does_not_end_a_dvm),
		cmocka_unit_test(a_dvm_goes_down_when_its_work_is_done),
		cmocka_unit_test(those_who_wait_are_told),
		cmocka_unit_test(every_task_ends_once_whatever_happens),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
