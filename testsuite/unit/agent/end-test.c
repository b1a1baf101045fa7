/* SPDX-License-Identifier: BSD-3-Clause */
/* Agents: ends of ranks and nodes, draining. */
#include "unit.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cluster.h"
#include "libio/peer.h"
#include "libio/registration.h"

#define PATIENCE_S 60 /* limit: the test hangs */

/* ---- ends of ranks ---- */

static void line_to_child(int fd, const char *line)
{
	if (write(fd, line, strlen(line)) < 0)
		_exit(1);
}

/* Run in a child: register as node 2's rank, init, then die as told. */
static void die_as_rank(int reg, bool grandchild, int keep_open)
{
	char got[256];
	int fd;

	if (registration_of_rank(reg, 0, &fd))
		_exit(1);
	line_to_child(fd, "cmd=init pmi_version=1 pmi_subversion=1\n");
	if (read(fd, got, sizeof(got)) <= 0)
		_exit(1);
	if (grandchild && fork() == 0) {
		while (read(keep_open, got, 1) > 0)
			;
		_exit(0);
	}
	_exit(0);
}

static void a_death_fails_the_barrier(bool grandchild)
{
	struct cluster c;
	int keep[2];
	pid_t pid;

	assert_int_equal(pipe(keep), 0);
	cluster_open(&c, 5);
	cluster_start_all(&c);
	for (uint32_t i = 0; i < 5; i++) {
		if (i != 2)
			rank_init(&c, i);
	}
	for (uint32_t i = 0; i < 5; i++) {
		if (i != 2)
			rank_say(&c, i, "cmd=barrier_in");
	}
	pid = fork();
	if (pid == 0) {
		close(keep[1]);
		die_as_rank(supervisor_registration_fd(c.agents[2]), grandchild,
			    keep[0]);
	}
	for (uint32_t i = 0; i < 5; i++) {
		if (i != 2)
			rank_expect(&c, i, "rank_2"); /* PMI-1 has no spaces */
	}
	waitpid(pid, NULL, 0);
	close(keep[0]);
	close(keep[1]);
	cluster_close(&c);
}

#define PEER_PIDFD 77 /* SO_PEERPIDFD */

static bool no_pidfds; /* of other processes than this */

/* As on a kernel without pidfds. */
int getsockopt(int fd, int level, int name, void *value, socklen_t *len)
{
	struct ucred peer;

	if (no_pidfds && level == SOL_SOCKET && name == PEER_PIDFD &&
	    !peer_credentials(fd, &peer) && peer.pid != getpid()) {
		errno = ENOSYS;
		return -1;
	}
	return (int)syscall(SYS_getsockopt, fd, level, name, value, len);
}

static void host_knows_end(struct cluster *c)
{
	pthread_mutex_lock(&c->lock);
	c->exits_after = 0;
	pthread_mutex_unlock(&c->lock);
}

/* A child of the rank keeps the rank's connection open. */
TEST(without_pidfds_the_host_says_that_a_rank_has_ended)
{
	struct cluster c;
	int keep[2];
	pid_t pid;

	no_pidfds = true;
	assert_int_equal(pipe(keep), 0);
	cluster_open(&c, 3);
	c.exits_after = UINT_MAX;
	c.exit.status = W_EXITCODE(5, 0);
	for (uint32_t i = 0; i < 3; i++) {
		c.exits = i == 2; /* only there */
		cluster_start(&c, i);
	}
	for (uint32_t i = 0; i < 2; i++)
		rank_init(&c, i);
	for (uint32_t i = 0; i < 2; i++)
		rank_say(&c, i, "cmd=barrier_in");
	pid = fork();
	if (pid == 0) {
		close(keep[1]);
		die_as_rank(supervisor_registration_fd(c.agents[2]), true, keep[0]);
	}
	waitpid(pid, NULL, 0);
	host_knows_end(&c);
	for (uint32_t i = 0; i < 2; i++)
		rank_expect(&c, i, "rank_2_(node_n2)_exited_with_exit_code_5");
	close(keep[0]);
	close(keep[1]);
	cluster_close(&c);
	no_pidfds = false;
}

TEST(a_dead_rank_fails_the_others)
{
	a_death_fails_the_barrier(false);
}

TEST(a_grandchild_does_not_hide_a_death)
{
	a_death_fails_the_barrier(true);
}

CLUSTER_TEST(a_slot_is_registered_once, 1)
{
	char got[10];
	int reg, fd;

	cluster_start_all(c);
	rank_init(c, 0);
	reg = supervisor_registration_fd(c->agents[0]);
	assert_int_equal(registration_of_rank(reg, 0, &fd), 0);
	assert_int_equal(read(fd, got, sizeof(got)), 0); /* closed */
	close(fd);
	assert_int_equal(registration_of_rank(reg, 1, &fd), 0);
	assert_int_equal(read(fd, got, sizeof(got)), 0);
	close(fd);
	cluster_expect_log(c, "local rank 0: that rank has registered already");
	cluster_expect_log(c, "local rank 1: the node has no such rank");
	rank_say(c, 0, "cmd=barrier_in");
	rank_expect(c, 0, "cmd=barrier_out"); /* unharmed */
}

CLUSTER_TEST(a_rank_that_does_not_read_is_dropped_alone, 1)
{
	int sent = 0;

	cluster_start_all(c);
	rank_init(c, 0);
	while (send(c->pmi[0], "cmd=get_maxes\n", 14,
		    MSG_NOSIGNAL | MSG_DONTWAIT) == 14 && sent < 10000000)
		sent++;
	assert_true(sent < 10000000); /* the agent has stopped reading */
}

/* Each byte takes as much of a socket's room as a small message. */
CLUSTER_TEST(a_request_comes_byte_by_byte, 1)
{
	static const char put[] = "cmd=put kvsname=7.0 key=k value=";
	char line[1000];

	memset(line, 'v', sizeof(line));
	memcpy(line, put, sizeof(put) - 1);
	line[sizeof(line) - 1] = '\n';
	cluster_start_all(c);
	cluster_init_all(c);
	for (size_t i = 0; i < sizeof(line); i++)
		assert_int_equal(write(c->pmi[0], &line[i], 1), 1);
	rank_expect(c, 0, "rc=0");
}

/* ---- ends of nodes ---- */

/* The parent leaves as soon as its own rank is done: the children lose nothing. */
TEST(a_leaving_node_owes_nothing)
{
	for (int round = 0; round < 20; round++) {
		struct cluster c;

		cluster_open(&c, 5);
		cluster_start_all(&c);
		cluster_init_all(&c);
		for (uint32_t i = 0; i < 5; i++)
			rank_say(&c, i, "cmd=barrier_in");
		rank_expect(&c, 0, "cmd=barrier_out");
		rank_say(&c, 0, "cmd=finalize");
		rank_close(&c, 0);
		cluster_stop(&c, 0);
		for (uint32_t i = 1; i < 5; i++)
			rank_expect(&c, i, "cmd=barrier_out");
		for (uint32_t i = 1; i < 5; i++)
			rank_say(&c, i, "cmd=barrier_in");
		for (uint32_t i = 1; i < 5; i++)
			rank_expect(&c, i, "barrier_failed");
		cluster_close(&c);
		assert_null(strstr(c.text, "lost the connection"));
	}
}

static void *stop_node_1(void *arg)
{
	cluster_stop(arg, 1);
	return NULL;
}

static bool is_staying(void *arg)
{
	return ((struct cluster *)arg)->job_asked > 0;
}

/* Nodes 2 and 4 speak by way of 1, whose rank has ended. */
CLUSTER_TEST(a_node_stays_as_long_as_others_need_it, 5)
{
	pthread_t stop;

	c->options.stays = true;
	c->options.drain_ms = 50;
	cluster_start_pmi(c);
	rank_say(c, 1, "cmd=finalize");
	rank_close(c, 1);
	assert_int_equal(pthread_create(&stop, NULL, stop_node_1, c), 0);
	cluster_await(c, is_staying, c);
	rank_say(c, 2, "cmd=barrier_in group=2,4:7");
	rank_say(c, 4, "cmd=barrier_in group=2,4:7");
	rank_expect(c, 2, "cmd=barrier_out rc=0 tag=7");
	rank_expect(c, 4, "cmd=barrier_out rc=0 tag=7");
	for (uint32_t i = 5; i-- > 0;) { /* nodes below leave first */
		rank_close(c, i);
		cluster_stop(c, i);
	}
	pthread_join(stop, NULL);
	cluster_stop_all(c);
	assert_string_equal(c->text, "");
}

static unsigned threads(void)
{
	DIR *d = opendir("/proc/self/task");
	unsigned n = 0;

	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

static unsigned descriptors(void)
{
	DIR *d = opendir("/proc/self/fd");
	unsigned n = 0;

	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

/* The kernel lists a thread a moment longer than pthread_join waits for it. */
static void await_threads(unsigned count)
{
	alarm(PATIENCE_S);
	while (threads() != count)
		sched_yield();
	alarm(0);
}

TEST(nothing_is_left_behind)
{
	unsigned before = descriptors(), alone = threads();
	struct cluster c;

	NOT_EMULATED("threads of a process, its own apart");
	cluster_open(&c, 5); /* never used: stops at once */
	cluster_start_all(&c);
	cluster_close(&c);
	assert_int_equal(descriptors(), before);
	await_threads(alone);

	cluster_open(&c, 5);
	cluster_start_pmi(&c);
	cluster_close(&c);
	assert_int_equal(descriptors(), before);
	await_threads(alone);
}
