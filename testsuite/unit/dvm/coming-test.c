/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Submits of several requests: with the largest tasks first, none is started before the last
 * request has come, or a limit is reached.
 */
#include "played.h"

#include <stdlib.h>

#define CORES 4
#define OTHER 2 /* a client */

struct bed {
	struct played p;
	unsigned launches;
	uint64_t last; /* the task that was launched last */
};

static void on_message(void *arg, uint32_t node, const struct dvm_msg *m)
{
	struct bed *b = arg;

	if (m->type != DVM_LAUNCH)
		return;
	b->launches++;
	b->last = m->launch.task;
}

static void from_client(void *arg, uint32_t client, const char *line, size_t len)
{
	struct played *p = arg;

	if (client != CLIENT)
		return;
	json_decref(p->answer);
	p->answer = json_loadb(line, len, 0, NULL);
}

/* A node of CORES cores. */
static struct bed *bed_create(enum queue_order order)
{
	static const struct dvm_head_ops ops = { .client_send = from_client };
	struct bed *b = played_new(sizeof(*b));

	b->p.options = usual_options(1);
	b->p.options.queue.order = order;
	b->p.cores = CORES;
	b->p.message = on_message;
	played_start(&b->p, &ops, false);
	dvm_head_client_opened(b->p.head, OTHER);
	return b;
}

#define BED_TEST(name) TEST_ON(name, struct bed *b, bed_create(QUEUE_LARGE))

/* Tasks of these numbers of cores; 0: no task. */
static void submit(struct bed *b, int cores, int more_cores, bool more)
{
	char tasks[128] = "";

	if (cores)
		snprintf(tasks, sizeof(tasks), "{'argv':['x'],'cores':%d},{'argv':['x'],'cores':%d}",
			 cores, more_cores);
	ask(&b->p, "{'op':'submit','profile':{'id':'p','cwd':'/','env':{}},'tasks':[%s],'more':%s}",
	    tasks, more ? "true" : "false");
}

BED_TEST(largest_task_of_all_requests_is_first)
{
	submit(b, 1, 2, true);
	submit(b, 1, 1, true);
	assert_int_equal(b->launches, 0);
	submit(b, 1, CORES, false);
	assert_int_equal(b->launches, 1);
	assert_int_equal(b->last, 6);
}

BED_TEST(last_request_may_have_no_task)
{
	submit(b, 1, CORES, true);
	assert_int_equal(b->launches, 0);
	submit(b, 0, 0, false);
	assert_int_equal(b->last, 2);
}

TEST_ON(tasks_in_order_of_submits_start_at_once, struct bed *b, bed_create(QUEUE_FIFO))
{
	submit(b, 1, 1, true);
	assert_int_equal(b->launches, 2);
}

BED_TEST(submit_of_another_client_does_not_wait)
{
	static const char line[] = "{\"op\":\"submit\",\"profile\":{\"id\":\"q\",\"cwd\":\"/\"},\"tasks\":[{\"argv\":[\"x\"]}]}";

	submit(b, 2, 2, true);
	dvm_json_request(b->p.head, OTHER, line, sizeof(line) - 1, b->p.now);
	turn(&b->p);
	assert_int_equal(b->launches, 1);
	assert_int_equal(b->last, 3);
}

/* The head asks for a turn when the limit is reached. */
static void assert_starts_at(struct bed *b, uint64_t ms)
{
	assert_int_equal(dvm_head_deadline(b->p.head), ms);
	b->p.now.ms = ms - 1;
	turn(&b->p);
	assert_int_equal(b->launches, 0);
	b->p.now.ms = ms;
	turn(&b->p);
	assert_true(b->launches > 0);
}

BED_TEST(client_that_pauses_is_not_waited_for)
{
	submit(b, 1, 1, true);
	b->p.now.ms += 600;
	submit(b, 1, 1, true);
	assert_starts_at(b, b->p.now.ms + 1000);
}

BED_TEST(long_submit_is_not_waited_for_forever)
{
	const uint64_t begin = b->p.now.ms;

	submit(b, 1, 1, true);
	for (int i = 0; i < 19; i++) {
		b->p.now.ms += 500;
		submit(b, 1, 1, true);
	}
	assert_starts_at(b, begin + 10000);
}

BED_TEST(tasks_of_a_client_that_has_gone_start)
{
	submit(b, 1, 1, true);
	dvm_head_client_closed(b->p.head, CLIENT, b->p.now);
	turn(&b->p);
	assert_int_equal(b->launches, 2);
}

TEST(full_queue_is_not_waited_for)
{
	struct bed *b = played_new(sizeof(*b));

	b->p.options = usual_options(1);
	b->p.options.queue.order = QUEUE_LARGE;
	b->p.options.max_waiting = 3;
	b->p.cores = CORES;
	b->p.message = on_message;
	played_start(&b->p, NULL, false);
	submit(b, 1, 1, true);
	assert_int_equal(b->launches, 0);
	submit(b, 1, 1, true);
	assert_int_equal(b->launches, 3);
}

BED_TEST(task_of_an_incomplete_submit_can_be_cancelled)
{
	submit(b, 1, 1, true);
	ask(&b->p, "{'op':'why','id':1,'tag':9}");
	assert_non_null(strstr(json_string_value(json_array_get(
		json_object_get(b->p.answer, "reasons"), 0)), "is still submitting tasks"));
	ask(&b->p, "{'op':'cancel','ids':[1],'tag':9}");
	assert_int_equal(status(&b->p, "ended"), 1);
	submit(b, 1, 1, false);
	assert_int_equal(b->launches, 3);
	assert_int_equal(status(&b->p, "queued"), 0);
}

BED_TEST(head_ends_with_an_incomplete_submit)
{
	submit(b, 1, 1, true);
	assert_int_equal(status(&b->p, "queued"), 2);
}
