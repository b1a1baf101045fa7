/* SPDX-License-Identifier: BSD-3-Clause */
/* srun's services for one step: step-services-bed.h. */
#include "step-services-bed.h"

#include <stdio.h>

struct seen seen;
int link_a, link_b;

static void on_reply(void *arg, void *link, const void *data, size_t len)
{
	control_free(&seen.reply);
	assert_int_equal(control_unpack(data, len, &seen.reply), 0);
	seen.body_len = seen.reply.body_len;
	assert_true(seen.body_len <= sizeof(seen.body));
	if (seen.body_len)
		memcpy(seen.body, seen.reply.body, seen.body_len);
	assert_true(seen.reply.type == CONTROL_REPLY ||
		    seen.reply.type == CONTROL_STARTED);
	seen.reply_link = link;
	seen.replies++;
}

static int on_spawn(void *arg, uint32_t token,
		    const struct spawn_request *request)
{
	if (seen.spawns < SPAWNS_SEEN)
		seen.tokens[seen.spawns] = token;
	seen.spawns++;
	snprintf(seen.text, sizeof(seen.text), "%s", request->commands[0].program);
	return seen.spawn_rc;
}

static void on_abort(void *arg, uint32_t rank, int code, const char *text)
{
	seen.aborts++;
	seen.abort_rank = rank;
}

static void on_report(void *arg, const char *text)
{
	seen.reports++;
	snprintf(seen.text, sizeof(seen.text), "%s", text);
}

static void on_gave_up(void *arg)
{
	seen.gave_ups++;
}

static bool on_started(void *arg, uint32_t position)
{
	return position == seen.started;
}

static void on_ready(void *arg)
{
	seen.readies++;
}

static void on_not_ready(void *arg, const char *why)
{
	seen.readies += 100;
	snprintf(seen.text, sizeof(seen.text), "%s", why);
}

static int on_forward(void *arg, uint32_t token, const void *data, size_t len)
{
	struct control_msg msg;

	seen.tokens[seen.forwards++] = token;
	assert_int_equal(control_unpack(data, len, &msg), 0);
	assert_int_equal(msg.id, token);
	snprintf(seen.text, sizeof(seen.text), "%s", msg.name);
	control_free(&msg);
	return seen.spawn_rc;
}

static void setup(bool has_parent)
{
	const struct step_services_ops ops = {
		.reply = on_reply,
		.spawn = on_spawn,
		.abort = on_abort,
		.report = on_report,
		.gave_up = on_gave_up,
		.started = on_started,
		.ready = on_ready,
		.not_ready = on_not_ready,
		.forward = has_parent ? on_forward : NULL,
	};

	seen = (struct seen){};
	assert_int_equal(step_services_create(&seen.services, &ops, NULL, 0, NULL), 0);
}

int begin_test(void **state)
{
	setup(false);
	return 0;
}

int begin_parent_test(void **state)
{
	setup(true);
	return 0;
}

int end_test(void **state)
{
	control_free(&seen.reply);
	step_services_destroy(seen.services);
	return 0;
}

int receive(void *link, const struct control_msg *msg)
{
	struct buf b;
	int rc;

	buf_init(&b, CONTROL_FRAME_MAX);
	assert_int_equal(control_pack(&b, msg), 0);
	rc = step_services_receive(seen.services, link, b.data, b.len);
	buf_free(&b);
	return rc;
}

int ask(enum control_type type, const char *name,
	       const char *port)
{
	const struct control_msg msg = {
		.type = type, .origin = 3, .id = 77,
		.name = (char *)name, .text = (char *)port,
	};
	unsigned before = seen.replies;

	assert_int_equal(receive(&link_a, &msg), 0);
	assert_int_equal(seen.replies, before + 1);
	assert_ptr_equal(seen.reply_link, &link_a);
	assert_int_equal(seen.reply.origin, 3);
	assert_int_equal(seen.reply.id, 77);
	return seen.reply.code;
}

void request_spawn(void *link, uint32_t id)
{
	struct control_msg msg = {
		.type = CONTROL_SPAWN, .origin = 9, .id = id,
	};
	struct spawn_request *s = spawn_new();
	struct buf body;

	spawn_add_command(s);
	spawn_set_program(s, "worker", 6);
	spawn_set_nprocs(s, 2);
	buf_init(&body, CONTROL_BODY_MAX);
	assert_int_equal(spawn_pack(&body, s), 0);
	msg.body = body.data;
	msg.body_len = body.len;
	assert_int_equal(receive(link, &msg), 0);
	buf_free(&body);
	spawn_free(s);
}
