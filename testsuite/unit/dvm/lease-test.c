/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Leases of a DVM's nodes: when a node ends its ranks, and when the head gives their tasks
 * to others. Nodes are played by the test.
 */
#include "played.h"
#include "dvm/core/lease.h"

#include <signal.h>
#include <stdlib.h>

#define NODES 2
#define CORES 2
#define LEASE_MS 1000
#define AWAY_MS 1500
#define START_MS 5000

struct heard {
	unsigned launches, kills;
	uint32_t instance;  /* of the last launch */
	uint64_t answered;  /* the last LEASE that came back */
};

struct bed {
	struct played p;
	struct heard nodes[NODES];
};

static void on_message(void *arg, uint32_t node, const struct dvm_msg *m)
{
	struct heard *n = &((struct bed *)arg)->nodes[node];

	if (m->type == DVM_LAUNCH) {
		n->launches++;
		n->instance = m->launch.instance;
	} else if (m->type == DVM_LEASE) {
		n->answered = m->lease.sent_ms;
	}
	n->kills += m->type == DVM_SIGNAL && m->signal.number == SIGKILL;
}

static bool is_no_end(void *arg, json_t *e)
{
	return strcmp(json_string_value(json_object_get(e, "ev")), "ended");
}

static struct bed *bed_create_lease(uint32_t lease_ms, uint32_t away_ms)
{
	struct bed *b = played_new(sizeof(*b));

	b->p.options = usual_options(NODES);
	b->p.options.lease_ms = lease_ms;
	b->p.options.away_ms = away_ms;
	b->p.cores = CORES;
	b->p.message = on_message;
	b->p.event = is_no_end;
	b->p.now = (struct dvm_time){ 1000000000, START_MS };
	played_start(&b->p, NULL, false);
	return b;
}

static struct bed *bed_create(void)
{
	return bed_create_lease(LEASE_MS, AWAY_MS);
}

/* A task of all cores of `nodes` nodes. */
static void submit(struct bed *b, int nodes)
{
	ask(&b->p, "{'op':'submit','profile':{'id':'p','cwd':'/','env':{'A':'b'}},'tasks':[{'argv':['x'],'ranks':%d,'cores':%d,'nodes':%d}]}",
	    nodes, CORES, nodes);
}

static void say_lease(struct bed *b, uint32_t node, uint64_t sent_ms)
{
	say(&b->p, node, &(struct dvm_msg){ .type = DVM_LEASE, .lease.sent_ms = sent_ms });
}

static void end_part(struct bed *b, uint32_t node, uint64_t task, int32_t status)
{
	say(&b->p, node, &(struct dvm_msg){
		.type = DVM_ENDED,
		.ended = { .task = task, .instance = b->nodes[node].instance,
			   .status = status },
	});
}

/* Node 1 is heard of all the time. */
static void pass_until(struct bed *b, uint64_t ms)
{
	b->p.now.ms = ms;
	if (!b->p.broken[1])
		say_lease(b, 1, ms);
	turn(&b->p);
}

/* A task runs on node 0, and node 1 has room. */
static void submit_to_first(struct bed *b)
{
	ask(&b->p, "{'op':'drain','node':'n1'}");
	submit(b, 1);
	ask(&b->p, "{'op':'undrain','node':'n1'}");
	assert_int_equal(b->nodes[0].launches, 1);
}

static struct bed *bed_with_task(void)
{
	struct bed *b = bed_create();

	submit_to_first(b);
	return b;
}

#define BED_TEST(name) TEST_ON(name, struct bed *b, bed_create())
#define TASK_TEST(name) TEST_ON(name, struct bed *b, bed_with_task())
#define LONG_LEASE_TEST(name) TEST_ON(name, struct bed *b, bed_create_lease(60000, 70000))

/* ---- the node's clock ---- */

TEST(lease_counts_from_when_the_answered_message_was_sent)
{
	struct lease l = { 0 };

	lease_begin(&l, LEASE_MS, 100);
	assert_int_equal(lease_end(&l), 100 + LEASE_MS);
	lease_answered(&l, 500, 1050);
	assert_int_equal(lease_end(&l), 500 + LEASE_MS);
	lease_answered(&l, 300, 1060); /* the answer was under way for longer */
	lease_answered(&l, 5000, 1070); /* of no clock of this node */
	assert_int_equal(lease_end(&l), 500 + LEASE_MS);
}

TEST(lease_is_asked_for_several_times)
{
	struct lease l = { 0 };
	unsigned asks = 0;

	lease_begin(&l, LEASE_MS, 100);
	for (uint64_t now = 100; now < lease_end(&l); now++)
		asks += lease_ask(&l, now);
	assert_in_range(asks, 4, 100);
}

/* With its ranks, and perhaps its head, as by Slurm's suspend. */
TEST(daemon_that_was_stopped_waits_a_tick_for_an_answer)
{
	struct lease l = { 0 };

	lease_begin(&l, LEASE_MS, 100);
	lease_ask(&l, 100);
	assert_true(lease_ask(&l, 5000));
	assert_int_equal(lease_end(&l), 5000 + lease_tick(&l));
	lease_answered(&l, 5000, 5010);
	assert_int_equal(lease_end(&l), 5000 + LEASE_MS);
}

TEST(lease_that_is_over_stays_over)
{
	struct lease l = { 0 };
	uint64_t now;

	lease_begin(&l, LEASE_MS, 100);
	for (now = 100; now <= 100 + LEASE_MS; now += lease_tick(&l))
		lease_ask(&l, now);
	lease_ask(&l, 5000);
	assert_int_equal(lease_end(&l), 100 + LEASE_MS);
}

TEST(node_without_a_lease_runs_forever)
{
	struct lease l = { 0 };

	lease_begin(&l, 0, 100);
	assert_false(lease_ask(&l, 100000));
	assert_true(lease_end(&l) == UINT64_MAX);
	assert_int_equal(lease_tick(&l), 0);
}

/* ---- the head's ---- */

BED_TEST(head_answers_a_lease_at_once)
{
	say_lease(b, 1, 4711);
	assert_int_equal(b->nodes[1].answered, 4711);
}

TASK_TEST(task_of_a_lost_node_waits_for_its_lease)
{
	pass_until(b, START_MS + 300);
	say_lease(b, 0, 1);
	pass_until(b, START_MS + 600);
	lose(&b->p, 0, "the network");
	assert_true(dvm_head_node_may_run(b->p.head, 0));
	assert_int_equal(dvm_head_deadline(b->p.head), START_MS + 600 + LEASE_MS);
	pass_until(b, START_MS + 300 + AWAY_MS - 1);
	assert_int_equal(b->nodes[1].launches, 0);
	assert_int_equal(status(&b->p, "running"), 1);
	pass_until(b, START_MS + 300 + AWAY_MS);
	assert_int_equal(b->nodes[1].launches, 1);
	assert_int_equal(b->nodes[1].instance, 1);
	assert_false(dvm_head_node_may_run(b->p.head, 0));
}

TASK_TEST(task_of_a_node_that_is_gone_runs_elsewhere_at_once)
{
	say(&b->p, 0, &(struct dvm_msg){ .type = DVM_GONE });
	lose(&b->p, 0, "the network");
	assert_int_equal(b->nodes[1].launches, 1);
}

TASK_TEST(lost_node_that_turns_out_to_be_gone_frees_its_tasks)
{
	lose(&b->p, 0, "the network");
	assert_int_equal(b->nodes[1].launches, 0);
	dvm_head_node_gone(b->p.head, 0, b->p.now);
	turn(&b->p);
	assert_int_equal(b->nodes[1].launches, 1);
}

TASK_TEST(silent_node_is_lost_when_its_lease_is_over)
{
	pass_until(b, START_MS + LEASE_MS - 1);
	assert_false(b->p.broken[0]);
	pass_until(b, START_MS + LEASE_MS);
	assert_true(b->p.broken[0]);
	assert_int_equal(b->nodes[1].launches, 0);
	pass_until(b, START_MS + AWAY_MS);
	assert_int_equal(b->nodes[1].launches, 1);
}

TASK_TEST(nodes_are_listened_to_when_their_head_was_stopped)
{
	b->p.now.ms += 10 * LEASE_MS + 1;
	turn(&b->p);
	assert_false(b->p.broken[0] || b->p.broken[1]);
	pass_until(b, dvm_head_deadline(b->p.head));
	assert_true(b->p.broken[0]);
	assert_false(b->p.broken[1]);
}

BED_TEST(ranks_beside_a_lost_node_are_killed_at_once)
{
	submit(b, 2);
	lose(&b->p, 0, "the network");
	assert_int_equal(b->nodes[1].kills, 1);
	end_part(b, 1, 1, SIGKILL);
	assert_int_equal(status(&b->p, "running"), 1);
	pass_until(b, START_MS + AWAY_MS); /* the task needs two nodes */
	assert_int_equal(status(&b->p, "running"), 0);
	assert_int_equal(status(&b->p, "failed"), 1);
}

/* The rank was counted as ended twice: the task ran again while its other rank went on. */
BED_TEST(rank_that_had_ended_is_not_lost_with_its_node)
{
	submit(b, 2);
	end_part(b, 0, 1, 0);
	lose(&b->p, 0, "the network");
	pass_until(b, START_MS + AWAY_MS);
	assert_int_equal(b->nodes[1].kills, 0);
	assert_int_equal(status(&b->p, "running"), 1);
	end_part(b, 1, 1, 0);
	assert_int_equal(status(&b->p, "running"), 0);
	assert_int_equal(status(&b->p, "failed"), 0);
}

BED_TEST(end_that_is_told_twice_counts_once)
{
	submit(b, 2);
	end_part(b, 0, 1, 0);
	end_part(b, 0, 1, 0);
	assert_int_equal(status(&b->p, "running"), 1);
}

/* ---- clients ---- */

static size_t unreached(struct bed *b)
{
	ask(&b->p, "{'op':'unreached'}");
	return json_array_size(json_object_get(b->p.answer, "nodes"));
}

TASK_TEST(node_with_ranks_to_be_ended_is_named_until_they_have)
{
	assert_int_equal(unreached(b), 0);
	ask(&b->p, "{'op':'cancel','ids':[1]}");
	assert_int_equal(unreached(b), 1);
	lose(&b->p, 0, "the network");
	b->p.now.ms += 100;
	assert_int_equal(unreached(b), 1);
	json_t *node = json_array_get(json_object_get(b->p.answer, "nodes"), 0);
	assert_string_equal(json_string_value(json_object_get(node, "name")), "n0");
	assert_float_equal(json_number_value(json_object_get(node, "silent")), 0.1, 0.001);
	assert_float_equal(json_number_value(json_object_get(node, "until")),
			   1.0 + (AWAY_MS - 100) / 1e3, 0.001);
	dvm_head_node_gone(b->p.head, 0, b->p.now);
	assert_int_equal(unreached(b), 0);
}

#define DOWN_MS 10000

/* A head with a lease that is longer than `down` tries. */
LONG_LEASE_TEST(down_leaves_cancelled_ranks_of_a_lost_node_after_ten_seconds)
{
	submit_to_first(b);
	lose(&b->p, 0, "the network");
	ask(&b->p, "{'op':'down','work':'cancel'}");
	pass_until(b, START_MS + DOWN_MS - 1);
	assert_false(b->p.down);
	pass_until(b, START_MS + DOWN_MS);
	assert_true(b->p.down);
	assert_string_equal(json_string_value(json_object_get(b->p.answer, "ev")), "unreached");
}

/* The next head would run them again. */
LONG_LEASE_TEST(down_that_keeps_tasks_waits_for_a_lost_node)
{
	dvm_head_keep_journal(b->p.head);
	submit_to_first(b);
	lose(&b->p, 0, "the network");
	ask(&b->p, "{'op':'down','work':'keep'}");
	pass_until(b, START_MS + DOWN_MS);
	assert_string_equal(json_string_value(json_object_get(b->p.answer, "ev")), "unreached");
	assert_false(b->p.down);
	pass_until(b, START_MS + 69999);
	assert_false(b->p.down);
	pass_until(b, START_MS + 70000);
	assert_true(b->p.down);
}

/* As one whose zygote stands still; after the grace time and five seconds. */
LONG_LEASE_TEST(down_gives_up_a_node_that_does_not_end_cancelled_ranks)
{
	const uint64_t limit = START_MS + b->p.options.grace_ms + 5000;

	submit_to_first(b);
	ask(&b->p, "{'op':'down','work':'cancel'}");
	b->p.now.ms = limit - 1;
	say_lease(b, 0, limit - 1);
	pass_until(b, limit - 1);
	assert_false(b->p.broken[0]);
	pass_until(b, limit);
	assert_true(b->p.broken[0]);
	assert_false(b->p.broken[1]);
	assert_false(b->p.down);
	dvm_head_node_gone(b->p.head, 0, b->p.now);
	turn(&b->p);
	assert_true(b->p.down);
}

static json_int_t ended(struct bed *b)
{
	ask(&b->p, "{'op':'status'}");
	return json_integer_value(json_object_get(b->p.answer, "ended"));
}

/* The lease is longer than a head hopes for nodes. */
LONG_LEASE_TEST(task_is_for_another_head_when_the_leases_of_all_nodes_are_over)
{
	dvm_head_keep_journal(b->p.head);
	submit_to_first(b);
	for (uint32_t i = 0; i < NODES; i++)
		lose(&b->p, i, "the network");
	pass_until(b, START_MS + 69999);
	assert_false(b->p.down);
	pass_until(b, START_MS + 70000);
	assert_true(b->p.down);
	assert_int_equal(ended(b), 0);
}
