/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages of the supervisor to an agent that does not read for a while, and what it does
 * with descriptors that it is sent. A wait here ends by the alarm.
 */
#include "unit.h"

#include <semaphore.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "libconfine/host_msg.h"
#include "libio/registration.h"
#include "../io/lingering.h"
#include "supervisor/supervisor.h"

#define RANKS 600   /* more than a socket holds messages */
#define PATIENCE 120 /* seconds */

static struct node {
	struct layout *layout;
	struct pmi_step step;
	struct supervisor *supervisor;
	struct log_hook log;
	int rank;             /* PMI_FD of rank 0 */
	bool asked[RANKS];    /* how has it ended? */
	uint32_t nasked;
	sem_t all_asked;      /* ... each */
	sem_t killed;
	sem_t given;          /* the descriptor */
	char why[LOG_LINE_MAX];
	struct lingering descriptor;
	/* Messages that the agent has heard. */
	bool ended[RANKS];
	bool left_after_all;
	uint32_t nended;
} node;

static void keep_line(void *arg, enum log_level level, const char *text)
{
}

static int no_address(void *arg, uint32_t node_id, bool may_block,
		      struct sockaddr_storage *out)
{
	return -1;
}

static void keep_why(void *arg, const char *why)
{
	snprintf(node.why, sizeof(node.why), "%s", why);
	sem_post(&node.killed);
}

static bool rank_has_ended(void *arg, uint32_t slot, struct pmi_exit *end)
{
	if (!node.asked[slot]) {
		node.asked[slot] = true;
		if (++node.nasked == RANKS)
			sem_post(&node.all_asked);
	}
	*end = (struct pmi_exit){ .status = (int)slot };
	return true;
}

static void describe(void)
{
	static uint32_t ranks[RANKS];
	static const uint32_t count = RANKS;
	static const uint32_t *all[] = { ranks };
	static const char *const names[] = { "n0" };

	memset(&node, 0, sizeof(node));
	alarm(PATIENCE);
	for (uint32_t i = 0; i < RANKS; i++)
		ranks[i] = i;
	assert_int_equal(layout_create(&node.layout, 1, RANKS, &count, all), 0);
	node.step = (struct pmi_step){
		.jobid = "1.0", .layout = node.layout, .build = "b",
		.node_names = names,
	};
	node.log = (struct log_hook){ keep_line, &node };
	sem_init(&node.all_asked, 0, 0);
	sem_init(&node.killed, 0, 0);
	sem_init(&node.given, 0, 0);
}

/* Rank 0 registers; the step has this agent, or none that can be started. */
static void start(int (*agent)(int, int, const struct agent_fds *))
{
	const struct supervisor_host host = {
		.node_address = no_address, .kill_step = keep_why,
		.rank_exit = rank_has_ended,
	};
	struct supervisor_options options = {
		.program = { .fd = -1, .run = agent }, .connect_back_fd = -1,
	};

	describe();
	agent_options_init(&options.agent);
	options.agent.region_size = 0;
	assert_int_equal(supervisor_prepare(&node.supervisor, &node.step, &options,
					    &host,
					 &node.log), 0);
	assert_int_equal(registration_of_rank(supervisor_registration_fd(node.supervisor), 0,
					      &node.rank), 0);
}

static void stop(void)
{
	assert_int_equal(supervisor_stop(node.supervisor), 0);
	layout_destroy(node.layout);
	close(node.rank);
}

static void say(int fd, enum host_type type, uint32_t number)
{
	const struct host_msg m = { .type = type, .number = number };

	assert_int_equal(host_msg_send_wait(fd, &m), 0);
}

static int end(int setup, int fd, const struct agent_fds *fds)
{
	close(setup);
	close(fd);
	close(fds->registration);
	return 0;
}

/* ---- answers ---- */

static void hear_ended(const struct host_msg *m)
{
	assert_true(m->number < RANKS && !node.ended[m->number]);
	assert_int_equal(m->code, m->number);
	node.ended[m->number] = true;
	node.nended++;
}

/* Reads when all answers have been made. */
static sem_t may_read;

static int asks_and_reads_late(int setup, int fd, const struct agent_fds *fds)
{
	struct host_msg m = { .type = HOST_READY };
	char room[HOST_MSG_MAX];

	say(fd, HOST_READY, HOST_VERSION);
	for (uint32_t i = 0; i < RANKS; i++)
		say(fd, HOST_HOW_ENDED, i);
	sem_wait(&may_read);
	while (m.type != HOST_LEAVE) {
		ssize_t n = recv(fd, room, sizeof(room), 0);

		assert_true(n > 0);
		assert_int_equal(host_msg_unpack(&m, room, (size_t)n), 0);
		if (m.type == HOST_ENDED)
			hear_ended(&m);
	}
	node.left_after_all = node.nended == RANKS;
	say(fd, HOST_END, 0);
	return end(setup, fd, fds);
}

/* All have ended, and each answer was made, before the agent reads the first. */
TEST(no_rank_end_is_lost_while_the_agent_does_not_read)
{
	sem_init(&may_read, 0, 0);
	start(asks_and_reads_late);
	assert_int_equal(send(node.rank, "x", 1, 0), 1);
	assert_int_equal(supervisor_run(node.supervisor), 0);
	sem_wait(&node.all_asked);
	sem_post(&may_read);
	stop();
	assert_int_equal(node.nended, RANKS);
	assert_true(node.left_after_all);
	assert_string_equal(node.why, "");
}

/* ---- descriptors ---- */

static int sends_descriptor(int setup, int fd, const struct agent_fds *fds)
{
	say(fd, HOST_READY, HOST_VERSION);
	lingering_give(&node.descriptor, fd, "x", 1);
	while (sem_wait(&may_read))
		;
	return end(setup, fd, fds);
}

/* The message is not received, so nothing waits for the descriptor's close. */
TEST(descriptor_of_the_agent_does_not_stop_the_supervisor)
{
	sem_init(&may_read, 0, 0);
	start(sends_descriptor);
	lingering_open(&node.descriptor);
	assert_int_equal(send(node.rank, "x", 1, 0), 1);
	assert_int_equal(supervisor_run(node.supervisor), 0);
	sem_wait(&node.killed);
	assert_non_null(strstr(node.why, "the agent of node n0 has died"));
	sem_post(&may_read);
	stop();
	lingering_close(&node.descriptor);
}

/* The rank is refused, and its message with it. */
TEST(descriptor_of_a_rank_does_not_stop_the_supervisor)
{
	start(NULL);
	lingering_open(&node.descriptor);
	lingering_give(&node.descriptor, node.rank, "x", 1);
	assert_int_equal(supervisor_run(node.supervisor), 0);
	sem_wait(&node.killed);
	assert_non_null(strstr(node.why, "cannot start the agent of node n0"));
	stop();
	lingering_close(&node.descriptor);
}

/* The agent has the other end of the socket over which ranks register. */
static int leaves_descriptor(int setup, int fd, const struct agent_fds *fds)
{
	struct host_msg m = { .type = HOST_READY };
	char room[HOST_MSG_MAX];

	say(fd, HOST_READY, HOST_VERSION);
	lingering_give(&node.descriptor, fds->registration, "x", 1);
	sem_post(&node.given);
	while (m.type != HOST_LEAVE) {
		ssize_t n = recv(fd, room, sizeof(room), 0);

		assert_true(n > 0);
		assert_int_equal(host_msg_unpack(&m, room, (size_t)n), 0);
	}
	say(fd, HOST_END, 0);
	return end(setup, fd, fds);
}

TEST(descriptor_where_ranks_register_does_not_stop_the_end)
{
	start(leaves_descriptor);
	lingering_open(&node.descriptor);
	assert_int_equal(send(node.rank, "x", 1, 0), 1);
	assert_int_equal(supervisor_run(node.supervisor), 0);
	sem_wait(&node.given);
	stop();
	lingering_close(&node.descriptor);
}
