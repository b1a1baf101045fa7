/* SPDX-License-Identifier: BSD-3-Clause */
/* Heads and nodes of a DVM in which one allocation fails, whichever: they answer, or leave. */
#include <errno.h>
#include <string.h>

#include "idle.h"
#include "requests.h"
#include "scarce-memory.h"
#include "unit.h"
#include "dvm/core/dvm_msg.h"
#include "dvm/json/dvm_json.h"

#define CLIENT 1
#define SUBMIT \
	"{\"op\":\"submit\",\"profile\":{\"id\":\"p\",\"cwd\":\"/\",\"env\":{}},\"tasks\":[{\"argv\":[\"x\"]}]}"

static const struct dvm_time now = { 1000000000, 1000 };

static void send_nothing(void *arg, const void *data, size_t len)
{
}

static void start(void *arg, const struct node_start *what)
{
}

static void leave(void *arg)
{
}

static int tell(struct dvm_node *n, const struct dvm_msg *m)
{
	struct buf b;
	int before = allowed, rc;

	allowed = -1;
	buf_init(&b, 1 << 16);
	assert_int_equal(dvm_msg_pack(&b, m), 0);
	allowed = before;
	rc = dvm_node_input(n, b.data, b.len, now);
	buf_free(&b);
	return rc;
}

static const struct dvm_node_ops node_ops = {
	.send = send_nothing, .open_output = idle_open_output,
	.close_output = idle_part, .all_started = idle_part,
	.profile = idle_profile, .forget = idle_part,
	.start = start, .leave = leave,
};

/* A node gets a task. 0 or -ENOMEM. */
static int give_task(struct dvm_node *n)
{
	int rc = tell(n, &(struct dvm_msg){
		.type = DVM_PROFILE,
		.profile = { .cwd = { "/", 2 }, .env = { "A=b", 4 } } });

	return rc ? rc : tell(n, &(struct dvm_msg){
		.type = DVM_LAUNCH,
		.launch = { .task = 1, .ranks = 1, .nodes = 1, .ranks_here = 1,
			    .output = DVM_OUTPUT_NONE, .argv = { "x", 2 },
			    .path = { "", 1 } } });
}

TEST(node_without_memory_for_a_task_says_so)
{
	int failed = 0, rc = -ENOMEM;

	for (int i = 0; rc; i++) {
		struct dvm_node *n;

		assert_int_equal(dvm_node_create(&n, &node_ops, NULL), 0);
		allowed = i;
		rc = give_task(n);
		failed += rc != 0;
		allowed = -1;
		assert_true(!rc || rc == -ENOMEM);
		dvm_node_destroy(n);
	}
	assert_true(failed >= 6); /* with those of the tables of profiles, parts and tasks */
}

static void to_client(void *arg, uint32_t client, const char *line, size_t len)
{
	*(bool *)arg |= memmem(line, len, "\"ids\"", 5) && !memmem(line, len, "\"why\"", 5);
}

static void client_break(void *arg, uint32_t client)
{
}

static void to_node(void *arg, uint32_t node, const void *data, size_t len)
{
}

static void node_break(void *arg, uint32_t node, const char *why)
{
}

static void end(void *arg)
{
}

TEST(head_without_memory_for_a_task_goes_on)
{
	static const struct dvm_head_ops ops = {
		.format = &dvm_json, .node_send = to_node, .node_break = node_break,
		.client_send = to_client, .client_break = client_break, .end = end,
	};
	const struct dvm_head_options options = usual_options(1);
	bool taken = false, refused;
	int failed = 0;

	do {
		struct dvm_head *h;

		taken = false;
		assert_int_equal(dvm_head_create(&h, &options, &ops, &taken, NULL), 0);
		assert_int_equal(tell_registered(h, 0, 1, now), 0);
		allowed = failed;
		dvm_head_client_opened(h, CLIENT);
		dvm_json_request(h, CLIENT, SUBMIT, strlen(SUBMIT), now);
		dvm_head_turn(h, now);
		refused = allowed < 0;
		allowed = -1;
		failed += refused;
		dvm_head_destroy(h);
	} while (refused);
	assert_true(taken);
	assert_true(failed >= 10);
}
