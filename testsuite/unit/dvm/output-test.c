/* SPDX-License-Identifier: BSD-3-Clause */
/* Windows of forwarded output: whose tasks wait for a client that does not read. */
#include "bed.h"


#include "dvm/core/head_private.h"

#define PIECE 65536
#define WINDOW ((size_t)256 << 10) /* WINDOW of head_output.c */
#define FORWARD "{'argv':['x'],'output':'forward'}"

/* The node whose part has the output of a task of one rank. */
static struct fake_node *node_of(struct bed *b, int64_t process)
{
	return &b->nodes[b->processes[process].node];
}

/* A task whose output the client is sent; returns its node. */
static struct fake_node *forward(struct bed *b)
{
	submit(b, FORWARD);
	return node_of(b, 1);
}

/* Ranks of part `part` write as much as they may, `most` at most. Bytes. */
static size_t write_some(struct bed *b, struct fake_node *n, uint32_t part, size_t most)
{
	static char data[PIECE];
	size_t wrote = 0, len;

	memset(data, 'x', sizeof(data));
	while (n->limit && wrote < most) {
		len = n->limit < PIECE ? n->limit : PIECE;
		dvm_node_output(n->node, part, 1, data, len);
		wrote += len;
		deliver_all(b);
	}
	return wrote;
}

BED_TEST(task_whose_client_does_not_read_waits)
{
	struct fake_node *n = forward(b);
	size_t wrote;

	b->reads = false;
	wrote = write_some(b, n, 0, 100 * WINDOW);
	assert_true(wrote <= WINDOW && wrote > WINDOW / 2);
	pass(b, 1000);
	assert_int_equal(n->limit, 0);
	b->unread = 0;
	b->reads = true;
	deliver_all(b);
	assert_true(write_some(b, n, 0, 10 * WINDOW) >= 10 * WINDOW);
}

BED_TEST(small_pieces_count_more_than_their_bytes)
{
	struct fake_node *n = forward(b);
	size_t pieces = 0;

	b->reads = false;
	for (; n->limit; pieces++) {
		dvm_node_output(n->node, 0, 1, "x", 1);
		deliver_all(b);
	}
	assert_true(pieces <= WINDOW / DVM_OUTPUT_EXTRA);
}

BED_TEST(task_whose_client_has_gone_does_not_wait)
{
	struct fake_node *n = forward(b);

	b->reads = false;
	(void)write_some(b, n, 0, 100 * WINDOW);
	dvm_head_client_closed(b->head, CLIENT, b->now);
	deliver_all(b);
	assert_true(write_some(b, n, 0, 10 * WINDOW) >= 10 * WINDOW);
}

BED_TEST(end_does_not_wait_and_follows_the_output)
{
	struct fake_node *n = forward(b);
	size_t i;

	b->reads = false;
	(void)write_some(b, n, 0, 100 * WINDOW);
	dvm_node_output(n->node, 0, 2, "rest", 4); /* that the pipes hold */
	end_now(b, 1, 0);
	assert_int_equal(number(end_of(b, 1), "code"), 0);
	i = json_array_size(b->events);
	assert_string_equal(text(json_array_get(b->events, i - 1), "ev"), "ended");
	assert_string_equal(text(json_array_get(b->events, i - 2), "data"), "rest");
}

/* The number of the event among those that have come, or -1. */
static int place_of(struct bed *b, const char *key, const char *value)
{
	json_t *e;
	size_t i;

	json_array_foreach(b->events, i, e)
		if (json_object_get(e, key) && !strcmp(text(e, key), value))
			return (int)i;
	return -1;
}

BED_TEST(other_messages_do_not_wait_behind_output)
{
	struct fake_node *n;

	submit(b, "{'argv':['x'],'output':'forward','place':[{'node':'n0','cores':[0]}]}");
	submit(b, "{'argv':['x'],'place':[{'node':'n0','cores':[3]}]}");
	n = node_of(b, 1);
	assert_ptr_equal(node_of(b, 2), n);
	n->busy = true;
	dvm_node_output(n->node, b->processes[1].part, 1, "output", 6);
	end_process(b, 1, 0);
	end_now(b, 2, 0);
	assert_non_null(end_of(b, 2));
	assert_int_equal(place_of(b, "data", "output"), -1);
	assert_null(end_of(b, 1)); /* follows its output */
	n->busy = false;
	deliver_all(b);
	assert_non_null(end_of(b, 1));
	assert_int_equal(place_of(b, "data", "output"), (int)json_array_size(b->events) - 2);
}

BED_TEST(node_that_leaves_sends_the_output_first)
{
	static const struct dvm_msg leave = { .type = DVM_LEAVE };
	struct fake_node *n = forward(b);

	n->busy = true;
	dvm_node_output(n->node, 0, 1, "output", 6);
	end_process(b, 1, 0);
	say_to_node(n, &leave);
	deliver_down(n);
	assert_false(n->left);
	n->busy = false;
	deliver_all(b);
	assert_true(n->left);
	assert_non_null(end_of(b, 1));
}

BED_TEST(output_for_a_lost_head_is_not_sent_to_the_next_one)
{
	static const struct dvm_msg adopt = { .type = DVM_ADOPT };
	struct fake_node *n = forward(b);

	n->busy = true;
	dvm_node_output(n->node, 0, 1, "output", 6);
	deliver_all(b);
	dvm_node_alone(n->node);
	n->busy = false;
	deliver_down(n);
	assert_int_equal(n->up.count, 0);
	say_to_node(n, &adopt);
	deliver_down(n);
	dvm_node_output(n->node, 0, 1, "more", 4);
	dvm_node_turn(n->node, b->now);
	assert_int_equal(n->up.count, 2); /* REGISTER and HELD, and this */
}

BED_TEST(lost_head_blocks_no_task_and_the_next_one_opens_windows)
{
	static const struct dvm_msg adopt = { .type = DVM_ADOPT };
	struct fake_node *n = forward(b);

	b->reads = false;
	(void)write_some(b, n, 0, 100 * WINDOW);
	assert_int_equal(n->limit, 0);
	dvm_node_alone(n->node);
	deliver_all(b);
	assert_true(n->limit == SIZE_MAX);
	say_to_node(n, &adopt);
	deliver_down(n);
	assert_int_equal(n->limit, WINDOW - DVM_OUTPUT_EXTRA);
}

/* Each of these parts is the last on its node when it has begun. */
BED_TEST(client_with_many_windows_gets_small_ones)
{
	for (int64_t i = 1; i <= 16; i++) {
		submit(b, "{'argv':['x'],'output':'forward','cores':0}");
		assert_int_equal(node_of(b, i)->limit, WINDOW - DVM_OUTPUT_EXTRA);
	}
	submit(b, "{'argv':['x'],'output':'forward','cores':0}");
	assert_int_equal(node_of(b, 17)->limit, DVM_WINDOW_MIN - DVM_OUTPUT_EXTRA);
	end_now(b, 1, 0);
	submit(b, "{'argv':['x'],'output':'forward','cores':0}");
	assert_int_equal(node_of(b, 18)->limit, WINDOW - DVM_OUTPUT_EXTRA);
}

/* Bytes of the event's JSON. */
static size_t size_of_output(const struct dvm_output_msg *m)
{
	const struct head_event e = { .type = EVENT_OUTPUT, .output = { 1, m } };
	struct buf line;
	size_t size;

	buf_init(&line, (size_t)1 << 20);
	assert_int_equal(dvm_json.write_event(&e, &line), 0);
	size = line.len;
	buf_free(&line);
	return size;
}

TEST(bytes_that_are_no_text_need_at_most_a_third_more)
{
	static unsigned char data[PIECE];
	const struct dvm_output_msg m = { .fd = 1, .data = { data, PIECE } };
	const size_t most = (size_t)PIECE / 3 * 4 + 100;

	for (int byte = 0; byte < 256; byte++) {
		memset(data, byte, PIECE);
		assert_true(size_of_output(&m) <= most);
	}
	memset(data, 'x', PIECE);
	assert_true(size_of_output(&m) <= PIECE + 100);
}

/* Tasks end one after another, each with as much output as a result keeps. */
static void end_tasks(struct bed *b, int64_t tasks)
{
	static char out[DVM_TAIL_MAX];

	memset(out, 'x', sizeof(out));
	for (int64_t i = 1; i <= tasks; i++) {
		submit(b, "{'argv':['x']}");
		for (uint32_t fd = 1; fd <= 2; fd++)
			dvm_node_output(node_of(b, i)->node, b->processes[i].part, (int)fd,
					out, sizeof(out));
		end_now(b, i, 0);
	}
}

TEST_ON(many_results_come_in_several_events, struct bed *b, bed_create(1000))
{
	const int64_t tasks = 400; /* with 8 KiB each */
	size_t events = 0, results = 0, i;
	json_t *e;

	end_tasks(b, tasks);
	json_array_clear(b->events);
	request(b, "{'op':'wait','unwaited':true}");
	json_array_foreach(b->events, i, e) {
		events += !strcmp(text(e, "ev"), "ended");
		results += json_array_size(json_object_get(e, "tasks"));
		assert_true(json_array_size(json_object_get(e, "tasks")) <= 200);
	}
	assert_int_equal(results, tasks);
	assert_true(events >= 3);
}

BED_TEST(why_names_output_that_is_not_read)
{
	json_t *reasons;

	submit(b, FORWARD);
	b->reads = false;
	(void)write_some(b, node_of(b, 1), 0, 100 * WINDOW);
	ask(b, "{'op':'why','id':1}");
	assert_int_equal(json_array_size(json_object_get(event(b, "why"), "reasons")), 0);
	pass(b, 1000);
	ask(b, "{'op':'why','id':1}");
	reasons = json_object_get(event(b, "why"), "reasons");
	assert_int_equal(json_array_size(reasons), 1);
	assert_non_null(strstr(json_string_value(json_array_get(reasons, 0)),
			       "is not being read by a client"));
}
