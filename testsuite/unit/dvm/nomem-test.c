/* SPDX-License-Identifier: BSD-3-Clause */
/* A node of a DVM without memory for what it has to say: it leaves, and is lost. */
#include "idle.h"
#include "dvm/core/dvm_msg.h"
#include "unit.h"


#include "wrap-memory.h"

static bool refusing;

static bool is_refused(void)
{
	return refusing;
}

struct host {
	unsigned leaves;
};

static void send_nothing(void *arg, const void *data, size_t len)
{
}

static void start(void *arg, const struct node_start *what)
{
}

static void leave(void *arg)
{
	((struct host *)arg)->leaves++;
}

static void tell(struct dvm_node *n, const struct dvm_msg *m, struct dvm_time now)
{
	struct buf b;

	buf_init(&b, 1 << 16);
	assert_int_equal(dvm_msg_pack(&b, m), 0);
	assert_int_equal(dvm_node_input(n, b.data, b.len, now), 0);
	buf_free(&b);
}

/* A node that runs a task of one rank; its end is kept. */
static struct dvm_node *node_with_task(struct host *host, struct dvm_time now)
{
	static const struct dvm_node_ops ops = {
		.send = send_nothing, .open_output = idle_open_output,
		.close_output = idle_part, .all_started = idle_part,
		.profile = idle_profile, .forget = idle_part,
		.start = start, .leave = leave,
	};
	const uint64_t process = 7;
	struct dvm_node *n;

	assert_int_equal(dvm_node_create(&n, &ops, host), 0);
	tell(n, &(struct dvm_msg){
		.type = DVM_PROFILE,
		.profile = { .cwd = { "/", 2 }, .env = { "A=b", 4 } } }, now);
	tell(n, &(struct dvm_msg){
		.type = DVM_LAUNCH,
		.launch = { .task = 1, .ranks = 1, .nodes = 1, .ranks_here = 1, .keep = true,
			    .output = DVM_OUTPUT_NONE, .argv = { "x", 2 },
			    .path = { "", 1 } } }, now);
	dvm_node_started(n, 0, &process, 1, 0, now);
	return n;
}

/* The head would wait for the end forever, and the task keep its slots. */
TEST(node_that_cannot_tell_an_end_leaves)
{
	const struct dvm_time now = { 1000000000, 1000 };
	const struct node_end end = { .status = 0 };
	struct host host = { 0 };
	struct dvm_node *n = node_with_task(&host, now);

	assert_int_equal(host.leaves, 0);
	refusing = true;
	assert_true(dvm_node_ended(n, 0, 0, &end, now));
	refusing = false;
	assert_int_equal(host.leaves, 1);
	dvm_node_destroy(n);
}

TEST(node_with_memory_stays)
{
	const struct dvm_time now = { 1000000000, 1000 };
	const struct node_end end = { .status = 0 };
	struct host host = { 0 };
	struct dvm_node *n = node_with_task(&host, now);

	assert_true(dvm_node_ended(n, 0, 0, &end, now));
	assert_int_equal(host.leaves, 0);
	dvm_node_destroy(n);
}
