/* SPDX-License-Identifier: BSD-3-Clause */
/* srun's half of the engine: names, spawns, aborts, and a parent's srun. */
#include "unit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "libpmi/names.h"
#include "libpmi/rc.h"
#include "libpmi/step_services.h"

#define SPAWNS_SEEN 8

/* Requests of the launcher to its host. */
struct fixture {
	struct step_services *launcher;
	struct control_msg reply; /* the last one; its body has ended, */
	char body[256];           /* but is here */
	size_t body_len;
	void *reply_link;
	unsigned replies;
	uint32_t tokens[SPAWNS_SEEN]; /* of spawns and forwarded requests */
	unsigned spawns, forwards;
	int spawn_rc;
	unsigned aborts, reports, gave_ups, readies;
	uint32_t abort_rank;
	uint32_t started; /* the position whose ranks have been */
	char text[64];
};

static void on_reply(void *arg, void *link, const void *data, size_t len)
{
	struct fixture *f = arg;

	control_free(&f->reply);
	assert_int_equal(control_unpack(data, len, &f->reply), 0);
	f->body_len = f->reply.body_len;
	assert_true(f->body_len <= sizeof(f->body));
	if (f->body_len)
		memcpy(f->body, f->reply.body, f->body_len);
	assert_true(f->reply.type == CONTROL_REPLY ||
		    f->reply.type == CONTROL_STARTED);
	f->reply_link = link;
	f->replies++;
}

static int on_spawn(void *arg, uint32_t token,
		    const struct spawn_request *request)
{
	struct fixture *f = arg;

	if (f->spawns < SPAWNS_SEEN)
		f->tokens[f->spawns] = token;
	f->spawns++;
	snprintf(f->text, sizeof(f->text), "%s", request->commands[0].program);
	return f->spawn_rc;
}

static void on_abort(void *arg, uint32_t rank, int code, const char *text)
{
	struct fixture *f = arg;

	f->aborts++;
	f->abort_rank = rank;
}

static void on_report(void *arg, const char *text)
{
	struct fixture *f = arg;

	f->reports++;
	snprintf(f->text, sizeof(f->text), "%s", text);
}

static void on_gave_up(void *arg)
{
	struct fixture *f = arg;

	f->gave_ups++;
}

static bool on_started(void *arg, uint32_t position)
{
	struct fixture *f = arg;

	return position == f->started;
}

static void on_ready(void *arg)
{
	struct fixture *f = arg;

	f->readies++;
}

static void on_not_ready(void *arg, const char *why)
{
	struct fixture *f = arg;

	f->readies += 100;
	snprintf(f->text, sizeof(f->text), "%s", why);
}

static int on_forward(void *arg, uint32_t token, const void *data, size_t len)
{
	struct fixture *f = arg;
	struct control_msg msg;

	f->tokens[f->forwards++] = token;
	assert_int_equal(control_unpack(data, len, &msg), 0);
	assert_int_equal(msg.id, token);
	snprintf(f->text, sizeof(f->text), "%s", msg.name);
	control_free(&msg);
	return f->spawn_rc;
}

static void setup(struct fixture *f, bool has_parent)
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

	memset(f, 0, sizeof(*f));
	assert_int_equal(step_services_create(&f->launcher, &ops, f, 0, NULL), 0);
}

static void teardown(struct fixture *f)
{
	control_free(&f->reply);
	step_services_destroy(f->launcher);
}

static int receive(struct fixture *f, void *link, const struct control_msg *msg)
{
	struct buf b;
	int rc;

	buf_init(&b, CONTROL_FRAME_MAX);
	assert_int_equal(control_pack(&b, msg), 0);
	rc = step_services_receive(f->launcher, link, b.data, b.len);
	buf_free(&b);
	return rc;
}

static int link_a, link_b; /* their addresses stand for links */

/* Send a name request and return the code of its reply. */
static int ask(struct fixture *f, enum control_type type, const char *name,
	       const char *port)
{
	const struct control_msg msg = {
		.type = type, .origin = 3, .id = 77,
		.name = (char *)name, .text = (char *)port,
	};
	unsigned before = f->replies;

	assert_int_equal(receive(f, &link_a, &msg), 0);
	assert_int_equal(f->replies, before + 1);
	assert_ptr_equal(f->reply_link, &link_a);
	assert_int_equal(f->reply.origin, 3);
	assert_int_equal(f->reply.id, 77);
	return f->reply.code;
}

static void names_are_published_and_found(void **state)
{
	struct fixture f;

	setup(&f, false);
	assert_int_not_equal(ask(&f, CONTROL_LOOKUP, "a", NULL), 0);
	assert_string_not_equal(f.reply.text, "");
	assert_int_equal(ask(&f, CONTROL_PUBLISH, "a", "port of a"), 0);
	assert_int_equal(ask(&f, CONTROL_PUBLISH, "b", "port of b"), 0);
	assert_int_equal(ask(&f, CONTROL_LOOKUP, "a", NULL), 0);
	assert_string_equal(f.reply.text, "port of a");
	assert_int_equal(ask(&f, CONTROL_LOOKUP, "b", NULL), 0);
	assert_string_equal(f.reply.text, "port of b");
	assert_int_equal(ask(&f, CONTROL_UNPUBLISH, "a", NULL), 0);
	assert_int_not_equal(ask(&f, CONTROL_LOOKUP, "a", NULL), 0);
	assert_int_not_equal(ask(&f, CONTROL_UNPUBLISH, "a", NULL), 0);
	assert_int_equal(ask(&f, CONTROL_LOOKUP, "b", NULL), 0);
	teardown(&f);
}

static void a_name_is_published_once(void **state)
{
	struct fixture f;

	setup(&f, false);
	assert_int_equal(ask(&f, CONTROL_PUBLISH, "a", "first"), 0);
	assert_int_not_equal(ask(&f, CONTROL_PUBLISH, "a", "second"), 0);
	assert_int_equal(ask(&f, CONTROL_LOOKUP, "a", NULL), 0);
	assert_string_equal(f.reply.text, "first");
	assert_int_not_equal(ask(&f, CONTROL_PUBLISH, "", "x"), 0);
	teardown(&f);
}

static void names_have_a_limit(void **state)
{
	struct fixture f;
	char name[16];

	setup(&f, false);
	for (int i = 0; i < STEP_SERVICES_NAMES_MAX; i++) {
		snprintf(name, sizeof(name), "%d", i);
		assert_int_equal(ask(&f, CONTROL_PUBLISH, name, "p"), 0);
	}
	assert_int_not_equal(ask(&f, CONTROL_PUBLISH, "one more", "p"), 0);
	assert_int_equal(ask(&f, CONTROL_UNPUBLISH, "0", NULL), 0);
	assert_int_equal(ask(&f, CONTROL_PUBLISH, "one more", "p"), 0);
	teardown(&f);
}

static void names_go_with_the_step_that_has_published_them(void **state)
{
	const struct control_msg of_b = {
		.type = CONTROL_PUBLISH, .name = (char *)"b", .text = (char *)"port of b",
	};
	struct fixture f;

	setup(&f, false);
	assert_int_equal(ask(&f, CONTROL_PUBLISH, "a", "port of a"), 0);
	assert_int_equal(receive(&f, &link_b, &of_b), 0);
	assert_int_equal(f.reply.code, 0);
	step_services_step_lost(f.launcher, &link_a);
	assert_int_not_equal(ask(&f, CONTROL_LOOKUP, "a", NULL), 0);
	assert_int_equal(ask(&f, CONTROL_LOOKUP, "b", NULL), 0);
	teardown(&f);
}

/* ---- spawn ---- */

static void request_spawn(struct fixture *f, void *link, uint32_t id)
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
	assert_int_equal(receive(f, link, &msg), 0);
	buf_free(&body);
	spawn_free(s);
}

static void spawns_are_answered_when_they_end(void **state)
{
	struct fixture f;

	setup(&f, false);
	request_spawn(&f, &link_a, 1);
	request_spawn(&f, &link_b, 2);
	assert_int_equal(f.spawns, 2);
	assert_string_equal(f.text, "worker");
	assert_int_equal(f.replies, 0);
	step_services_spawned(f.launcher, f.tokens[1], 0, "12.3");
	assert_int_equal(f.replies, 1);
	assert_ptr_equal(f.reply_link, &link_b);
	assert_int_equal(f.reply.origin, 9);
	assert_int_equal(f.reply.id, 2);
	assert_int_equal(f.reply.code, 0);
	assert_string_equal(f.reply.text, "12.3");
	step_services_spawned(f.launcher, f.tokens[0], PMI_RC_FAIL, "no such file");
	assert_int_equal(f.replies, 2);
	assert_int_equal(f.reply.id, 1);
	assert_int_equal(f.reply.code, PMI_RC_FAIL);
	step_services_spawned(f.launcher, f.tokens[0], 0, "twice");
	step_services_spawned(f.launcher, 4711, 0, "unknown");
	assert_int_equal(f.replies, 2);
	teardown(&f);
}

static void a_spawn_that_cannot_start_is_answered(void **state)
{
	struct fixture f;

	setup(&f, false);
	f.spawn_rc = -ENOENT;
	request_spawn(&f, &link_a, 1);
	assert_int_equal(f.replies, 1);
	assert_int_not_equal(f.reply.code, 0);
	assert_string_not_equal(f.reply.text, "");
	teardown(&f);
}

static void nothing_is_sent_on_a_lost_link(void **state)
{
	struct fixture f;

	setup(&f, false);
	request_spawn(&f, &link_a, 1);
	request_spawn(&f, &link_b, 1);
	step_services_link_lost(f.launcher, &link_a);
	step_services_spawned(f.launcher, f.tokens[0], 0, "12.3");
	assert_int_equal(f.replies, 0);
	step_services_spawned(f.launcher, f.tokens[1], 0, "12.4");
	assert_int_equal(f.replies, 1);
	teardown(&f);
}

static void spawns_in_progress_have_a_limit(void **state)
{
	struct fixture f;

	setup(&f, false);
	for (int i = 0; i < STEP_SERVICES_SPAWNS_MAX; i++)
		request_spawn(&f, &link_a, i);
	assert_int_equal(f.replies, 0);
	request_spawn(&f, &link_a, 5000);
	assert_int_equal(f.replies, 1);
	assert_int_equal(f.reply.id, 5000);
	assert_int_not_equal(f.reply.code, 0);
	assert_int_equal(f.spawns, STEP_SERVICES_SPAWNS_MAX);
	step_services_spawned(f.launcher, f.tokens[0], 0, "");
	request_spawn(&f, &link_a, 5001);
	assert_int_equal(f.spawns, STEP_SERVICES_SPAWNS_MAX + 1);
	teardown(&f);
}

/* ---- what is not answered ---- */

static void aborts_and_ready_count_once(void **state)
{
	struct control_msg abort = { .type = CONTROL_ABORT, .rank = 5 };
	const struct control_msg ready = { .type = CONTROL_READY };
	struct fixture f;

	setup(&f, false);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(receive(&f, &link_a, &abort), 0);
		assert_int_equal(receive(&f, &link_a, &ready), 0);
		abort.rank++;
	}
	assert_int_equal(f.aborts, 1);
	assert_int_equal(f.abort_rank, 5);
	assert_int_equal(f.readies, 1);
	assert_int_equal(f.replies, 0);
	teardown(&f);
}

static void step_that_ended_is_reported_as_not_ready(void **state)
{
	struct control_msg ready = { .type = CONTROL_READY, .code = 1, .text = "why" };
	struct fixture f;

	setup(&f, false);
	assert_int_equal(receive(&f, &link_a, &ready), 0);
	assert_int_equal(f.readies, 100);
	assert_string_equal(f.text, "why");
	ready.code = 0;
	assert_int_equal(receive(&f, &link_a, &ready), 0);
	assert_int_equal(f.readies, 100);
	teardown(&f);
}

/* As long as the answer is no there is none. */
static void started_step_is_confirmed_to_the_node_that_asks(void **state)
{
	struct control_msg msg = { .type = CONTROL_STARTED, .origin = 3 };
	struct fixture f;

	setup(&f, false);
	f.started = 70000;
	msg.id = 5;
	assert_int_equal(receive(&f, &link_a, &msg), 0);
	assert_int_equal(f.replies, 0);
	msg.id = 70000;
	assert_int_equal(receive(&f, &link_b, &msg), 0);
	assert_int_equal(f.replies, 1);
	assert_ptr_equal(f.reply_link, &link_b);
	assert_int_equal(f.reply.type, CONTROL_STARTED);
	assert_int_equal(f.reply.id, 70000);
	teardown(&f);
}

/* A node is not trusted with the user's terminal. */
static void reports_are_plain_text(void **state)
{
	struct control_msg report = { .type = CONTROL_REPORT };
	struct fixture f;
	char text[] = "a\x1b[2J\nb\xff";

	setup(&f, false);
	report.text = text;
	assert_int_equal(receive(&f, &link_a, &report), 0);
	assert_string_equal(f.text, "a?[2J?b?");
	teardown(&f);
}

/* No line: the first has said why. */
static void rank_that_gave_up_after_a_report_is_remembered(void **state)
{
	struct control_msg report = { .type = CONTROL_REPORT };
	struct fixture f;
	char why[] = "fence 3 failed";

	setup(&f, false);
	report.text = why;
	assert_int_equal(receive(&f, &link_a, &report), 0);
	assert_int_equal(f.gave_ups, 0);
	report.text = NULL;
	report.code = 1;
	assert_int_equal(receive(&f, &link_a, &report), 0);
	assert_int_equal(f.gave_ups, 1);
	assert_int_equal(f.reports, 1);
	teardown(&f);
}

static void the_user_reads_each_report_once_and_few(void **state)
{
	const struct control_msg abort = { .type = CONTROL_ABORT };
	struct control_msg report = { .type = CONTROL_REPORT };
	char text[32];
	struct fixture f;

	setup(&f, false);
	report.text = text;
	for (int i = 0; i < 2; i++) {
		strcpy(text, "fence 3 failed");
		assert_int_equal(receive(&f, &link_a, &report), 0);
	}
	assert_int_equal(f.reports, 1);
	for (int i = 0; i < 10; i++) {
		snprintf(text, sizeof(text), "ring %d failed", i);
		assert_int_equal(receive(&f, &link_a, &report), 0);
	}
	assert_int_equal(f.reports, STEP_SERVICES_REPORTS_MAX);
	teardown(&f);
	setup(&f, false);
	assert_int_equal(receive(&f, &link_a, &abort), 0);
	assert_int_equal(receive(&f, &link_a, &report), 0);
	assert_int_equal(f.reports, 0); /* the abort says it all */
	teardown(&f);
}

/* A program was refused, say; a collective may fail later. */
static void notes_use_up_no_report(void **state)
{
	struct control_msg note = { .type = CONTROL_NOTE };
	struct control_msg report = { .type = CONTROL_REPORT };
	char text[] = "rank 1: a second process\n", why[] = "fence 3 failed";
	struct fixture f;

	setup(&f, false);
	note.text = text;
	for (int i = 0; i < STEP_SERVICES_NOTES_MAX + 3; i++)
		assert_int_equal(receive(&f, &link_a, &note), 0);
	assert_string_equal(f.text, "rank 1: a second process?");
	assert_int_equal(f.reports, STEP_SERVICES_NOTES_MAX);
	report.text = why;
	assert_int_equal(receive(&f, &link_a, &report), 0);
	assert_string_equal(f.text, why);
	teardown(&f);
}

static void nonsense_breaks_the_link(void **state)
{
	const struct control_msg reply = { .type = CONTROL_REPLY };
	struct control_msg spawn = { .type = CONTROL_SPAWN };
	struct fixture f;

	setup(&f, false);
	assert_int_equal(step_services_receive(f.launcher, &link_a, "x", 1), -EPROTO);
	assert_int_equal(receive(&f, &link_a, &reply), -EPROTO);
	assert_int_equal(receive(&f, &link_a, &spawn), -EPROTO);
	spawn.body = "\1\0\0\0\1\0\0\0\1\0\0\0a\0\0\0\0\0\0\0\0\0\0\0\0tail";
	spawn.body_len = 13 + 12 + 4;
	assert_int_equal(receive(&f, &link_a, &spawn), -EPROTO);
	assert_int_equal(f.spawns, 0);
	spawn.body_len -= 4;
	assert_int_equal(receive(&f, &link_a, &spawn), 0);
	assert_int_equal(f.spawns, 1);
	teardown(&f);
}

/* ---- a step that was spawned ---- */

static void parent_replies(struct fixture *f, unsigned n, struct control_msg msg)
{
	struct buf b;

	msg.type = CONTROL_REPLY;
	msg.id = f->tokens[n];
	buf_init(&b, CONTROL_FRAME_MAX);
	assert_int_equal(control_pack(&b, &msg), 0);
	step_services_forwarded(f->launcher, f->tokens[n], b.data, b.len);
	buf_free(&b);
}

static void parent_answers(struct fixture *f, unsigned n, int code,
			   const char *text)
{
	parent_replies(f, n, (struct control_msg){ .code = code,
						   .text = (char *)text });
}

static void names_of_a_spawned_step_are_its_parents(void **state)
{
	struct control_msg msg = {
		.type = CONTROL_LOOKUP, .origin = 6, .id = 8, .name = "server",
	};
	struct fixture f;

	setup(&f, true);
	assert_int_equal(receive(&f, &link_a, &msg), 0);
	assert_int_equal(f.forwards, 1);
	assert_string_equal(f.text, "server");
	msg.id = 9;
	assert_int_equal(receive(&f, &link_a, &msg), 0);
	assert_int_equal(f.replies, 0);
	parent_answers(&f, 1, 0, "port");
	assert_int_equal(f.replies, 1);
	assert_int_equal(f.reply.origin, 6);
	assert_int_equal(f.reply.id, 9);
	assert_int_equal(f.reply.code, 0);
	assert_string_equal(f.reply.text, "port");
	step_services_forwarded(f.launcher, f.tokens[0], "garbage", 7);
	assert_int_equal(f.replies, 2);
	assert_int_equal(f.reply.id, 8);
	assert_int_not_equal(f.reply.code, 0);
	teardown(&f);
}

static void a_lost_parent_fails_what_waits_for_it(void **state)
{
	struct control_msg msg = { .type = CONTROL_LOOKUP, .name = "server" };
	struct fixture f;

	setup(&f, true);
	request_spawn(&f, &link_a, 1);
	assert_int_equal(receive(&f, &link_a, &msg), 0);
	assert_int_equal(receive(&f, &link_b, &msg), 0);
	step_services_parent_lost(f.launcher);
	assert_int_equal(f.replies, 2); /* not the spawn */
	assert_int_not_equal(f.reply.code, 0);
	teardown(&f);
}

static void a_parent_that_is_gone_fails_the_request(void **state)
{
	struct fixture f;

	setup(&f, true);
	f.spawn_rc = -EPIPE;
	assert_int_not_equal(ask(&f, CONTROL_PUBLISH, "a", "p"), 0);
	teardown(&f);
}

/* ---- names of PMIx ---- */

/* A look-up of the key "x" that waits, or its publication. */
static int ask_pmix(struct fixture *f, enum names_op op, void *link, uint32_t wait)
{
	struct names_item item = { .key = "x" };
	const struct names_request r = {
		.op = op, .range = NAMES_OF_SESSION, .items = &item, .count = 1,
		.wait = wait, .timeout_ms = wait ? 50 : 0,
	};
	struct control_msg msg = {
		.type = CONTROL_NAMES, .origin = 4, .id = 5, .name = "pmi2x.1.0",
		.text = "n4", .rank = 6,
	};
	struct buf b;
	int rc;

	item.value = op == NAMES_PUBLISH ? "a\0b" : NULL;
	item.len = op == NAMES_PUBLISH ? 3 : 0;
	buf_init(&b, NAMES_BYTES_MAX);
	assert_int_equal(names_pack_request(&b, &r), 0);
	msg.body = b.data;
	msg.body_len = b.len;
	rc = receive(f, link, &msg);
	buf_free(&b);
	return rc;
}

/* The error in the last reply. */
static int error_of_pmix(const struct fixture *f, uint32_t found)
{
	struct names_answer a;

	assert_int_equal(f->reply.origin, 4);
	assert_int_equal(f->reply.id, 5);
	assert_int_equal(f->reply.code, 0);
	assert_int_equal(names_unpack_answer(&a, f->body, f->body_len), 0);
	assert_int_equal(a.count, found);
	if (found) {
		assert_int_equal(a.items[0].len, 3);
		assert_memory_equal(a.items[0].value, "a\0b", 3);
		assert_string_equal(a.items[0].from.nspace, "pmi2x.1.0");
		assert_int_equal(a.items[0].from.rank, 6);
	}
	free(a.items);
	return a.error;
}

static void names_of_pmix_are_not_those_of_pmi(void **state)
{
	struct fixture f;

	setup(&f, false);
	assert_int_equal(ask(&f, CONTROL_PUBLISH, "x", "port"), 0);
	assert_int_equal(ask_pmix(&f, NAMES_LOOKUP, &link_a, 0), 0);
	assert_int_equal(error_of_pmix(&f, 0), -ENOENT);
	assert_int_equal(ask_pmix(&f, NAMES_PUBLISH, &link_a, 0), 0);
	assert_int_equal(error_of_pmix(&f, 0), 0);
	assert_int_equal(ask_pmix(&f, NAMES_LOOKUP, &link_b, 0), 0);
	assert_ptr_equal(f.reply_link, &link_b);
	assert_int_equal(error_of_pmix(&f, 1), 0);
	assert_int_equal(ask(&f, CONTROL_LOOKUP, "x", NULL), 0);
	assert_string_equal(f.reply.text, "port");
	teardown(&f);
}

static void a_lookup_of_pmix_may_wait(void **state)
{
	struct fixture f;

	setup(&f, false);
	assert_int_equal(ask_pmix(&f, NAMES_LOOKUP, &link_a, 1), 0);
	assert_int_equal(ask_pmix(&f, NAMES_LOOKUP, &link_b, 1), 0);
	assert_int_equal(f.replies, 0);
	assert_true(step_services_expire(f.launcher, 100) == 150);
	step_services_link_lost(f.launcher, &link_a);
	assert_true(step_services_expire(f.launcher, 150) == UINT64_MAX);
	assert_int_equal(f.replies, 1);
	assert_ptr_equal(f.reply_link, &link_b);
	assert_int_equal(error_of_pmix(&f, 0), -ETIMEDOUT);
	assert_int_equal(receive(&f, &link_a, &(struct control_msg){
					 .type = CONTROL_NAMES }), -EPROTO);
	teardown(&f);
}

/* The whole answer comes back. */
static void names_of_pmix_are_the_parents(void **state)
{
	struct fixture f;
	struct buf b;
	struct names_answer a = { .error = -ENOENT };

	setup(&f, true);
	assert_int_equal(ask_pmix(&f, NAMES_LOOKUP, &link_a, 0), 0);
	assert_int_equal(f.forwards, 1);
	assert_string_equal(f.text, "pmi2x.1.0");
	buf_init(&b, NAMES_BYTES_MAX);
	assert_int_equal(names_pack_answer(&b, &a), 0);
	parent_replies(&f, 0, (struct control_msg){ .body = b.data,
						    .body_len = b.len });
	assert_int_equal(error_of_pmix(&f, 0), -ENOENT);
	buf_free(&b);
	teardown(&f);
}

/* The parent's srun keeps the names, and is told; its answer is nobody's. */
static void a_step_that_has_ended_is_the_parents_news(void **state)
{
	struct fixture f;

	setup(&f, true);
	step_services_namespace_ended(f.launcher, "pmi2x.1.7");
	assert_int_equal(f.forwards, 1);
	assert_string_equal(f.text, "pmi2x.1.7");
	parent_answers(&f, 0, 0, "");
	step_services_namespace_ended(f.launcher, "pmi2x.1.8");
	step_services_parent_lost(f.launcher);
	assert_int_equal(f.replies, 0);
	teardown(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_are_published_and_found),
		cmocka_unit_test(a_name_is_published_once),
		cmocka_unit_test(names_have_a_limit),
		cmocka_unit_test(names_go_with_the_step_that_has_published_them),
		cmocka_unit_test(spawns_are_answered_when_they_end),
		cmocka_unit_test(a_spawn_that_cannot_start_is_answered),
		cmocka_unit_test(nothing_is_sent_on_a_lost_link),
		cmocka_unit_test(spawns_in_progress_have_a_limit),
		cmocka_unit_test(aborts_and_ready_count_once),
		cmocka_unit_test(step_that_ended_is_reported_as_not_ready),
		cmocka_unit_test(started_step_is_confirmed_to_the_node_that_asks),
		cmocka_unit_test(reports_are_plain_text),
		cmocka_unit_test(rank_that_gave_up_after_a_report_is_remembered),
		cmocka_unit_test(the_user_reads_each_report_once_and_few),
		cmocka_unit_test(notes_use_up_no_report),
		cmocka_unit_test(nonsense_breaks_the_link),
		cmocka_unit_test(names_of_a_spawned_step_are_its_parents),
		cmocka_unit_test(a_lost_parent_fails_what_waits_for_it),
		cmocka_unit_test(a_parent_that_is_gone_fails_the_request),
		cmocka_unit_test(names_of_pmix_are_not_those_of_pmi),
		cmocka_unit_test(a_lookup_of_pmix_may_wait),
		cmocka_unit_test(names_of_pmix_are_the_parents),
		cmocka_unit_test(a_step_that_has_ended_is_the_parents_news),
	};

	return cmocka_run_group_tests_name("launcher", tests, NULL, NULL);
}
