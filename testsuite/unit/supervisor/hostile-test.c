/* SPDX-License-Identifier: BSD-3-Clause */
/* An agent that is not ours, against the part of slurmstepd that answers it. */
#include "unit.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../agent/cluster.h"
#include "libconfine/host_msg.h"

#define FLOOD 4000 /* messages; no bucket lets this number pass */

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
			    fds->connect_back, fds->region, fds->pmix };

	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
		if (all[i] >= 0)
			close(all[i]);
}

/* Start the step with this in place of its agent. */
static void start(struct cluster *c,
		  int (*agent)(int, int, const struct agent_fds *))
{
	c->run = agent;
	cluster_start(c, 0);
	rank_register(c, 0);
	rank_say(c, 0, "cmd=init pmi_version=1 pmi_subversion=1");
}

/* As above, and wait for what is said. */
static void run(struct cluster *c,
		int (*agent)(int, int, const struct agent_fds *),
		const char *said)
{
	start(c, agent);
	cluster_expect_log(c, said);
	cluster_stop_all(c);
}

static int speaks_nonsense(int setup, int fd, const struct agent_fds *fds)
{
	say(fd, HOST_READY, HOST_VERSION, 0, "b");
	(void)send(fd, "\377\377", 2, MSG_NOSIGNAL);
	end(setup, fd, fds);
	return 0;
}

CLUSTER_TEST(nonsense_ends_the_step_by_name, 2)
{
	run(c, speaks_nonsense, "killed the agent of node n0: the agent sent an invalid message");
	assert_non_null(strstr(c->killed, "n0"));
}

static int dies(int setup, int fd, const struct agent_fds *fds)
{
	end(setup, fd, fds);
	return 0;
}

CLUSTER_TEST(a_silent_death_ends_the_step_by_name, 2)
{
	run(c, dies, "the agent of node n0 has died");
	assert_non_null(strstr(c->killed, "the agent of node n0 has died"));
}

static bool is_asked(void *arg)
{
	return ((struct cluster *)arg)->exits_asked > 0;
}

/* Why the step is ended when its agent dies, the host knowing this of the rank; "": not. */
static void die(int (*agent)(int, int, const struct agent_fds *),
		const struct pmi_exit *exit, unsigned exits_after,
		const char *why)
{
	struct cluster *c = cluster_new(2);

	c->exits = true;
	c->exit = *exit;
	c->exits_after = exits_after;
	start(c, agent);
	if (why[0])
		cluster_expect_log(c, why);
	else
		cluster_await(c, is_asked, c);
	cluster_stop_all(c);
	assert_int_equal(!!strstr(c->text, "has died"), why[0] != '\0');
	assert_int_equal(c->killed[0] != '\0', why[0] != '\0');
	unit_end(c);
}

static int is_ready_and_dies(int setup, int fd, const struct agent_fds *fds)
{
	say(fd, HOST_READY, HOST_VERSION, 0, "b");
	end(setup, fd, fds);
	return 0;
}

/* Before it has left slurmstepd's processes it is killed with them. */
TEST(a_death_with_the_step_is_no_fault)
{
	const struct pmi_exit lives = { .status = 0 };
	const struct pmi_exit ended = { .status = 9 };
	const struct pmi_exit killed = { .by_launcher = true };

	die(dies, &ended, 0, "");
	die(dies, &killed, UINT_MAX, "");
	die(dies, &lives, UINT_MAX, "the agent of node n0 has died");
	die(is_ready_and_dies, &ended, 0, "the agent of node n0 has died");
}

static int crashes(int setup, int fd, const struct agent_fds *fds)
{
	say(fd, HOST_CRASHED, 31, 59, "");
	end(setup, fd, fds);
	return 0;
}

CLUSTER_TEST(a_crash_is_told_with_its_signal, 2)
{
	run(c, crashes, "the agent of node n0 crashed: signal 31 in system call 59");
	assert_non_null(strstr(c->killed, "signal 31"));
}

static int is_of_another_release(int setup, int fd, const struct agent_fds *fds)
{
	say(fd, HOST_READY, HOST_VERSION + 1, 0, "b2\nforged");
	end(setup, fd, fds);
	return 0;
}

CLUSTER_TEST(another_release_is_named, 2)
{
	run(c, is_of_another_release, "pmi2x-agent (build b2?forged) has version");
	assert_non_null(strstr(c->killed, "install both from the same release"));
}

static int floods(int setup, int fd, const struct agent_fds *fds)
{
	say(fd, HOST_READY, HOST_VERSION, 0, "b");
	for (uint32_t i = 0; i < FLOOD; i++) {
		say(fd, HOST_LOG, LOG_LEVEL_ERROR, 0, "line\nerror: forged");
		say(fd, HOST_FIND, 1u << 31, 0, "");
		say(fd, HOST_FIND, 1, 0, "");
		say(fd, HOST_CONNECT_BACK, i, 0, "told");
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

CLUSTER_TEST(a_flood_is_bounded_and_one_reason_counts, 2)
{
	run(c, floods, "first?why");
	assert_string_equal(c->killed, "first?why");
	assert_null(strstr(c->text, "\nerror: forged"));
	assert_true(count(c->text, "line?error: forged") < FLOOD / 2);
	assert_true(c->tells < FLOOD / 2);
}

static struct cluster *its_cluster;

/* The agent ends when it reads LEAVE, unlike a process that is killed. */
static int hears_to_leave_and_stays(int setup, int fd, const struct agent_fds *fds)
{
	struct pollfd heard = { .fd = fd, .events = POLLIN };
	char room[HOST_MSG_MAX];
	struct host_msg m = { .type = HOST_READY };
	ssize_t n;

	say(fd, HOST_READY, HOST_VERSION, 0, "b");
	say(fd, HOST_STAYS, 0, 0, ""); /* nobody has asked it to leave */
	say(fd, HOST_LOG, LOG_LEVEL_ERROR, 0, "here");
	while (m.type != HOST_LEAVE && poll(&heard, 1, -1) == 1) {
		n = recv(fd, room, sizeof(room), 0);
		if (n <= 0 || host_msg_unpack(&m, room, (size_t)n))
			m.type = HOST_LEAVE;
	}
	say(fd, HOST_STAYS, 0, 0, "");
	cluster_expect_log(its_cluster, "did not end in time: the job is over");
	end(setup, fd, fds);
	return 0;
}

CLUSTER_TEST(an_agent_does_not_outstay_its_job, 2)
{
	c->job_is_over = true;
	its_cluster = c;
	start(c, hears_to_leave_and_stays);
	cluster_expect_log(c, "here");
	cluster_stop_all(c);
	assert_int_equal(c->job_asked, 1);
	assert_string_equal(c->killed, "");
}
