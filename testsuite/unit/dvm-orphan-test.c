/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Nodes that outlive their head, and wait for another. Heads and nodes are real; what is
 * sent lies in queues, and processes are numbers. A head is lost at any moment: what it
 * has sent still comes, or some of it, and what it was sent is lost.
 */
#include "dvm-requests.h"
#include "unit.h"

#include <signal.h>
#include <stdlib.h>

#include <jansson.h>

#include "libdvm/head.h"
#include "libdvm/node.h"

#define NODES 3
#define CORES 4
#define PROCESSES 4096
#define TASKS 64
#define CLIENT 1
#define JOURNAL_MAX ((size_t)64 << 20)
#define QUEUE_MAX ((size_t)1 << 20)

struct bed;

struct fake_node {
	struct bed *bed;
	uint32_t number;
	char name[8];
	struct dvm_node *node;
	struct buf down, up;
	struct buf pmi;  /* what the PMI of its tasks says to it */
	bool gone, left;
};

struct process {
	uint32_t node, rank;
	uint64_t task;
	bool runs, killed, polite;
	char cwd[16];
};

struct bed {
	struct dvm_head *head;
	struct dvm_time now;
	struct fake_node nodes[NODES];
	struct process processes[PROCESSES];
	int64_t nprocesses;
	struct buf journal;
	json_t *answer;      /* the last that was no end */
	bool full;           /* nothing can be written */
	uint64_t random;
};

/* ---- operations ---- */

static void node_send(void *arg, uint32_t node, const void *data, size_t len)
{
	struct bed *b = arg;

	assert_int_equal(buf_append(&b->nodes[node].down, data, len), 0);
}

static void node_break(void *arg, uint32_t node, const char *why)
{
	fail_msg("node %u is broken off: %s", node, why);
}

static void client_send(void *arg, uint32_t client, const char *line, size_t len)
{
	struct bed *b = arg;
	json_t *e = json_loadb(line, len, 0, NULL);

	if (json_object_get(e, "tasks") && json_is_array(json_object_get(e, "tasks"))) {
		json_decref(e);
		return;
	}
	json_decref(b->answer);
	b->answer = e;
}

static int record(void *arg, const void *data, size_t len, uint32_t waits)
{
	struct bed *b = arg;

	return b->full ? -28 : buf_append(&b->journal, data, len);
}

static void on_end(void *arg)
{
}

static void head_send(void *arg, const void *data, size_t len)
{
	struct fake_node *n = arg;

	assert_int_equal(buf_append(&n->up, data, len), 0);
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
	return 0;
}

static void pmi_rank_ended(void *arg, uint32_t part, uint32_t slot, int32_t status)
{
}

static void close_pmi(void *arg, uint32_t part)
{
	struct fake_node *n = arg;
	const struct dvm_msg m = { .type = DVM_PMI_OVER, .pmi_part = { .part = part } };

	assert_int_equal(dvm_msg_pack(&n->pmi, &m), 0);
}

/* A rank never runs twice at once. */
static int64_t start(void *arg, const struct node_rank *rank)
{
	struct fake_node *n = arg;
	struct bed *b = n->bed;
	struct process p = {
		.node = n->number, .task = rank->launch->task, .runs = true,
		.rank = rank->launch->first_rank + rank->local,
	};

	snprintf(p.cwd, sizeof(p.cwd), "%s", (const char *)rank->profile->cwd.data);
	for (int64_t i = 1; i <= b->nprocesses; i++)
		if (b->processes[i].runs && !b->processes[i].killed)
			assert_false(b->processes[i].task == p.task &&
				     b->processes[i].rank == p.rank);
	assert_true(b->nprocesses + 1 < PROCESSES);
	b->processes[++b->nprocesses] = p;
	return b->nprocesses;
}

static void signal_process(void *arg, int64_t process, int number)
{
	struct fake_node *n = arg;
	struct process *p = &n->bed->processes[process];

	assert_true(p->runs);
	p->killed = p->killed || number == SIGKILL;
	p->polite = p->polite || number == SIGTERM;
}

static void leave(void *arg)
{
	((struct fake_node *)arg)->left = true;
}

/* ---- heads ---- */

static void make_head(struct bed *b, bool adopts)
{
	static const struct dvm_head_ops ops = {
		.node_send = node_send, .node_break = node_break,
		.client_send = client_send, .record = record, .end = on_end,
	};
	const struct dvm_head_options options = {
		.name = "test", .build = "test", .nodes = NODES,
		.queue = { .window = 100, .patience_ms = 1000 },
		.grace_ms = 500, .max_waiting = TASKS, .keeps = true,
		.adopts = adopts,
	};

	assert_int_equal(dvm_head_create(&b->head, &options, &ops, b, NULL), 0);
}

static void tell_node(struct fake_node *n, struct buf *what)
{
	struct buf in = *what;

	buf_init(what, QUEUE_MAX);
	if (in.len && !n->gone)
		assert_int_equal(dvm_node_input(n->node, in.data, in.len,
						n->bed->now), 0);
	dvm_node_turn(n->node, n->bed->now);
	buf_free(&in);
}

static void deliver_down(struct fake_node *n)
{
	tell_node(n, &n->pmi);
	tell_node(n, &n->down);
}

static void deliver_up(struct fake_node *n)
{
	struct buf in = n->up;

	buf_init(&n->up, QUEUE_MAX);
	if (in.len && !n->gone)
		dvm_head_node_input(n->bed->head, n->number, in.data, in.len,
				    n->bed->now);
	dvm_head_turn(n->bed->head, n->bed->now);
	buf_free(&in);
}

static void deliver_all(struct bed *b)
{
	for (int i = 0; i < 4 * NODES; i++) {
		deliver_down(&b->nodes[i % NODES]);
		deliver_up(&b->nodes[i % NODES]);
	}
}

static struct bed *bed_create(void)
{
	static const struct dvm_node_ops node_ops = {
		.send = head_send, .open_output = open_output,
		.close_output = close_output, .open_pmi = open_pmi,
		.pmi_rank_ended = pmi_rank_ended, .close_pmi = close_pmi,
		.start = start, .signal = signal_process, .leave = leave,
	};
	struct bed *b = calloc(1, sizeof(*b));

	b->now = (struct dvm_time){ 1000000000, 1000 };
	buf_init(&b->journal, JOURNAL_MAX);
	assert_int_equal(journal_put_header(&b->journal), 0);
	make_head(b, false);
	for (uint32_t i = 0; i < NODES; i++) {
		struct fake_node *n = &b->nodes[i];
		const struct dvm_register r = {
			.version = DVM_VERSION, .has = { CORES, 0, 1000 },
			.name = { n->name, (size_t)snprintf(n->name, sizeof(n->name),
							    "n%u", i) },
		};

		*n = (struct fake_node){ .bed = b, .number = i };
		snprintf(n->name, sizeof(n->name), "n%u", i);
		buf_init(&n->down, QUEUE_MAX);
		buf_init(&n->up, QUEUE_MAX);
		buf_init(&n->pmi, QUEUE_MAX);
		assert_int_equal(dvm_node_create(&n->node, &node_ops, n), 0);
		dvm_node_register(n->node, &r);
		dvm_node_turn(n->node, b->now);
		deliver_up(n);
	}
	dvm_head_keep_journal(b->head);
	dvm_head_client_opened(b->head, CLIENT);
	return b;
}

static void bed_destroy(struct bed *b)
{
	dvm_head_destroy(b->head);
	for (uint32_t i = 0; i < NODES; i++) {
		dvm_node_destroy(b->nodes[i].node);
		buf_free(&b->nodes[i].down);
		buf_free(&b->nodes[i].up);
		buf_free(&b->nodes[i].pmi);
	}
	buf_free(&b->journal);
	json_decref(b->answer);
	free(b);
}

/* What nodes say meanwhile is said to nobody. */
static void lose_head(struct bed *b)
{
	dvm_head_destroy(b->head);
	b->head = NULL;
	for (uint32_t i = 0; i < NODES; i++) {
		deliver_down(&b->nodes[i]);
		buf_clear(&b->nodes[i].up);
	}
}

static void call_node(struct bed *b, uint32_t i)
{
	static const struct dvm_msg adopt = { .type = DVM_ADOPT };
	struct fake_node *n = &b->nodes[i];

	if (n->gone) {
		dvm_head_node_absent(b->head, i, n->name);
		return;
	}
	assert_int_equal(dvm_msg_pack(&n->down, &adopt), 0);
	deliver_down(n);
	deliver_up(n);
}

static struct dvm_resumed next_head(struct bed *b, bool once)
{
	struct journal_reader in;
	struct dvm_resumed found;
	size_t len = b->journal.len;
	char *copy = malloc(len);
	uint32_t version;

	memcpy(copy, b->journal.data, len);
	make_head(b, true);
	for (uint32_t i = 0; i < NODES; i++)
		call_node(b, i);
	assert_int_equal(dvm_head_registered(b->head), NODES);
	assert_int_equal(journal_open(&in, copy, len, &version), 0);
	assert_int_equal(dvm_head_resume(b->head, &in, once, &found, b->now), 0);
	free(copy);
	dvm_head_client_opened(b->head, CLIENT);
	dvm_head_turn(b->head, b->now);
	return found;
}

/* ---- requests ---- */

static void ask(struct bed *b, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	tell_request(b->head, CLIENT, b->now, fmt, ap);
	va_end(ap);
}

#define SUBMIT "{'op':'submit','profile':{'id':'p','cwd':'/','env':{'A':'b'}},'tasks':["

static json_int_t status(struct bed *b, const char *key)
{
	ask(b, "{'op':'status'}");
	return json_integer_value(json_object_get(b->answer, key));
}

static json_t *task(struct bed *b, int id)
{
	ask(b, "{'op':'show','id':%d}", id);
	return json_object_get(b->answer, "task");
}

static const char *state(struct bed *b, int id)
{
	return json_string_value(json_object_get(task(b, id), "state"));
}

static json_int_t instance(struct bed *b, int id)
{
	return json_integer_value(json_object_get(task(b, id), "instance"));
}

/* ---- processes ---- */

static void end_process(struct bed *b, int64_t i, int32_t status)
{
	struct process *p = &b->processes[i];
	const struct node_end end = { .status = status };

	p->runs = false;
	if (b->nodes[p->node].gone)
		return;
	assert_true(dvm_node_ended(b->nodes[p->node].node, i, &end, b->now));
	dvm_node_turn(b->nodes[p->node].node, b->now);
}

static void end_killed(struct bed *b)
{
	for (int64_t i = 1; i <= b->nprocesses; i++)
		if (b->processes[i].runs &&
		    (b->processes[i].killed || b->processes[i].polite))
			end_process(b, i, b->processes[i].killed ? SIGKILL : SIGTERM);
}

static void end_all(struct bed *b, int32_t status)
{
	for (int64_t i = 1; i <= b->nprocesses; i++)
		if (b->processes[i].runs)
			end_process(b, i, status);
}

/* Everything, until nothing is left to be done. */
static void finish(struct bed *b)
{
	for (int i = 0; i < 4 * TASKS; i++) {
		deliver_all(b);
		end_killed(b);
		end_all(b, 0);
	}
	deliver_all(b);
}

static int64_t process_of(const struct bed *b, uint64_t task)
{
	for (int64_t i = b->nprocesses; i; i--)
		if (b->processes[i].task == task)
			return i;
	return 0;
}

static unsigned starts(const struct bed *b, uint64_t task)
{
	unsigned n = 0;

	for (int64_t i = 1; i <= b->nprocesses; i++)
		n += b->processes[i].task == task;
	return n;
}

static unsigned ends(const struct bed *b, uint64_t task)
{
	struct journal_reader in;
	struct journal_record r;
	uint32_t version;
	unsigned n = 0;

	assert_int_equal(journal_open(&in, b->journal.data, b->journal.len,
				      &version), 0);
	while (journal_next(&in, &r))
		n += r.type == JOURNAL_END && r.end.task == task;
	return n;
}

/* No node keeps anything, or runs anything that its head does not know. */
static void assert_nothing_is_kept(struct bed *b)
{
	struct dvm_resumed found;

	lose_head(b);
	for (uint32_t i = 0; i < NODES; i++) {
		static const struct dvm_msg adopt = { .type = DVM_ADOPT };
		struct cursor c;
		struct dvm_msg m;

		if (b->nodes[i].gone)
			continue;
		assert_int_equal(dvm_msg_pack(&b->nodes[i].down, &adopt), 0);
		deliver_down(&b->nodes[i]);
		cursor_init(&c, b->nodes[i].up.data, b->nodes[i].up.len);
		assert_int_equal(dvm_msg_unpack(&c, &m), 0);
		assert_int_equal(m.type, DVM_REGISTER);
		assert_int_equal(cursor_left(&c), 0);
		buf_clear(&b->nodes[i].up);
	}
	found = next_head(b, false);
	assert_int_equal(found.adopted + found.again + found.queued, 0);
}

/* ---- tests ---- */

static void what_runs_goes_on(void **state_)
{
	struct bed *b = bed_create();
	struct dvm_resumed found;

	ask(b, SUBMIT "{'argv':['a']},{'argv':['b'],'ranks':5,'cores':2}]}");
	deliver_all(b);
	assert_int_equal(b->nprocesses, 6);
	lose_head(b);
	found = next_head(b, true);
	assert_int_equal(found.adopted, 2);
	assert_int_equal(found.again + found.lost, 0);
	assert_int_equal(status(b, "running"), 2);
	assert_int_equal(instance(b, 2), 0);
	end_all(b, 0);
	deliver_all(b);
	assert_string_equal(state(b, 1), "done");
	assert_string_equal(state(b, 2), "done");
	assert_int_equal(b->nprocesses, 6);
	assert_nothing_is_kept(b);
	bed_destroy(b);
}

/* Its cores are not given to others. */
static void what_it_has_is_taken(void **state_)
{
	struct bed *b = bed_create();

	ask(b, SUBMIT "{'argv':['a'],'cores':4},{'argv':['b'],'cores':2}]}");
	deliver_all(b);
	lose_head(b);
	next_head(b, false);
	ask(b, SUBMIT "{'argv':['c'],'ranks':3,'cores':2},{'argv':['d']}]}");
	deliver_all(b);
	assert_string_equal(state(b, 3), "running");
	assert_string_equal(state(b, 4), "queued");
	finish(b);
	assert_int_equal(status(b, "ended"), 4);
	assert_int_equal(status(b, "failed"), 0);
	bed_destroy(b);
}

static void what_ends_meanwhile_is_told(void **state_)
{
	struct bed *b = bed_create();

	ask(b, SUBMIT "{'argv':['a']},{'argv':['b'],'ranks':5,'cores':2}]}");
	deliver_all(b);
	lose_head(b);
	end_process(b, process_of(b, 1), 3 << 8);
	end_process(b, process_of(b, 2), 0);
	next_head(b, false);
	assert_string_equal(state(b, 1), "failed");
	assert_int_equal(json_integer_value(json_object_get(task(b, 1), "code")), 3);
	assert_string_equal(state(b, 2), "running");
	finish(b);
	assert_string_equal(state(b, 2), "done");
	assert_int_equal(ends(b, 1) + ends(b, 2), 2);
	assert_nothing_is_kept(b);
	bed_destroy(b);
}

/* Between a task's end in the journal and what the node hears of it. */
static void an_end_counts_once(void **state_)
{
	struct bed *b = bed_create();

	ask(b, SUBMIT "{'argv':['a']}]}");
	deliver_all(b);
	end_process(b, 1, 0);
	deliver_up(&b->nodes[0]);
	deliver_up(&b->nodes[1]);
	deliver_up(&b->nodes[2]);
	assert_int_equal(ends(b, 1), 1);
	for (int i = 0; i < NODES; i++)
		buf_clear(&b->nodes[i].down);
	lose_head(b);
	assert_int_equal(next_head(b, false).ended, 1);
	finish(b);
	assert_int_equal(ends(b, 1), 1);
	assert_int_equal(b->nprocesses, 1);
	assert_nothing_is_kept(b);
	bed_destroy(b);
}

/* What the journal does not have, the node keeps. */
static void an_end_that_cannot_be_written_is_kept(void **state_)
{
	struct bed *b = bed_create();

	ask(b, SUBMIT "{'argv':['a']}]}");
	deliver_all(b);
	b->full = true;
	end_process(b, 1, 5 << 8);
	deliver_all(b);
	b->full = false;
	lose_head(b);
	next_head(b, false);
	assert_int_equal(json_integer_value(json_object_get(task(b, 1), "code")), 5);
	assert_int_equal(b->nprocesses, 1);
	bed_destroy(b);
}

static void what_was_not_started_is_run(void **state_)
{
	struct bed *b = bed_create();
	struct dvm_resumed found;

	ask(b, SUBMIT "{'argv':['a']},{'argv':['b']}]}");
	for (int i = 0; i < NODES; i++)
		buf_clear(&b->nodes[i].down);
	lose_head(b);
	found = next_head(b, false);
	assert_int_equal(found.again, 2);
	finish(b);
	assert_int_equal(starts(b, 1), 1);
	assert_int_equal(starts(b, 2), 1);
	assert_int_equal(status(b, "ended"), 2);
	bed_destroy(b);
}

/* Of a task one of its nodes is lost with the head, or has not heard of it. */
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
	lose_head(b);
	assert_int_equal(next_head(b, once).adopted, 1);
	deliver_all(b);
	assert_true(b->processes[1].killed && b->processes[2].killed);
	end_killed(b);
	deliver_all(b);
	if (once) {
		assert_string_equal(state(b, 1), "failed");
		assert_int_equal(ends(b, 1), 1);
	} else {
		assert_int_equal(instance(b, 1), 1);
	}
	finish(b);
	assert_int_equal(ends(b, 1), 1);
	bed_destroy(b);
}

static void a_task_of_which_a_part_is_missing(void **state_)
{
	check_partial(false, false);
	check_partial(false, true);
	check_partial(true, false);
	check_partial(true, true);
}

static void a_failure_ends_the_other_parts(void **state_)
{
	struct bed *b = bed_create();

	ask(b, SUBMIT "{'argv':['a'],'ranks':6,'cores':2}]}");
	deliver_all(b);
	lose_head(b);
	end_process(b, 1, 1 << 8); /* another rank of its node still runs */
	next_head(b, false);
	deliver_all(b);
	for (int i = 2; i <= 6; i++)
		assert_true(b->processes[i].polite);
	end_killed(b);
	deliver_all(b);
	assert_string_equal(state(b, 1), "failed");
	assert_int_equal(json_integer_value(json_object_get(task(b, 1), "code")), 1);
	bed_destroy(b);
}

/* Of a task whose part here has ended well, others would wait for it for ever. */
static void a_failure_that_is_found_while_there_is_no_head(void **state_)
{
	struct bed *b = bed_create();
	const struct dvm_msg failed = {
		.type = DVM_FAILED,
		.failed = { .task = 1, .status = 1 << 8, .why = { "fence 0", 7 } },
	};
	struct fake_node *n;

	ask(b, SUBMIT "{'argv':['a'],'ranks':2,'nodes':2}]}");
	deliver_all(b);
	n = &b->nodes[b->processes[1].node];
	end_process(b, 1, 0);
	deliver_all(b);
	lose_head(b);
	assert_int_equal(dvm_msg_pack(&n->pmi, &failed), 0);
	tell_node(n, &n->pmi);
	buf_clear(&n->up);
	next_head(b, false);
	deliver_all(b);
	assert_true(b->processes[2].polite);
	end_killed(b);
	deliver_all(b);
	assert_string_equal(json_string_value(json_object_get(task(b, 1), "why")),
			    "fence 0");
	bed_destroy(b);
}

static void what_was_cancelled_is_ended(void **state_)
{
	struct bed *b = bed_create();

	ask(b, SUBMIT "{'argv':['a']},{'argv':['b']}]}");
	ask(b, SUBMIT "{'argv':['c']}],'tied':true}");
	deliver_all(b);
	ask(b, "{'op':'cancel','ids':[2]}");
	for (int i = 0; i < NODES; i++)
		buf_clear(&b->nodes[i].down);
	lose_head(b);
	next_head(b, false);
	deliver_all(b);
	assert_false(b->processes[1].polite);
	assert_true(b->processes[2].polite && b->processes[3].polite);
	end_killed(b);
	deliver_all(b);
	assert_string_equal(state(b, 1), "running");
	assert_string_equal(state(b, 2), "cancelled");
	assert_string_equal(state(b, 3), "cancelled");
	assert_int_equal(b->nprocesses, 3);
	bed_destroy(b);
}

/* The journal has lost its begin: nobody knows of the task. */
static void what_nobody_wants_is_killed(void **state_)
{
	struct bed *b = bed_create();

	ask(b, SUBMIT "{'argv':['a']}]}");
	deliver_all(b);
	lose_head(b);
	b->journal.len = JOURNAL_HEADER_SIZE;
	assert_int_equal(next_head(b, false).adopted, 0);
	deliver_all(b);
	assert_true(b->processes[1].killed);
	end_killed(b);
	deliver_all(b);
	assert_int_equal(ends(b, 1), 0);
	assert_nothing_is_kept(b);
	bed_destroy(b);
}

/* Numbers of profiles are a head's: this one has not heard of the other's. */
static void each_head_has_its_own_profiles(void **state_)
{
	struct bed *b = bed_create();

	ask(b, SUBMIT "{'argv':['a']},{'argv':['b']}]}");
	deliver_all(b);
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
	bed_destroy(b);
}

/* The end of a try that is not in the journal is not that of the next. */
static void a_start_that_the_journal_has_lost(void **state_)
{
	struct bed *b = bed_create();
	size_t len;

	ask(b, SUBMIT "{'argv':['a'],'retries':1}]}");
	deliver_all(b);
	len = b->journal.len;
	end_process(b, 1, 1 << 8);
	deliver_all(b);
	assert_int_equal(b->nprocesses, 2);
	lose_head(b);
	b->journal.len = len;
	next_head(b, false);
	deliver_all(b);
	assert_true(b->processes[2].killed);
	end_killed(b);
	deliver_all(b);
	assert_string_equal(state(b, 1), "running");
	assert_int_equal(instance(b, 1), 2);
	finish(b);
	assert_int_equal(ends(b, 1), 1);
	bed_destroy(b);
}

static void told_to_stop(bool now)
{
	const struct dvm_msg stop = { .type = DVM_STOP, .stop.now = now };
	struct bed *b = bed_create();

	ask(b, SUBMIT "{'argv':['a'],'cores':4},{'argv':['b'],'cores':4},{'argv':['c'],'cores':4}]}");
	deliver_all(b);
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
	bed_destroy(b);
}

static void a_node_to_which_no_head_comes(void **state_)
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

/* One of a node is started once; one of several may be ended half begun. */
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
	bed_destroy(b);
}

static void heads_are_lost_at_any_moment(void **state_)
{
	for (uint64_t seed = 1; seed <= 300; seed++)
		check_seed(seed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_runs_goes_on),
		cmocka_unit_test(what_it_has_is_taken),
		cmocka_unit_test(what_ends_meanwhile_is_told),
		cmocka_unit_test(an_end_counts_once),
		cmocka_unit_test(an_end_that_cannot_be_written_is_kept),
		cmocka_unit_test(what_was_not_started_is_run),
		cmocka_unit_test(a_task_of_which_a_part_is_missing),
		cmocka_unit_test(a_failure_ends_the_other_parts),
		cmocka_unit_test(a_failure_that_is_found_while_there_is_no_head),
		cmocka_unit_test(what_was_cancelled_is_ended),
		cmocka_unit_test(what_nobody_wants_is_killed),
		cmocka_unit_test(each_head_has_its_own_profiles),
		cmocka_unit_test(a_start_that_the_journal_has_lost),
		cmocka_unit_test(a_node_to_which_no_head_comes),
		cmocka_unit_test(heads_are_lost_at_any_moment),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
