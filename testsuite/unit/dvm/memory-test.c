/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory of a head with many waiting tasks. */
#include "idle.h"
#include "requests.h"
#include "unit.h"

#include <malloc.h>

#define TASKS 20000
#define IN_REQUEST 1000
#define CLIENT 1
/* A waiting task, with its arguments, and all that the head needs to find it. */
#define BYTES_MAX 300

/* 0: this C library, or what takes its place, does not count. */
static size_t allocated(void)
{
#if defined(__GLIBC__) && (__GLIBC__ > 2 || __GLIBC_MINOR__ >= 33)
	return mallinfo2().uordblks;
#else
	return 0;
#endif
}

static void to_node(void *arg, uint32_t node, const void *data, size_t len)
{
}

static void node_break(void *arg, uint32_t node, const char *why)
{
	fail_msg("node %u is broken off: %s", node, why);
}

static void to_client(void *arg, uint32_t client, const char *line, size_t len)
{
}

static void submit(struct dvm_head *h, struct dvm_time now)
{
	struct buf b;

	buf_init(&b, 1 << 20);
	assert_int_equal(buf_puts(&b, "{\"op\":\"submit\",\"profile\":{\"id\":\"p\",\"cwd\":\"/\",\"env\":{}},\"tasks\":["), 0);
	for (int i = 0; i < IN_REQUEST; i++)
		assert_int_equal(buf_printf(&b, "%s{\"argv\":[\"./simulate\",\"%d\"],\"time\":60}",
					    i ? "," : "", i), 0);
	assert_int_equal(buf_puts(&b, "]}"), 0);
	dvm_json_request(h, CLIENT, b.data, b.len, now);
	dvm_head_turn(h, now);
	buf_free(&b);
}

static struct dvm_head *head_with_a_node(struct dvm_time now)
{
	static const struct dvm_head_ops ops = {
		.format = &dvm_json, .node_send = to_node, .node_break = node_break,
		.client_send = to_client, .end = idle,
	};
	struct dvm_head_options options = usual_options(1);
	struct dvm_head *h;

	options.max_waiting = 2 * TASKS;
	assert_int_equal(dvm_head_create(&h, &options, &ops, NULL, NULL), 0);
	assert_int_equal(tell_registered(h, 0, 1, now), 0);
	dvm_head_client_opened(h, CLIENT);
	return h;
}

TEST(waiting_tasks_need_few_bytes)
{
	const struct dvm_time now = { 1000000000, 1000 };
	struct dvm_head *h = head_with_a_node(now);
	size_t before, each;

	submit(h, now); /* what is there once */
	before = allocated();
	for (int i = 0; i < TASKS; i += IN_REQUEST)
		submit(h, now);
	each = (allocated() - before) / TASKS;
	print_message("a waiting task has %zu bytes\n", each);
	assert_true(each <= BYTES_MAX);
	dvm_head_destroy(h);
}
