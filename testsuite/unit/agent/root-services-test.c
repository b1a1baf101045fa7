/* SPDX-License-Identifier: BSD-3-Clause */
/* Services of srun in a step that no srun stays with. */
#include "unit.h"

#include <stdio.h>

#include "agent/step/root_services.h"
#include "agent/step/srun_link.h"
#include "libpmi/control.h"

static struct {
	struct node node;
	struct agent_host host;
	struct pmi_step step;
	struct service service;
	struct control_msg reply;
	unsigned replies, killed;
	char why[NODE_WHY_MAX];
	char logged[512];
} bed;

static int on_frame(void *service, struct payload *frame)
{
	assert_ptr_equal(service, &bed.service);
	control_free(&bed.reply);
	bed.replies++;
	return control_unpack(frame->data, frame->len, &bed.reply);
}

static void on_kill(void *arg, const char *why)
{
	bed.killed++;
	snprintf(bed.why, sizeof(bed.why), "%s", why);
}

static void on_log(void *arg, enum log_level level, const char *text)
{
	snprintf(bed.logged, sizeof(bed.logged), "%s", text);
}

static const struct log_hook hook = { .line = on_log };

static void set_up(void)
{
	static const struct srun_link_ops ops = { .frame = on_frame };

	memset(&bed, 0, sizeof(bed));
	bed.host.kill_step = on_kill;
	bed.node = (struct node){ .host = &bed.host, .log = &hook };
	bed.service = (struct service){
		.node = &bed.node, .step = &bed.step, .srun_ops = &ops,
	};
	assert_int_equal(loop_create(&bed.node.loop), 0);
	assert_int_equal(root_services_open(&bed.service), 0);
}

static void tear_down(void)
{
	root_services_close(&bed.service);
	loop_run(bed.node.loop);
	loop_destroy(bed.node.loop);
	root_services_free(&bed.service);
	control_free(&bed.reply);
}

static void send_up(const struct control_msg *msg)
{
	struct payload *frame;
	struct buf b;

	buf_init(&b, CONTROL_FRAME_MAX);
	assert_int_equal(control_pack(&b, msg), 0);
	frame = payload_take(&b);
	assert_int_equal(root_services_send(&bed.service, frame), 0);
	payload_unref(frame);
}

/* The answer comes from the loop, and not inside the request. */
static void ask(enum control_type type, const char *name, const char *port)
{
	const struct control_msg msg = {
		.type = type, .origin = 1, .id = 7, .name = (char *)name, .text = (char *)port,
	};
	unsigned before = bed.replies;

	send_up(&msg);
	assert_int_equal(bed.replies, before);
	assert_false(root_services_is_flushed(&bed.service));
	uv_run(loop_uv(bed.node.loop), UV_RUN_NOWAIT);
	assert_true(root_services_is_flushed(&bed.service));
	assert_int_equal(bed.replies, before + 1);
	assert_int_equal(bed.reply.id, 7);
	assert_int_equal(bed.reply.origin, 1);
}

TEST(names_are_published_and_found_without_srun)
{
	set_up();
	ask(CONTROL_LOOKUP, "a", NULL);
	assert_int_not_equal(bed.reply.code, 0);
	ask(CONTROL_PUBLISH, "a", "port of a");
	assert_int_equal(bed.reply.code, 0);
	ask(CONTROL_LOOKUP, "a", NULL);
	assert_int_equal(bed.reply.code, 0);
	assert_string_equal(bed.reply.text, "port of a");
	ask(CONTROL_UNPUBLISH, "a", NULL);
	assert_int_equal(bed.reply.code, 0);
	tear_down();
}

TEST(abort_ends_the_step_by_name)
{
	const struct control_msg msg = {
		.type = CONTROL_ABORT, .rank = 3, .code = 9, .text = (char *)"why not",
	};

	set_up();
	send_up(&msg);
	assert_int_equal(bed.killed, 1);
	assert_string_equal(bed.why, "rank 3 called abort: why not (exit code 9)");
	tear_down();
}

TEST(report_goes_to_the_log)
{
	const struct control_msg msg = {
		.type = CONTROL_STALL, .code = 61,
		.text = (char *)"fence 0: 61 s, waiting for 1 of 2 ranks: 1 (node n1)",
	};

	set_up();
	send_up(&msg);
	assert_string_equal(bed.logged, msg.text);
	assert_int_equal(bed.killed, 0);
	tear_down();
}

TEST(step_may_end_while_answers_wait)
{
	const struct control_msg msg = {
		.type = CONTROL_LOOKUP, .origin = 1, .id = 7, .name = (char *)"a",
	};

	set_up();
	send_up(&msg);
	assert_false(root_services_is_flushed(&bed.service));
	tear_down();
	assert_int_equal(bed.replies, 0);
}
