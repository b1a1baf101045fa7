/* SPDX-License-Identifier: BSD-3-Clause */
/* Programs that srun spawns for ranks: their start, their end, and names between steps. */
#include "bed.h"

#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libpmi/names.h"

static void request_spawn(struct agent *a, const char *program, uint32_t id)
{
	struct spawn_request *s = spawn_new();
	struct control_msg msg = { .type = CONTROL_SPAWN, .id = id };
	struct buf body;

	spawn_add_command(s);
	spawn_set_program(s, program, strlen(program));
	spawn_set_nprocs(s, 1);
	buf_init(&body, CONTROL_BODY_MAX);
	spawn_pack(&body, s);
	msg.body = body.data;
	msg.body_len = body.len;
	agent_send(a, &msg);
	buf_free(&body);
	spawn_free(s);
}

/* Spawn and return the code of the answer. */
static int spawn(struct agent *a, const char *program)
{
	unsigned before = a->replies;

	request_spawn(a, program, 0);
	await_replies(a, before + 1);
	return a->reply.code;
}

/* A step with an agent; what it spawns may stay until hold[1] is closed. */
static void start_holding(struct srun *s, struct agent *a, int hold[2])
{
	assert_int_equal(pipe(hold), 0);
	s->hold = hold[0];
	start(&s->server, s, "1.0", -1);
	agent_connect(a, s->server, "1.0", &secret);
}

TEST(a_spawn_that_ends_early_is_answered)
{
	struct srun s = { 0 };
	struct agent a;

	start(&s.server, &s, "1.0", -1);
	agent_connect(&a, s.server, "1.0", &secret);
	assert_int_equal(spawn(&a, "brief"), 0); /* it was there, then failed */
	assert_string_equal(a.reply.text, "1.9");
	assert_int_not_equal(spawn(&a, "fails"), 0);
	assert_string_equal(a.reply.text, "srun ended with exit code 3 before "
			    "the first process started");
	assert_int_not_equal(spawn(&a, "killed"), 0);
	assert_string_equal(a.reply.text, "srun was killed by signal 9 before "
			    "the first process started");
	assert_int_not_equal(spawn(&a, "unstartable"), 0);
	assert_int_equal(spawn(&a, "quiet"), 0);
	assert_int_equal(waitpid(s.pid, NULL, WNOHANG), -1); /* reaped */
	agent_leave(&a);
	srun_server_stop(s.server, 0);
}

TEST(a_spawned_step_that_never_starts_is_no_success)
{
	struct control_msg ready = {
		.type = CONTROL_READY, .code = 1, .text = "rank 0 has ended",
	};
	struct srun s = { 0 };
	struct agent a, b;
	int hold[2];

	start_holding(&s, &a, hold);
	request_spawn(&a, "step", 5);
	assert_int_not_equal(ask(&a, CONTROL_LOOKUP, "a", NULL), 0); /* that waits */
	agent_connect(&b, s.spawned, "1.1", &secret);
	agent_send(&b, &ready);
	await_replies(&a, 2);
	assert_int_equal(a.reply.id, 5);
	assert_int_not_equal(a.reply.code, 0);
	assert_string_equal(a.reply.text, "rank 0 has ended");
	agent_leave(&b);
	srun_server_stop(s.spawned, 0);
	agent_leave(&a);
	close(hold[1]);
	srun_server_stop(s.server, UINT32_MAX);
	close(hold[0]);
}

TEST(a_spawned_step_uses_its_parents_names)
{
	const struct control_msg ready = { .type = CONTROL_READY };
	struct srun s = { 0 };
	struct agent a, b;
	int hold[2];

	start_holding(&s, &a, hold);
	assert_int_equal(ask(&a, CONTROL_PUBLISH, "before", "p"), 0);

	/* The answer comes when the first process of the step is there. */
	request_spawn(&a, "step", 5);
	assert_int_equal(ask(&a, CONTROL_LOOKUP, "before", NULL), 0);

	agent_connect(&b, s.spawned, "1.1", &secret);
	agent_send(&b, &ready);
	await_replies(&a, 3);
	assert_int_equal(a.reply.id, 5);
	assert_int_equal(a.reply.code, 0);
	assert_string_equal(a.reply.text, "1.1");

	assert_int_equal(ask(&b, CONTROL_LOOKUP, "before", NULL), 0);
	assert_string_equal(b.reply.text, "p");
	assert_int_equal(ask(&b, CONTROL_PUBLISH, "after", "q"), 0);
	assert_int_equal(ask(&a, CONTROL_LOOKUP, "after", NULL), 0);
	assert_string_equal(a.reply.text, "q");
	assert_int_not_equal(ask(&b, CONTROL_PUBLISH, "after", "r"), 0);

	agent_leave(&b);
	srun_server_stop(s.spawned, 0);
	assert_int_equal(ask(&a, CONTROL_LOOKUP, "after", NULL), 0);
	agent_leave(&a);
	close(hold[1]); /* the spawned process ends */
	srun_server_stop(s.server, UINT32_MAX);
	close(hold[0]);
}

TEST(names_fail_when_the_parent_is_gone)
{
	const struct control_msg lookup = {
		.type = CONTROL_LOOKUP, .name = "a",
	};
	struct srun s = { 0 };
	struct agent a;
	int pair[2];
	char first;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0,
				    pair), 0);
	start(&s.server, &s, "1.1", pair[1]);
	agent_connect(&a, s.server, "1.1", &secret);
	agent_send(&a, &lookup);
	assert_int_equal(read(pair[0], &first, 1), 1); /* it asks */
	close(pair[0]);
	await_replies(&a, 1);
	assert_int_not_equal(a.reply.code, 0);
	assert_int_not_equal(ask(&a, CONTROL_LOOKUP, "a", NULL), 0);
	agent_leave(&a);
	srun_server_stop(s.server, 0);
}

/* ---- who waits for a step that has ended ---- */

/* A look-up of PMIx for what the namespace is to publish. */
static void wait_for_namespace(struct agent *a, const char *waiting, const char *nspace)
{
	struct names_item item = { .key = "x", .from.nspace = nspace };
	const struct names_request r = {
		.op = NAMES_LOOKUP, .range = NAMES_OF_SESSION, .items = &item,
		.count = 1, .wait = 1,
	};
	struct control_msg msg = {
		.type = CONTROL_NAMES, .name = (char *)waiting, .text = (char *)"n0",
	};
	struct buf b;

	buf_init(&b, NAMES_BYTES_MAX);
	assert_int_equal(names_pack_request(&b, &r), 0);
	msg.body = b.data;
	msg.body_len = b.len;
	agent_send(a, &msg);
	buf_free(&b);
}

TEST(a_spawned_step_that_ends_is_not_waited_for)
{
	struct srun s = { 0 };
	struct agent a;
	int hold[2];

	start_holding(&s, &a, hold);
	assert_int_equal(spawn(&a, "runs"), 0); /* its step is 1.9 */
	wait_for_namespace(&a, "pmi2x.1.0", "pmi2x.1.9");
	assert_int_not_equal(ask(&a, CONTROL_LOOKUP, "a", NULL), 0); /* that waits */
	close(hold[1]);
	await_replies(&a, a.replies + 1);
	agent_leave(&a);
	srun_server_stop(s.server, 0);
	assert_int_equal(s.reports, 1);
	assert_string_equal(s.text, "pmi2x.1.0 cannot connect with pmi2x.1.9, which ended before the connection was made");
	close(hold[0]);
}

/* A step that never used PMI has no name. */
TEST(a_spawned_step_without_a_name_is_not_waited_for)
{
	struct srun s = { 0 };
	struct agent a;

	start(&s.server, &s, "1.0", -1);
	agent_connect(&a, s.server, "1.0", &secret);
	assert_int_equal(spawn(&a, "ends well"), 0);
	wait_for_namespace(&a, "pmi2x.1.0", "pmi2x.");
	await_replies(&a, a.replies + 1);
	agent_leave(&a);
	srun_server_stop(s.server, 0);
	assert_string_equal(s.text, "pmi2x.1.0 cannot connect with pmi2x., which ended before the connection was made");
}

static void *stop(void *server)
{
	srun_server_stop(server, UINT32_MAX);
	return NULL;
}

TEST(the_spawning_step_that_ends_is_not_waited_for)
{
	const struct control_msg ready = { .type = CONTROL_READY };
	struct srun s = { 0 };
	struct agent a, b;
	pthread_t thread;
	int hold[2];

	start_holding(&s, &a, hold);
	request_spawn(&a, "step", 5);
	assert_int_not_equal(ask(&a, CONTROL_LOOKUP, "a", NULL), 0);
	agent_connect(&b, s.spawned, "1.1", &secret);
	agent_send(&b, &ready);
	await_replies(&a, a.replies + 1);
	wait_for_namespace(&b, "pmi2x.1.1", "pmi2x.1.0");
	agent_leave(&a);
	assert_int_equal(pthread_create(&thread, NULL, stop, s.server), 0);
	await_replies(&b, 1); /* while srun waits for the spawned step */
	agent_leave(&b);
	srun_server_stop(s.spawned, 0);
	close(hold[1]);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_string_equal(s.text, "pmi2x.1.1 cannot connect with pmi2x.1.0, which ended before the connection was made");
	close(hold[0]);
}

/*
 * The step ends while a program that it has spawned still runs: one that has started
 * PMI, or one that has not.
 */
static void end_before_a_child(bool ready, uint32_t wait_ms)
{
	struct srun s = { 0 };
	struct agent a;
	int hold[2];

	start_holding(&s, &a, hold);
	if (ready)
		assert_int_equal(spawn(&a, "runs"), 0);
	else
		request_spawn(&a, "stays", 0);
	assert_int_not_equal(ask(&a, CONTROL_LOOKUP, "a", NULL), 0);
	agent_leave(&a);
	srun_server_stop(s.server, wait_ms);
	assert_int_equal(waitpid(s.pid, NULL, WNOHANG), -1); /* reaped */
	close(hold[0]);
	close(hold[1]);
}

TEST(children_that_stay_are_terminated)
{
	end_before_a_child(true, 0);
}

/* The spawn has no answer: the rank that asked for it is dead. */
TEST(a_child_that_nobody_waits_for_is_terminated)
{
	end_before_a_child(false, UINT32_MAX);
}

int main(void)
{
	return unit_run(NULL, set_up, tear_down);
}
