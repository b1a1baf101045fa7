/* SPDX-License-Identifier: BSD-3-Clause */
/* An agent that is not ours, against the part of slurmstepd that answers it. */
#include "unit.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agent-cluster.h"
#include "agent/host_msg.h"

#define FLOOD 4000 /* messages; no bucket lets so many pass */

static void say(int fd, enum host_type type, uint32_t number, int32_t code,
		const char *text)
{
	const struct host_msg m = { type, number, code, text, strlen(text) };
	struct pollfd room = { .fd = fd, .events = POLLOUT };

	while (host_msg_send(fd, &m) == -EAGAIN)
		poll(&room, 1, -1);
}

static void end(int setup_fd, int fd, const struct agent_fds *fds)
{
	const int all[] = { setup_fd, fd, fds->registration, fds->listener,
			    fds->tell, fds->region };

	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
		if (all[i] >= 0)
			close(all[i]);
}

/* Start the step with this in place of its agent, and wait for what is said. */
static void run(struct cluster *c,
		int (*agent)(int, int, const struct agent_fds *),
		const char *said)
{
	cluster_open(c, 2);
	c->run = agent;
	cluster_start(c, 0);
	rank_register(c, 0);
	rank_say(c, 0, "cmd=init pmi_version=1 pmi_subversion=1");
	cluster_expect_log(c, said);
	cluster_close(c);
}

static int speaks_nonsense(int setup, int fd, const struct agent_fds *fds)
{
	say(fd, HOST_READY, HOST_VERSION, 0, "b");
	(void)send(fd, "\377\377", 2, MSG_NOSIGNAL);
	end(setup, fd, fds);
	return 0;
}

static void nonsense_ends_the_step_by_name(void **state)
{
	struct cluster c;

	run(&c, speaks_nonsense, "node n0 sends what makes no sense");
	assert_non_null(strstr(c.killed, "n0"));
}

static int dies(int setup, int fd, const struct agent_fds *fds)
{
	end(setup, fd, fds);
	return 0;
}

static void a_silent_death_ends_the_step_by_name(void **state)
{
	struct cluster c;

	run(&c, dies, "the agent of node n0 has died");
	assert_non_null(strstr(c.killed, "the agent of node n0 has died"));
}

static int crashes(int setup, int fd, const struct agent_fds *fds)
{
	say(fd, HOST_CRASHED, 31, 59, "");
	end(setup, fd, fds);
	return 0;
}

static void a_crash_is_told_with_its_signal(void **state)
{
	struct cluster c;

	run(&c, crashes, "the agent of node n0 crashed: signal 31 in system call 59");
	assert_non_null(strstr(c.killed, "signal 31"));
}

static int is_of_another_release(int setup, int fd, const struct agent_fds *fds)
{
	say(fd, HOST_READY, HOST_VERSION + 1, 0, "b2\nforged");
	end(setup, fd, fds);
	return 0;
}

static void another_release_is_named(void **state)
{
	struct cluster c;

	run(&c, is_of_another_release, "pmi2x-agent (build b2?forged) speaks version");
	assert_non_null(strstr(c.killed, "install both of one release"));
}

static int floods(int setup, int fd, const struct agent_fds *fds)
{
	say(fd, HOST_READY, HOST_VERSION, 0, "b");
	for (uint32_t i = 0; i < FLOOD; i++) {
		say(fd, HOST_LOG, LOG_LEVEL_ERROR, 0, "line\nerror: forged");
		say(fd, HOST_FIND, 1u << 31, 0, "");
		say(fd, HOST_FIND, 1, 0, "");
		say(fd, HOST_TELL, i, 0, "told");
		say(fd, HOST_HOW_ENDED, UINT32_MAX, 0, "");
		say(fd, HOST_FOUND, 0, 0, "");
	}
	say(fd, HOST_KILL, 0, 0, "first\nwhy");
	say(fd, HOST_KILL, 0, 0, "second");
	say(fd, HOST_END, 0, 0, "");
	end(setup, fd, fds);
	return 0;
}

static unsigned count(const char *in, const char *what)
{
	unsigned n = 0;

	while ((in = strstr(in, what))) {
		in += strlen(what);
		n++;
	}
	return n;
}

static void a_flood_is_bounded_and_one_reason_counts(void **state)
{
	struct cluster c;

	run(&c, floods, "first?why");
	assert_string_equal(c.killed, "first?why");
	assert_null(strstr(c.text, "\nerror: forged"));
	assert_true(count(c.text, "line?error: forged") < FLOOD / 2);
	assert_true(c.tells < FLOOD / 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nonsense_ends_the_step_by_name),
		cmocka_unit_test(a_silent_death_ends_the_step_by_name),
		cmocka_unit_test(a_crash_is_told_with_its_signal),
		cmocka_unit_test(another_release_is_named),
		cmocka_unit_test(a_flood_is_bounded_and_one_reason_counts),
	};

	return cmocka_run_group_tests_name("starter-hostile", tests, NULL, NULL);
}
