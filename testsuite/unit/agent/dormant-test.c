/* SPDX-License-Identifier: BSD-3-Clause */
/* The agent of a step that does not use PMI, and how it wakes up. */
#include "unit.h"

#include <arpa/inet.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cluster.h"
#include "libio/registration.h"
#include "libpmi/cause.h"
#include "srun/srun_server.h"

/* True: this process maps the memory that agents share with ranks. */
static bool shares_memory(void)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[4096];
	bool found = false;

	assert_non_null(maps);
	while (fgets(line, sizeof(line), maps))
		found |= strstr(line, "pmi2x-") != NULL;
	fclose(maps);
	return found;
}

CLUSTER_TEST(silent_ranks_share_no_memory, 1)
{
	cluster_start_all(c);
	rank_register(c, 0);
	assert_false(shares_memory());
	rank_say(c, 0, "cmd=init pmi_version=1 pmi_subversion=1");
	rank_expect(c, 0, "cmd=response_to_init");
	assert_true(shares_memory());
}

CLUSTER_TEST(ends_without_having_been_used, 5)
{
	cluster_start_all(c);
	rank_register(c, 1);
	rank_register(c, 2);
	rank_close(c, 2);
	for (uint32_t i = 0; i < 5; i++)
		cluster_stop(c, i);
	assert_string_equal(c->text, "");
}

/* Node 3 is between 0 and 4, and its rank has said nothing. */
CLUSTER_TEST(neighbours_wake_an_idle_agent, 5)
{
	cluster_start_all(c);
	rank_register(c, 3);
	for (uint32_t i = 0; i < 3; i++)
		rank_init(c, i);
	rank_init(c, 4);
	for (uint32_t i = 0; i < 5; i++) {
		if (i != 3)
			rank_say(c, i, "cmd=barrier_in");
	}
	rank_close(c, 3); /* so the barrier cannot succeed */
	for (uint32_t i = 0; i < 5; i++) {
		if (i != 3)
			rank_expect(c, i, "rank_3");
	}
}

CLUSTER_TEST(a_rank_that_died_before_fails_the_others, 2)
{
	cluster_start_all(c);
	rank_register(c, 1);
	rank_close(c, 1);
	rank_init(c, 0);
	rank_say(c, 0, "cmd=barrier_in");
	rank_expect(c, 0, "rank_1");
}

/* In a child: register, leave PMI_FD to a grandchild, and end. */
static void leave_pmi_fd_behind(int reg, int keep_open)
{
	char byte;
	int fd;

	if (registration_of_rank(reg, 0, &fd))
		_exit(1);
	if (fork() == 0)
		_exit(read(keep_open, &byte, 1) < 0);
	_exit(0);
}

/* The child is gone and reaped before the supervisor asks which process it was. */
TEST(a_grandchild_does_not_hide_an_early_death)
{
	struct cluster c;
	int status, keep[2];
	pid_t pid;

	assert_int_equal(pipe(keep), 0);
	cluster_open(&c, 2);
	cluster_start_all(&c);
	pid = fork();
	if (pid == 0) {
		close(keep[1]);
		leave_pmi_fd_behind(supervisor_registration_fd(c.agents[1]),
				    keep[0]);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	rank_init(&c, 0);
	rank_say(&c, 0, "cmd=barrier_in");
	rank_expect(&c, 0, "rank_1");
	close(keep[0]);
	close(keep[1]);
	cluster_close(&c);
}

/* A message of a rank is heard, though the rank has gone before there was a thread. */
CLUSTER_TEST(last_words_are_heard, 1)
{
	struct supervisor *a;

	a = cluster_prepare(c, 0);
	rank_register(c, 0);
	rank_say(c, 0, "cmd=init pmi_version=1 pmi_subversion=1\ncmd=abort");
	rank_close(c, 0);
	assert_int_equal(supervisor_run(a), 0);
	cluster_expect_log(c, "cannot reach srun");
}

CLUSTER_TEST(one_that_never_runs_can_be_stopped, 2)
{
	int fd;

	NOT_EMULATED("room for credentials alone in a message");
	cluster_prepare(c, 0);
	rank_register(c, 0);
	fd = c->pmi[0];
	cluster_stop(c, 0);
	assert_int_equal(read(fd, &fd, 1), 0); /* the rank is not left hanging */
}

/* A region that cannot be had shows only now: the step must not hang. */
CLUSTER_TEST(a_late_failure_ends_the_step, 1)
{
	char byte;

	c->options.region_size = 1; /* below what a region can be */
	cluster_start(c, 0);
	rank_register(c, 0);
	rank_say(c, 0, "cmd=init pmi_version=1 pmi_subversion=1");
	cluster_expect_log(c, "cannot start the agent of node n0");
	assert_true(read(c->pmi[0], &byte, 1) <= 0);
}

/* ---- a step that was spawned ---- */

static atomic_int polls;
static atomic_bool sleeps_on; /* the next who polls, until it is to end */
static atomic_int agents;

static int count_agent(int setup_fd, int host_fd, const struct agent_fds *fds)
{
	atomic_fetch_add(&agents, 1);
	return cluster_run_agent(setup_fd, host_fd, fds);
}

/* The only rank of the node has come and gone before the supervisor looks. */
static void open_spawned(struct cluster *c)
{
	cluster_open(c, 1);
	c->steps[0].spawned = true;
	c->run = count_agent;
	cluster_prepare(c, 0);
	rank_register(c, 0);
	rank_close(c, 0);
	atomic_store(&agents, 0);
}

/* The parents may wait for that rank. */
TEST(a_spawned_rank_that_ends_at_once_is_told_of)
{
	struct cluster c;

	open_spawned(&c);
	atomic_store(&sleeps_on, true);
	assert_int_equal(supervisor_run(c.agents[0]), 0);
	cluster_stop(&c, 0);
	assert_int_equal(atomic_load(&agents), 1);
	cluster_close(&c);
}

/* Slurm kills at the end of the last rank what slurmstepd has just started. */
TEST(no_agent_is_started_between_the_last_rank_and_the_end)
{
	struct cluster c;

	open_spawned(&c);
	atomic_store(&polls, 0);
	assert_int_equal(supervisor_run(c.agents[0]), 0);
	while (atomic_load(&polls) < 3) /* that it has come, has gone, and the next */
		sched_yield();
	assert_int_equal(atomic_load(&agents), 0);
	cluster_stop(&c, 0);
	assert_int_equal(atomic_load(&agents), 1);
	cluster_close(&c);
}

static void knock_at(uint16_t port)
{
	struct sockaddr_in to = {
		.sin_family = AF_INET, .sin_port = htons(port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0);
	close(fd);
}

/* As above, when the agent of another node calls then. */
CLUSTER_TEST(neighbour_starts_no_agent_after_the_last_rank, 2)
{
	pid_t pid;
	int seen, fd;

	c->steps[1].spawned = true;
	c->run = count_agent;
	cluster_prepare(c, 1);
	atomic_store(&agents, 0);
	pid = fork();
	if (pid == 0)
		_exit(registration_of_rank(supervisor_registration_fd(c->agents[1]), 0,
					   &fd) != 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	atomic_store(&polls, 0);
	assert_int_equal(supervisor_run(c->agents[1]), 0);
	while (atomic_load(&polls) < 3)
		sched_yield();
	seen = atomic_load(&polls);
	knock_at(cluster_port(c, 1));
	while (atomic_load(&polls) == seen && !atomic_load(&agents))
		sched_yield();
	assert_int_equal(atomic_load(&agents), 0);
	cluster_stop(c, 1);
	assert_int_equal(atomic_load(&agents), 1);
}

/* ---- an MPI program whose ranks do not speak ---- */

static const char UNSPOKEN[] = "none of the 1 ranks used PMI";

static void end_rank(struct cluster *c)
{
	rank_close(c, 0);
	cluster_stop(c, 0);
}

CLUSTER_TEST(silence_is_told_without_an_agent, 1)
{
	c->options.tell_unspoken = true;
	cluster_start(c, 0);
	rank_register(c, 0);
	rank_close(c, 0);
	cluster_expect_log(c, UNSPOKEN);
	assert_false(shares_memory());
}

/* The agent was started so that srun can ask it. */
CLUSTER_TEST(silence_is_told_by_the_agent, 1)
{
	static const struct srun_server_host host;
	struct srun_server *srun;

	srun = cluster_start_srun(c, &host);
	c->options.tell_unspoken = true;
	cluster_start(c, 0);
	rank_register(c, 0);
	while (!shares_memory())
		sched_yield();
	assert_null(strstr(c->text, UNSPOKEN));
	end_rank(c);
	assert_non_null(strstr(c->text, UNSPOKEN));
	cluster_stop_all(c);
	srun_server_stop(srun, 0);
}

CLUSTER_TEST(a_rank_that_speaks_is_not_told_of, 1)
{
	c->options.tell_unspoken = true;
	cluster_start(c, 0);
	rank_init(c, 0);
	rank_say(c, 0, "cmd=finalize");
	rank_expect(c, 0, "cmd=finalize_ack");
	end_rank(c);
	assert_string_equal(c->text, "");
}

/* ---- ranks that fail without PMI ---- */

static const char LACK[] =
	"rank 0 (node n0) exited with exit code 15 without starting PMI: an MPICH program fails so";

static void open_wrapped(struct cluster *c, enum cause_wrapper wrapper)
{
	cluster_open(c, 1);
	c->options.wrapper = wrapper;
}

TEST(failure_without_pmi_is_explained)
{
	struct cluster c;

	open_wrapped(&c, WRAPPER_PERHAPS);
	c.exits = true;
	c.exit.status = W_EXITCODE(15, 0);
	cluster_start(&c, 0);
	rank_register(&c, 0);
	rank_close(&c, 0);
	cluster_expect_log(&c, LACK);
	assert_false(shares_memory());
	cluster_close(&c);
}

/* Nobody has waited for the process, so only the kernel knows its exit code. */
TEST(failure_of_an_ending_process_is_explained)
{
	struct cluster c;
	int status, fd;
	pid_t pid;

	open_wrapped(&c, WRAPPER_PERHAPS);
	cluster_start(&c, 0);
	pid = fork();
	if (pid == 0)
		_exit(registration_of_rank(supervisor_registration_fd(c.agents[0]), 0, &fd) ?
			      1 : 15);
	cluster_expect_log(&c, LACK);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	cluster_close(&c);
}

TEST(failure_of_an_mpi_program_is_not_explained)
{
	struct cluster c;

	open_wrapped(&c, WRAPPER_NONE);
	c.exits = true;
	c.exit.status = W_EXITCODE(15, 0);
	cluster_start(&c, 0);
	rank_register(&c, 0);
	end_rank(&c);
	assert_string_equal(c.text, "");
	cluster_close(&c);
}

/* ---- without descriptors ---- */

/* Stands for the C library's in this program: counts, and waits as it does. */
int poll(struct pollfd *fds, nfds_t n, int timeout_ms)
{
	struct timespec limit = {
		.tv_sec = timeout_ms / 1000,
		.tv_nsec = timeout_ms % 1000 * 1000000L,
	};

	atomic_fetch_add(&polls, 1);
	if (atomic_exchange(&sleeps_on, false)) /* the first is what wakes it at the end */
		(void)syscall(SYS_ppoll, fds, 1, NULL, NULL, 0);
	return (int)syscall(SYS_ppoll, fds, n, timeout_ms < 0 ? NULL : &limit,
			    NULL, 0);
}

/* A message without a descriptor wakes the agent, which goes on waiting. */
static void wake(struct cluster *c)
{
	int unread = 1, reg = supervisor_registration_fd(c->agents[0]);
	uint32_t slot = 0;

	assert_int_equal(send(reg, &slot, sizeof(slot), 0), sizeof(slot));
	while (unread) {
		assert_int_equal(ioctl(reg, SIOCOUTQ, &unread), 0);
		sched_yield();
	}
}

/* Each wake-up is one poll, and the end of what the rank says is another. */
CLUSTER_TEST(a_rank_that_says_it_is_silent_costs_nothing, 1)
{
	const int wakes = 100;

	cluster_prepare(c, 0);
	rank_register(c, 0);
	assert_int_equal(shutdown(c->pmi[0], SHUT_WR), 0);
	atomic_store(&polls, 0);
	assert_int_equal(supervisor_run(c->agents[0]), 0);
	for (int i = 0; i < wakes; i++)
		wake(c);
	assert_true(atomic_load(&polls) <= wakes + 3);
}

/* Lowered to what poll refuses, while no descriptor is lacking. */
CLUSTER_TEST(too_few_for_poll_end_the_step, 1)
{
	struct rlimit before, few;

	cluster_start_all(c);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	few = before;
	few.rlim_cur = 4; /* one rank, and four other descriptors */
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	wake(c);
	cluster_expect_log(c, "raise LimitNOFILE");
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	cluster_stop_all(c);
	assert_non_null(strstr(c->killed, "node n0"));
}

/* As registration_of_rank does, which needs descriptors itself. */
static void send_rank(int registration, int fd)
{
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(int))] = { 0 };
	uint32_t slot = 0;
	struct iovec iov = { &slot, sizeof(slot) };
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof(control),
	};
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &fd, sizeof(int));
	assert_int_equal(sendmsg(registration, &msg, 0), sizeof(slot));
}

/* A rank comes when this process, and so the agent, can open nothing more. */
static void send_rank_with_none_left(struct cluster *c)
{
	struct rlimit before, none;
	int pair[2], next;
	char byte;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	next = dup(pair[0]); /* the lowest that is free */
	assert_true(next >= 0);
	close(next);
	none = before;
	none.rlim_cur = (rlim_t)next;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	send_rank(supervisor_registration_fd(c->agents[0]), pair[0]);
	cluster_expect_log(c, "raise LimitNOFILE");
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	close(pair[0]);
	assert_int_equal(read(pair[1], &byte, 1), 0); /* no process has the other end */
	close(pair[1]);
}

CLUSTER_TEST(a_rank_that_cannot_be_taken_ends_the_step, 1)
{
	cluster_start_all(c);
	send_rank_with_none_left(c);
	cluster_stop_all(c);
	assert_non_null(strstr(c->killed, "node n0"));
}

CLUSTER_TEST(a_later_rank_that_cannot_be_taken_ends_the_step, 1)
{
	char byte;

	cluster_start_all(c);
	rank_init(c, 0);
	send_rank_with_none_left(c);
	assert_int_equal(read(c->pmi[0], &byte, 1), 0); /* the other ranks know */
	cluster_stop_all(c);
	assert_non_null(strstr(c->killed, "node n0 cannot accept the connection"));
}
