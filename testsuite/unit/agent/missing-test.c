/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A neighbour that refuses connections: one that has ended fails the others
 * soon, one that starts late, or listens elsewhere, is waited for.
 */
#include "unit.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>

#include "cluster.h"

#define NODES 5
#define NEVER_MS 3600000 /* waits that end before the test have another limit */
#define FDS_MAX 1024
#define BARRIERS_MAX 2000 /* limit: the awaited event does not come */

/* A step, and an srun that knows of `missing` whether it has been started. */
struct step {
	struct cluster c;
	struct srun_server *server;
	uint32_t missing;
	bool started;
	unsigned questions;
	char aborted[512];
};

static bool is_started(void *arg, uint32_t position)
{
	struct step *s = arg;
	bool started;

	pthread_mutex_lock(&s->c.lock);
	started = position != s->missing || s->started;
	s->questions++;
	pthread_cond_broadcast(&s->c.changed);
	pthread_mutex_unlock(&s->c.lock);
	return started;
}

static void on_abort(void *arg, uint32_t rank, int code, const char *text)
{
	struct step *s = arg;

	pthread_mutex_lock(&s->c.lock);
	snprintf(s->aborted, sizeof(s->aborted), "%s", text);
	pthread_cond_broadcast(&s->c.changed);
	pthread_mutex_unlock(&s->c.lock);
}

static void on_report(void *arg, const char *text)
{
}

static void start_srun(struct step *s)
{
	const struct srun_server_host host = {
		.abort = on_abort,
		.report = on_report,
		.started = is_started,
		.arg = s,
	};

	s->server = cluster_start_srun(&s->c, &host);
}

/* All nodes but one are there, and their ranks wait in a barrier. */
static struct step *step_with(uint32_t missing, bool started, int tell_error,
			      unsigned tells_refused)
{
	struct step *s = calloc(1, sizeof(*s));

	assert_non_null(s);
	cluster_open(&s->c, NODES);
	s->c.tells_refused = tells_refused;
	s->missing = missing;
	s->started = started;
	s->c.tell_error = tell_error;
	s->c.options.connect_ms = NEVER_MS;
	s->c.options.absent_ms = 50;
	start_srun(s);
	for (uint32_t i = 0; i < NODES; i++) {
		if (i == missing)
			continue;
		cluster_start(&s->c, i);
		rank_init(&s->c, i);
		rank_say(&s->c, i, "cmd=barrier_in");
	}
	return s;
}

static struct step *step_without(uint32_t missing, bool started, int tell_error)
{
	return step_with(missing, started, tell_error, 0);
}

static void step_end(struct step *s)
{
	cluster_close(&s->c);
	srun_server_stop(s->server, 0);
	free(s);
}

/* Ends of links with srun that are the agents'. */
static unsigned links_with_srun(const struct step *s)
{
	unsigned count = 0;

	for (int fd = 0; fd < FDS_MAX; fd++) {
		struct sockaddr_in6 in = { 0 }; /* the port is at one place */
		socklen_t len = sizeof(in);

		count += !getpeername(fd, (struct sockaddr *)&in, &len) &&
			 (in.sin6_family == AF_INET ||
			  in.sin6_family == AF_INET6) &&
			 ntohs(in.sin6_port) == srun_server_port(s->server);
	}
	return count;
}

/* Only the first node has a reason to keep one. */
static void others_leave_srun(struct step *s)
{
	unsigned i;

	for (i = 0; links_with_srun(s) > 1 && i < BARRIERS_MAX; i++) {
		for (uint32_t n = 0; n < NODES; n++)
			rank_say(&s->c, n, "cmd=barrier_in");
		for (uint32_t n = 0; n < NODES; n++)
			rank_expect(&s->c, n, "cmd=barrier_out");
	}
	assert_true(i < BARRIERS_MAX);
}

/* The missing node comes after all, and the barrier completes. */
static void the_missing_comes(struct step *s)
{
	cluster_start(&s->c, s->missing);
	rank_init(&s->c, s->missing);
	rank_say(&s->c, s->missing, "cmd=barrier_in");
	for (uint32_t i = 0; i < NODES; i++)
		rank_expect(&s->c, i, "cmd=barrier_out");
	assert_string_equal(s->aborted, "");
}

static bool srun_was_asked(void *arg)
{
	return ((struct step *)arg)->questions >= 2;
}

static bool slurmd_was_asked(void *arg)
{
	return ((struct step *)arg)->c.tells >= 2;
}

static bool is_aborted(void *arg)
{
	return ((struct step *)arg)->aborted[0] != '\0';
}

/* All ranks that are there are told `what`, and srun has the words of `said`. */
static void fails_the_others(struct step *s, const char *what, const char *said)
{
	for (uint32_t i = 0; i < NODES; i++)
		if (i != s->missing)
			rank_expect(&s->c, i, what);
	cluster_await(&s->c, is_aborted, s);
	assert_non_null(strstr(s->aborted, said));
	step_end(s);
}

TEST(one_that_has_ended_fails_the_others)
{
	for (uint32_t missing = 0; missing < NODES; missing++) {
		struct step *s = step_without(missing, true, 0);
		char name[100];

		snprintf(name, sizeof(name), "rank_%u_(node_n%u)_exited_before",
			 missing, missing);
		fails_the_others(s, name, "exited before");
	}
}

/*
 * srun never hears that it has been started; slurmd finds what it has left. One with
 * nodes below it, and one without.
 */
TEST(one_that_is_killed_while_it_starts_fails_the_others)
{
	for (uint32_t missing = 1; missing < NODES; missing += 3) {
		struct step *s = step_without(missing, false, -ECONNREFUSED);
		char name[100];

		snprintf(name, sizeof(name),
			 "lost_the_slurmstepd_of_node_n%u_(rank_%u)_before",
			 missing, missing);
		fails_the_others(s, name, "lost the slurmstepd of node");
	}
}

TEST(one_that_starts_late_is_waited_for)
{
	for (uint32_t missing = 0; missing < NODES; missing++) {
		struct step *s = step_without(missing, false, 0);

		cluster_await(&s->c, srun_was_asked, s);
		the_missing_comes(s);
		others_leave_srun(s);
		step_end(s);
	}
}

/* The node's slurmd does not answer, or does not know. */
TEST(one_that_nobody_denies_is_waited_for)
{
	struct step *s = step_without(1, true, -EIO);

	cluster_await(&s->c, slurmd_was_asked, s);
	the_missing_comes(s);
	step_end(s);
}

static bool slurmd_was_asked_again(void *arg)
{
	return ((struct step *)arg)->c.tells >= 4;
}

/* The node had its socket, and did not listen yet. */
TEST(one_that_is_refused_once_is_waited_for)
{
	struct step *s = step_with(NODES - 1, false, -EIO, 1);

	cluster_await(&s->c, slurmd_was_asked_again, s);
	the_missing_comes(s);
	step_end(s);
}

/* All ports where it ought to be were taken, and are free again. */
TEST(one_that_listens_elsewhere_is_waited_for)
{
	struct step *s = step_without(1, false, -EIO);

	cluster_await(&s->c, srun_was_asked, s);
	s->c.options.port_first += CLUSTER_PORTS;
	s->c.options.port_last += CLUSTER_PORTS;
	cluster_start(&s->c, 1);
	pthread_mutex_lock(&s->c.lock);
	s->started = true;
	s->c.tell_error = 0;
	pthread_mutex_unlock(&s->c.lock);
	cluster_await(&s->c, slurmd_was_asked, s);
	rank_init(&s->c, 1);
	rank_say(&s->c, 1, "cmd=barrier_in");
	for (uint32_t i = 0; i < NODES; i++)
		rank_expect(&s->c, i, "cmd=barrier_out");
	step_end(s);
}

/* A node that others do not find, and a message through slurmd that does not come. */
static struct step *step_that_needs_messages(int tell_error, uint32_t connect_ms)
{
	struct step *s = calloc(1, sizeof(*s));

	assert_non_null(s);
	cluster_open(&s->c, 2);
	s->c.tell_error = tell_error;
	s->c.options.connect_ms = connect_ms;
	s->c.options.absent_ms = 50;
	s->c.options.spool_dir = "/a/long/path-of-%n";
	s->c.options.spool_max = 92;
	s->started = true;
	s->missing = 2;
	start_srun(s);
	cluster_start(&s->c, 0);
	s->c.options.port_first += CLUSTER_PORTS;
	s->c.options.port_last += CLUSTER_PORTS;
	cluster_start(&s->c, 1);
	for (uint32_t i = 0; i < 2; i++) {
		rank_init(&s->c, i);
		rank_say(&s->c, i, "cmd=barrier_in");
	}
	return s;
}

static void failed_message_is_the_reason_of_the_failure(int tell_error,
							const char *reason)
{
	struct step *s = step_that_needs_messages(tell_error, 1000);

	cluster_await(&s->c, is_aborted, s);
	assert_non_null(strstr(s->aborted, "cannot reach node n0"));
	assert_non_null(strstr(s->aborted, reason));
	assert_null(strstr(s->aborted, "open ports"));
	cluster_expect_log(&s->c, reason);
	step_end(s);
}

TEST(too_long_path_is_named_with_its_remedy)
{
	failed_message_is_the_reason_of_the_failure(
		-ENAMETOOLONG,
		"SlurmdSpoolDir=/a/long/path-of-%n has too long a path: shorten that to 92 bytes");
}

TEST(slurmd_that_is_away_is_named_with_its_remedy)
{
	failed_message_is_the_reason_of_the_failure(
		-EHOSTUNREACH, "slurmd of node n0 does not answer");
}

TEST(message_that_slurmd_cannot_deliver_is_named)
{
	failed_message_is_the_reason_of_the_failure(
		-EIO, "a message through slurmd of node n0");
}

TEST(message_is_sent_again_when_slurmd_is_back)
{
	struct step *s = step_that_needs_messages(-EHOSTUNREACH, NEVER_MS);

	cluster_await(&s->c, slurmd_was_asked, s);
	pthread_mutex_lock(&s->c.lock);
	s->c.tell_error = 0;
	pthread_mutex_unlock(&s->c.lock);
	for (uint32_t i = 0; i < 2; i++)
		rank_expect(&s->c, i, "cmd=barrier_out");
	step_end(s);
}
