/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Why a task waits, or how it runs, as a head tells a client. Two nodes of 4 cores, a GPU
 * and 1,000 bytes of memory are played by the test.
 */
#include "played.h"

#include <stdlib.h>

#define NODES 2
#define CORES 4
#define ASKED_MAX 4

struct bed {
	struct played p;
	struct dvm_ask asked[ASKED_MAX]; /* by node */
	unsigned nasked;
};

static void on_message(void *arg, uint32_t node, const struct dvm_msg *m)
{
	struct bed *b = arg;

	if (m->type != DVM_ASK)
		return;
	assert_true(b->nasked < ASKED_MAX);
	b->asked[node] = m->ask;
	b->nasked++;
}

static struct bed *bed_create(void)
{
	struct bed *b = played_new(sizeof(*b));

	b->p.options = usual_options(NODES);
	b->p.options.queue.window = 3;
	b->p.cores = CORES;
	b->p.message = on_message;
	played_start(&b->p, NULL, true);
	assert_int_equal(dvm_head_add_counter(b->p.head, "licence", 1), 0);
	return b;
}

#define BED_TEST(name) TEST_ON(name, struct bed *b, bed_create())

#define SUBMIT(tasks)                                                            \
	"{'op':'submit','profile':{'id':'p','cwd':'/','env':{}},'tasks':[" tasks "]}"

static const char *reason(struct bed *b, size_t i)
{
	return json_string_value(json_array_get(
		json_object_get(b->p.answer, "reasons"), i));
}

/* ---- tasks that wait ---- */

/* The last of these tasks waits, for this reason. */
static const struct {
	const char *tasks, *why;
} waits[] = {
	{ SUBMIT("{'argv':['x'],'cores':3},{'argv':['x'],'cores':4},"
		 "{'argv':['x'],'cores':2}"),
	  "needs 2 free cores on a node; most free: 1 on n1" },
	{ SUBMIT("{'argv':['x'],'gpus':1},{'argv':['x'],'gpus':1},"
		 "{'argv':['x'],'gpus':1}"),
	  "needs 1 free GPU on a node; most free: 0 on n0" },
	{ SUBMIT("{'argv':['x'],'memory':900},{'argv':['x'],'memory':800,'cores':4},"
		 "{'argv':['x'],'memory':300}"),
	  "needs 300 free bytes on a node; most free: 200 on n0" },
	{ SUBMIT("{'argv':['x'],'cores':4},{'argv':['x'],'gpus':1},"
		 "{'argv':['x'],'gpus':1}"),
	  "no node has all of the needed resources free at once" },
	{ SUBMIT("{'argv':['x'],'cores':4},{'argv':['x'],'cores':2},"
		 "{'argv':['x'],'ranks':4,'nodes':2}"),
	  "needs 2 nodes with room for 2 ranks of 1 core; there is 1" },
	{ SUBMIT("{'argv':['x'],'cores':2},{'argv':['x'],'ranks':7}"),
	  "needs room for 7 ranks of 1 core; there is room for 6" },
	{ SUBMIT("{'argv':['x'],'ranks':2,'nodes':2},"
		 "{'argv':['x'],'exclusive':true}"),
	  "needs an idle node" },
	{ SUBMIT("{'argv':['x'],'ranks':2,'nodes':2,'exclusive':true},"
		 "{'argv':['x']}"),
	  "no node accepts tasks: each is lost, drained, or used by an --exclusive task" },
	{ SUBMIT("{'argv':['x'],'counters':{'licence':1}},"
		 "{'argv':['x'],'counters':{'licence':1}}"),
	  "needs 1 of licence; left: 0" },
	{ SUBMIT("{'argv':['x'],'place':[{'node':'n1','cores':[0,1]}]},"
		 "{'argv':['x'],'place':[{'node':'n1','cores':[1]}]}"),
	  "the requested cores or GPUs of node n1 are not free" },
};

TEST(why_names_what_a_task_lacks)
{
	for (size_t i = 0; i < sizeof(waits) / sizeof(*waits); i++) {
		struct bed *b = bed_create();

		ask(&b->p, "%s", waits[i].tasks);
		ask(&b->p, "{'op':'why','id':%lld}",
		    (long long)json_integer_value(json_array_get(
			    json_object_get(b->p.answer, "ids"),
			    json_array_size(json_object_get(b->p.answer, "ids")) - 1)));
		assert_non_null(reason(b, 0));
		assert_string_equal(reason(b, 0), waits[i].why);
		assert_null(reason(b, 1));
		assert_int_equal(b->nasked, 0);
		unit_end(b);
	}
}

BED_TEST(why_names_the_tasks_ahead)
{
	ask(&b->p, SUBMIT("{'argv':['x'],'ranks':8}"));
	ask(&b->p, SUBMIT("{'argv':['x'],'cores':3},{'argv':['x'],'priority':1},"
		      "{'argv':['x']}"));
	ask(&b->p, "{'op':'why','id':4}");
	assert_string_equal(reason(b, 1), "2 tasks come before it, task 3 first");
	ask(&b->p, "{'op':'why','id':2}");
	assert_string_equal(reason(b, 1), "task 3 comes before it");
	ask(&b->p, "{'op':'why','id':3}");
	assert_null(reason(b, 1));
}

/* A running rank keeps a core, so that the second task never fits; others pass it. */
BED_TEST(a_task_that_is_passed_too_long_holds_the_others)
{
	ask(&b->p, SUBMIT("{'argv':['x']},{'argv':['x'],'ranks':8}"));
	b->p.now.ms += 1001;
	ask(&b->p, SUBMIT("{'argv':['x']}"));
	ask(&b->p, "{'op':'why','id':3}");
	assert_string_equal(reason(b, 0),
		"the task would fit, but all slots are reserved for task 2, which has waited longer than --patience (1 s)");
}

BED_TEST(a_task_behind_too_many_is_said)
{
	ask(&b->p, SUBMIT("{'argv':['x']},{'argv':['x'],'ranks':8},"
		      "{'argv':['x'],'ranks':8},{'argv':['x'],'ranks':8},"
		      "{'argv':['x'],'ranks':8},{'argv':['x']}"));
	ask(&b->p, "{'op':'why','id':6}");
	assert_string_equal(reason(b, 0),
		"the task would fit, but at most 3 tasks may pass a waiting one");
}

BED_TEST(a_journal_that_cannot_be_written_is_a_reason)
{
	ask(&b->p, SUBMIT("{'argv':['x'],'ranks':8},{'argv':['x']}"));
	b->p.full = true;
	ask(&b->p, "{'op':'cancel','ids':[1]}"); /* is to be written down */
	ask(&b->p, "{'op':'why','id':2}");
	assert_string_equal(reason(b, 1),
		"nothing is started until the journal can be written: No space left on device");
	ask(&b->p, "{'op':'why','id':1}");
	assert_string_equal(reason(b, 0), "the task was cancelled, and its ranks are being ended");
}

/* ---- tasks that run ---- */

static void tell(struct bed *b, uint32_t node, const struct dvm_told *told)
{
	const struct dvm_msg m = { .type = DVM_TOLD, .told = *told };

	assert_int_equal(tell_msg(b->p.head, node, &m, b->p.now), 0);
}

/* Each node is asked once, and what it tells reaches who asked. */
BED_TEST(nodes_of_a_task_that_runs_are_asked)
{
	const struct dvm_rank rank = { 1, 4711, 'S', 2500000 };
	struct dvm_told told = { .what = DVM_TOLD_RANKS, .pmi = true };
	struct buf ranks;
	json_t *r;

	ask(&b->p, SUBMIT("{'argv':['x'],'ranks':2,'nodes':2}"));
	ask(&b->p, "{'op':'why','id':1}");
	assert_int_equal(json_integer_value(json_object_get(b->p.answer, "asked")), 2);
	assert_int_equal(b->nasked, 2);
	buf_init(&ranks, 4096);
	assert_int_equal(dvm_rank_pack(&ranks, &rank), 0);
	told.about = b->asked[1];
	told.data = (struct dvm_bytes){ ranks.data, ranks.len };
	tell(b, 1, &told);
	assert_string_equal(json_string_value(json_object_get(b->p.answer, "node")), "n1");
	assert_true(json_is_true(json_object_get(b->p.answer, "pmi")));
	r = json_array_get(json_object_get(b->p.answer, "ranks"), 0);
	assert_int_equal(json_integer_value(json_object_get(r, "pid")), 4711);
	assert_string_equal(json_string_value(json_object_get(r, "state")), "S");
	assert_true(json_real_value(json_object_get(r, "cpu")) == 2.5);
	told.what = DVM_TOLD_PMI;
	tell(b, 1, &told);
	assert_string_equal(json_string_value(json_object_get(b->p.answer, "ev")),
			    "told_pmi");
	buf_free(&ranks);
}

/*
 * A head drops answers about a task that is none of its own, or about an earlier try.
 */
BED_TEST(answers_about_other_tasks_are_dropped)
{
	struct dvm_told told = { .what = DVM_TOLD_RANKS };
	json_t *before;

	ask(&b->p, SUBMIT("{'argv':['x']}"));
	ask(&b->p, "{'op':'why','id':1}");
	before = json_incref(b->p.answer);
	for (int i = 0; i < 3; i++) {
		told.about = b->asked[0];
		told.about.task += i == 0;
		told.about.instance += i == 1;
		told.about.node += i == 2;
		tell(b, 0, &told);
		assert_ptr_equal(b->p.answer, before);
	}
	json_decref(before);
	ask(&b->p, "{'op':'why','id':7}");
	assert_string_equal(json_string_value(json_object_get(b->p.answer, "ev")),
			    "error");
}
