/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Nodes of a DVM that come later and go before the end, and a head that is to stop. Nodes
 * are played by the test: it notes what they are told, and says what they do.
 */
#include "played.h"

#include <errno.h>
#include <stdlib.h>

#define CORES 2
#define NODES_MAX PLAYED_NODES
#define GRACE_MS 500

struct told {
	unsigned launches, ends; /* tasks that it runs, and is to end */
	uint64_t tasks[16];      /* tasks that it runs */
	uint32_t instances[16];
	bool leave;
};

struct bed {
	struct played p;
	struct told nodes[NODES_MAX];
	uint32_t grown;  /* how many daemons more have been started */
	uint64_t job;    /* where */
	char names[64];  /* on which nodes */
	int refuses;     /* result of ops.grow */
};

static void on_message(void *arg, uint32_t node, const struct dvm_msg *m)
{
	struct told *n = &((struct bed *)arg)->nodes[node];

	if (m->type == DVM_LAUNCH) {
		n->tasks[n->launches] = m->launch.task;
		n->instances[n->launches++] = m->launch.instance;
	}
	n->ends += m->type == DVM_SIGNAL && m->signal.number == 0;
	n->leave = n->leave || m->type == DVM_LEAVE;
}

static bool has_tag(void *arg, json_t *e)
{
	return json_object_get(e, "tag");
}

static int grow(void *arg, uint32_t nodes, uint64_t job, const char *names)
{
	struct bed *b = arg;

	b->grown = nodes;
	b->job = job;
	snprintf(b->names, sizeof(b->names), "%s", names ? names : "any");
	return b->refuses;
}

/* Two nodes are there. */
static struct bed *bed_create(void)
{
	static const struct dvm_head_ops ops = { .grow = grow };
	struct bed *b = played_new(sizeof(*b));

	b->p.options = usual_options(2);
	b->p.options.grace_ms = GRACE_MS;
	b->p.cores = CORES;
	b->p.message = on_message;
	b->p.event = has_tag;
	played_start(&b->p, &ops, false);
	return b;
}

#define BED_TEST(name) TEST_ON(name, struct bed *b, bed_create())

static bool answered(const struct bed *b, const char *event)
{
	return b->p.answer && !strcmp(json_string_value(json_object_get(
					    b->p.answer, "ev")), event);
}

static const char *state_of(struct bed *b, uint32_t node)
{
	ask(&b->p, "{'op':'status','tag':9}");
	return json_string_value(json_object_get(json_array_get(
		json_object_get(b->p.answer, "nodes"), node), "state"));
}

/* Submits `tasks` tasks, each of which has a node of its own. */
static void submit(struct bed *b, int tasks)
{
	for (int i = 0; i < tasks; i++)
		ask(&b->p, "{'op':'submit','profile':{'id':'p','cwd':'/','env':{'A':'b'}},'tasks':[{'argv':['x'],'cores':%d}]}",
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

	say(&b->p, node, &m);
}

static void go(struct bed *b, uint32_t node)
{
	lose(&b->p, node, "its daemon has ended");
}

/* Work that is due at a time is done when that time has come, and not before. */
static void wait_for_deadline(struct bed *b)
{
	uint64_t deadline = dvm_head_deadline(b->p.head);

	assert_true(deadline > b->p.now.ms && deadline != UINT64_MAX);
	b->p.now.ms = deadline - 1;
	turn(&b->p);
	assert_int_equal(b->nodes[0].ends + b->nodes[1].ends, 0);
	b->p.now.ms = deadline;
	turn(&b->p);
}

/* ---- tests ---- */

BED_TEST(nodes_that_come_later_get_tasks)
{
	submit(b, 4);
	ask(&b->p, "{'op':'grow','nodes':2,'job':7,'tag':1}");
	assert_int_equal(b->grown, 2);
	assert_int_equal(b->job, 7);
	assert_int_equal(dvm_head_positions(b->p.head), 4);
	come(&b->p, 3);
	assert_null(b->p.answer);
	assert_int_equal(b->nodes[3].launches, 0);
	ask(&b->p, "{'op':'grow','nodes':1,'tag':2}");
	assert_true(answered(b, "error"));
	come(&b->p, 2);
	assert_true(answered(b, "ok"));
	assert_int_equal(status(&b->p, "running"), 4);
	assert_int_equal(b->nodes[2].launches + b->nodes[3].launches, 2);
	end_task(b, 3, 0);
	assert_int_equal(status(&b->p, "ended"), 1);
	go(b, 2);
	assert_string_equal(state_of(b, 2), "lost");
	assert_int_equal(b->nodes[3].launches, 2);
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
BED_TEST(task_is_queued_three_times_when_its_nodes_are_lost)
{
	bool gone[NODES_MAX] = { false };
	uint32_t node;

	ask(&b->p, "{'op':'grow','nodes':%d,'tag':1}", NODES_MAX - 2);
	for (node = 2; node < NODES_MAX; node++)
		come(&b->p, node);
	submit(b, 1);
	for (int run = 1; run <= 4; run++) {
		node = node_that_runs_it(b, gone);
		assert_int_not_equal(node, NODES_MAX);
		assert_int_equal(status(&b->p, "ended"), 0);
		go(b, node);
		gone[node] = true;
	}
	assert_int_equal(node_that_runs_it(b, gone), NODES_MAX);
	assert_int_equal(status(&b->p, "ended"), 1);
}

BED_TEST(nodes_that_are_named)
{
	ask(&b->p, "{'op':'grow','nodes':['x','n1'],'tag':1}");
	assert_true(answered(b, "error"));
	ask(&b->p, "{'op':'grow','nodes':['x',7],'tag':1}");
	assert_true(answered(b, "error"));
	assert_int_equal(b->grown, 0);
	go(b, 1);
	ask(&b->p, "{'op':'grow','nodes':['x','n1'],'tag':1}");
	assert_int_equal(b->grown, 2);
	assert_string_equal(b->names, "x,n1");
	dvm_head_grow_failed(b->p.head, "srun has ended");
	ask(&b->p, "{'op':'grow','nodes':1,'tag':1}");
	assert_string_equal(b->names, "any");
}

BED_TEST(all_of_them_come_or_none)
{
	ask(&b->p, "{'op':'grow','nodes':2,'tag':1}");
	come(&b->p, 2);
	dvm_head_grow_failed(b->p.head, "srun has ended");
	assert_true(answered(b, "error"));
	assert_true(b->p.broken[2]);
	go(b, 2);
	assert_int_equal(dvm_head_positions(b->p.head), 2);
	ask(&b->p, "{'op':'grow','nodes':1,'tag':2}");
	go(b, 2);
	assert_true(answered(b, "error"));
	b->refuses = -EBUSY;
	ask(&b->p, "{'op':'grow','nodes':1,'tag':3}");
	assert_true(answered(b, "error"));
	assert_int_equal(dvm_head_positions(b->p.head), 2);
	ask(&b->p, "{'op':'grow','nodes':0,'tag':4}");
	assert_true(answered(b, "error"));
	submit(b, 3);
	assert_int_equal(status(&b->p, "running"), 2);
}

BED_TEST(one_who_asks_for_nodes_may_go)
{
	ask(&b->p, "{'op':'grow','nodes':1,'tag':1}");
	dvm_head_client_closed(b->p.head, CLIENT, b->p.now);
	come(&b->p, 2);
	assert_int_equal(dvm_head_registered(b->p.head), 3);
}

/* In a tree LEASE has no number, and may come by a faster way. */
BED_TEST(lease_may_overtake_the_register_of_a_new_node)
{
	ask(&b->p, "{'op':'grow','nodes':1,'tag':1}");
	say(&b->p, 2, &(struct dvm_msg){ .type = DVM_LEASE, .lease.sent_ms = 1 });
	assert_false(b->p.broken[2]);
	come(&b->p, 2);
	assert_int_equal(dvm_head_registered(b->p.head), 3);
}

BED_TEST(a_node_leaves_when_nothing_runs_there)
{
	submit(b, 3);
	ask(&b->p, "{'op':'shrink','nodes':['n1'],'tag':1}");
	assert_true(answered(b, "ok"));
	assert_string_equal(state_of(b, 1), "leaving");
	ask(&b->p, "{'op':'undrain','node':'n1','tag':1}");
	assert_true(answered(b, "error"));
	ask(&b->p, "{'op':'shrink','nodes':['n0'],'tag':1}");
	assert_true(answered(b, "error"));
	assert_int_equal(dvm_head_deadline(b->p.head), UINT64_MAX);
	assert_false(b->nodes[1].leave);
	end_task(b, 1, 0);
	assert_true(b->nodes[1].leave);
	assert_int_equal(b->nodes[1].launches, 1);
	go(b, 1);
	assert_string_equal(state_of(b, 1), "left");
	end_task(b, 0, 0);
	assert_int_equal(b->nodes[0].launches, 2);
}

BED_TEST(task_over_the_grace_of_a_leaving_node_runs_elsewhere)
{
	uint32_t node;

	submit(b, 2);
	ask(&b->p, "{'op':'shrink','nodes':1,'grace':10,'tag':1}");
	assert_true(answered(b, "ok"));
	node = !strcmp(state_of(b, 1), "leaving");
	wait_for_deadline(b);
	assert_int_equal(b->nodes[node].ends, 1);
	assert_int_equal(b->nodes[!node].ends, 0);
	end_task(b, node, 15);
	assert_true(b->nodes[node].leave);
	assert_int_equal(status(&b->p, "queued"), 1);
	end_task(b, !node, 0);
	assert_int_equal(b->nodes[!node].launches, 2);
	assert_int_equal(b->nodes[!node].instances[1], 1);
	end_task(b, !node, 0);
	assert_int_equal(status(&b->p, "failed"), 0);
}

BED_TEST(shrinking_takes_the_idlest)
{
	submit(b, 1);
	ask(&b->p, "{'op':'shrink','nodes':1,'tag':1}");
	for (uint32_t i = 0; i < 2; i++)
		assert_int_equal(b->nodes[i].leave, !b->nodes[i].launches);
}

/* Tasks that have not finished then are for a head that goes on. */
BED_TEST(a_head_that_is_to_stop)
{
	dvm_head_keep_journal(b->p.head);
	submit(b, 3);
	ask(&b->p, "{'op':'down','work':'keep','tag':1}");
	assert_true(answered(b, "ok"));
	ask(&b->p, "{'op':'submit','tasks':[],'tag':2}");
	assert_true(answered(b, "error"));
	end_task(b, 0, 0);
	assert_int_equal(b->nodes[0].launches, 1);
	wait_for_deadline(b);
	assert_false(b->p.down);
	assert_int_equal(b->nodes[1].ends, 1);
	end_task(b, 1, 15);
	assert_true(b->p.down && b->nodes[0].leave && b->nodes[1].leave);
	assert_int_equal(status(&b->p, "queued"), 2);
	assert_int_equal(status(&b->p, "ended"), 1);
}

BED_TEST(daemon_may_end_before_it_registers)
{
	static const struct dvm_msg gone = { .type = DVM_GONE };

	ask(&b->p, "{'op':'grow','nodes':1,'tag':1}");
	say(&b->p, 2, &gone);
	assert_false(b->p.broken[2]);
	go(b, 2);
	assert_true(answered(b, "error"));
}

static size_t listed(struct bed *b)
{
	ask(&b->p, "{'op':'status','tag':9}");
	return json_array_size(json_object_get(b->p.answer, "nodes"));
}

BED_TEST(node_that_comes_again_is_listed_once)
{
	static const struct dvm_msg again = {
		.type = DVM_REGISTER,
		.reg = { .version = DVM_VERSION, .has = { CORES, 0, 1000 }, .name = { "n1", 2 } },
	};

	go(b, 1);
	assert_int_equal(listed(b), 2);
	assert_string_equal(state_of(b, 1), "lost");
	ask(&b->p, "{'op':'grow','nodes':1,'tag':1}");
	say(&b->p, 2, &again);
	assert_int_equal(listed(b), 2);
	assert_string_equal(state_of(b, 1), "up");
	go(b, 2);
	assert_int_equal(listed(b), 2);
	assert_string_equal(state_of(b, 1), "lost");
}

BED_TEST(cancelled_task_is_not_counted_as_failed)
{
	submit(b, 3);
	ask(&b->p, "{'op':'cancel','ids':[2,3],'tag':1}");
	end_task(b, 1, 15);
	end_task(b, 0, 256);
	assert_int_equal(status(&b->p, "ended"), 3);
	assert_int_equal(status(&b->p, "failed"), 1);
}

static const char *refusal(struct bed *b, const char *task)
{
	ask(&b->p, "{'op':'submit','tag':1,'profile':{'id':'p','cwd':'/','env':{'A':'b'}},'tasks':[%s]}",
	    task);
	return json_string_value(json_object_get(json_array_get(
		json_object_get(b->p.answer, "refused"), 0), "why"));
}

BED_TEST(refusal_agrees_with_its_numbers)
{
	assert_non_null(strstr(refusal(b, "{'argv':['x'],'ranks':1,'cores':9}"),
			       "1 rank of 9 cores and 0 GPUs can never fit on 2 nodes"));
	assert_non_null(strstr(refusal(b, "{'argv':['x'],'ranks':99}"),
			       "99 ranks of 1 core and 0 GPUs"));
}

BED_TEST(without_a_journal_tasks_cannot_be_kept)
{
	ask(&b->p, "{'op':'down','work':'keep','tag':1}");
	assert_true(answered(b, "error"));
	submit(b, 1);
	dvm_head_stop(b->p.head, b->p.now);
	turn(&b->p);
	assert_false(b->p.down);
	end_task(b, b->nodes[1].launches, 0);
	assert_true(b->p.down);
}

static json_int_t messages_of(struct bed *b, json_int_t *bytes)
{
	json_t *traffic;

	ask(&b->p, "{'op':'status','tag':9}");
	traffic = json_object_get(b->p.answer, "traffic");
	*bytes = json_integer_value(json_array_get(traffic, 1));
	return json_integer_value(json_array_get(traffic, 0));
}

BED_TEST(traffic_counts_messages_of_both_directions)
{
	const struct dvm_msg lease = { .type = DVM_LEASE, .lease = { 1 } };
	json_int_t bytes, then, first = messages_of(b, &bytes);

	assert_true(first > 0 && bytes > first); /* the nodes have registered */
	submit(b, 1);
	turn(&b->p);
	assert_int_equal(messages_of(b, &then), first + 2); /* PROFILE and LAUNCH */
	assert_true(then > bytes + 2);
	for (uint32_t i = 0; i < 2; i++)
		if (b->nodes[i].launches)
			end_task(b, i, 0);
	assert_int_equal(messages_of(b, &bytes), first + 3);
	assert_true(bytes > then);
	say(&b->p, 0, &lease);
	assert_int_equal(messages_of(b, &then), first + 3);
	assert_int_equal(then, bytes);
}
