/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Agents and srun's server: who waits for whom is told by itself and when asked,
 * what waits too long ends, and traces arrive.
 */
#include "unit.h"

#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "cluster.h"
#include "libpmi/status.h"
#include "libutil/pack.h"

#define NODES 5
#define LIMIT_S 300 /* limit: the test hangs, no answer came */

struct step {
	struct cluster c;
	struct srun_server *server;
	char report[512];
	unsigned traces; /* bits: by position */
	char trace[4096]; /* of node 0 */
};

static uint32_t nodes(void *arg)
{
	return NODES;
}

static const char *node_name(void *arg, uint32_t position)
{
	static const char *const names[] = { "n0", "n1", "n2", "n3", "n4" };

	return position < NODES ? names[position] : "?";
}

static void on_report(void *arg, const char *text)
{
	struct step *s = arg;

	pthread_mutex_lock(&s->c.lock);
	snprintf(s->report, sizeof(s->report), "%s", text);
	pthread_cond_broadcast(&s->c.changed);
	pthread_mutex_unlock(&s->c.lock);
}

static void on_trace(void *arg, uint32_t position, const void *data, size_t len)
{
	struct step *s = arg;

	s->traces |= 1u << position;
	if (!position)
		snprintf(s->trace, sizeof(s->trace), "%.*s", (int)len,
			 (const char *)data);
}

static bool traces_missing(void *arg)
{
	struct step *s = arg;

	return s->traces != (1u << NODES) - 1;
}

static void step_open(struct step *s)
{
	const struct srun_server_host host = {
		.report = on_report,
		.nodes = nodes,
		.node_name = node_name,
		.trace = s->c.options.trace ? on_trace : NULL,
		.traces_missing = s->c.options.trace ? traces_missing : NULL,
		.arg = s,
	};

	s->server = cluster_start_srun(&s->c, &host);
	cluster_start_all(&s->c);
	cluster_init_all(&s->c);
}

static void step_close(struct step *s)
{
	cluster_close(&s->c);
	srun_server_stop(s->server, 0);
	assert_false(s->c.unfinished); /* whatever was asked and told */
}

static struct step *new_step(void)
{
	struct step *s = calloc(1, sizeof(*s));

	cluster_open(&s->c, NODES);
	s->c.options.stall_ms = 0;
	return unit_at_end(free, s);
}

#define STEP_TEST(name) TEST_ON(name, struct step *s, new_step())

/* All but rank 3 enter a fence. */
static void wait_for_rank_3(struct step *s)
{
	for (uint32_t i = 0; i < NODES; i++)
		if (i != 3)
			rank_say(&s->c, i, "cmd=barrier_in");
}

static void rank_3_comes(struct step *s)
{
	rank_say(&s->c, 3, "cmd=barrier_in");
	for (uint32_t i = 0; i < NODES; i++)
		rank_expect(&s->c, i, "cmd=barrier_out");
}

static unsigned count_log(struct step *s, const char *part)
{
	unsigned n = 0;

	pthread_mutex_lock(&s->c.lock);
	for (const char *at = s->c.text; (at = strstr(at, part)); at++)
		n++;
	pthread_mutex_unlock(&s->c.lock);
	return n;
}

/* Lines that say how long something has waited, between these words. */
struct wait_lines {
	const struct step *step;
	const char *before, *after;
	unsigned lines, seconds; /* how many, and what the last one says */
};

/* A wait was reported again, and has lasted for longer than a moment. */
static bool is_said_again(void *arg)
{
	struct wait_lines *w = arg;
	const char *at = w->step->c.text;

	w->lines = 0;
	while ((at = strstr(at, w->before))) {
		char *end;
		unsigned long seconds = strtoul(at += strlen(w->before), &end, 10);

		if (strncmp(end, w->after, strlen(w->after)))
			continue;
		w->lines++;
		w->seconds = (unsigned)seconds;
	}
	return w->lines >= 2 && w->seconds >= 1;
}

/* When the wait has doubled, from 50 ms on: few lines, however long it takes. */
static void expect_again(struct step *s, const char *before, const char *after)
{
	struct wait_lines w = { .step = s, .before = before, .after = after };

	cluster_await(&s->c, is_said_again, &w);
	assert_in_range(w.lines, 2, 7 + w.seconds);
}

STEP_TEST(a_long_wait_is_said_by_name)
{
	s->c.options.stall_ms = 50;
	step_open(s);
	wait_for_rank_3(s);
	expect_again(s, "fence 0: ", " s, waiting for 1 of 5 ranks: 3 (node n3)");
	rank_3_comes(s);
	step_close(s);
}

/* Groups are no part of the status. */
STEP_TEST(a_group_that_waits_is_told_of_again)
{
	s->c.options.stall_ms = 50;
	step_open(s);
	rank_say(&s->c, 3, "cmd=barrier_in group=3,4:1");
	expect_again(s, "barrier of a group of 2 ranks (tag 1): ", " s, node n");
	rank_say(&s->c, 4, "cmd=barrier_in group=3,4:1");
	rank_expect(&s->c, 3, "cmd=barrier_out rc=0 tag=1");
	rank_expect(&s->c, 4, "cmd=barrier_out rc=0 tag=1");
	step_close(s);
}

/* Nobody is told of fences that end. */
STEP_TEST(short_waits_are_not_said)
{
	s->c.options.stall_ms = 60000;
	step_open(s);
	for (int i = 0; i < 20; i++) {
		wait_for_rank_3(s);
		rank_3_comes(s);
	}
	assert_int_equal(count_log(s, "waiting for"), 0);
	step_close(s);
}

STEP_TEST(too_long_a_wait_fails)
{
	s->c.options.collective_ms = 1000;
	step_open(s);
	wait_for_rank_3(s);
	for (uint32_t i = 0; i < NODES; i++)
		if (i != 3)
			rank_expect(&s->c, i,
				    "fence_0_failed:_Pmi2xCollectiveTimeout_"
				    "after_1_s,_waiting_for_1_of_5_ranks:_3_");
	pthread_mutex_lock(&s->c.lock);
	while (!s->report[0])
		pthread_cond_wait(&s->c.changed, &s->c.lock);
	assert_non_null(strstr(s->report, "waiting for 1 of 5 ranks: 3"));
	pthread_mutex_unlock(&s->c.lock);
	step_close(s);
}

/* Each node then gives up by itself, also when earlier fences were fine. */
STEP_TEST(too_long_a_wait_fails_without_srun)
{
	s->c.options.collective_ms = 500;
	cluster_start_all(&s->c); /* with no address of srun */
	cluster_init_all(&s->c);
	wait_for_rank_3(s);
	rank_3_comes(s);
	wait_for_rank_3(s);
	for (uint32_t i = 0; i < NODES; i++)
		if (i != 3)
			rank_expect(&s->c, i, "fence_1_failed:");
	cluster_close(&s->c);
}

/* An answer to pmi2x trace --live. */
struct answer {
	char data[65536];
	size_t len;
	char waiting[STATUS_TEXT_MAX]; /* the first text of it; empty: none */
	unsigned nodes;                /* nodes that answered, as bits */
	struct status_run runs[NODES]; /* the first of each */
};

/* Ask as pmi2x trace --live does; the answer ends with the connection. */
static void ask(struct answer *a)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	ssize_t n;

	n = snprintf(at.sun_path + 1, sizeof(at.sun_path) - 1,
		     STATUS_SOCKET "/7.0/%d", (int)getpid());
	assert_int_equal(connect(fd, (struct sockaddr *)&at,
				 offsetof(struct sockaddr_un, sun_path) + 1 + n),
			 0);
	a->len = 0;
	while ((n = read(fd, a->data + a->len, sizeof(a->data) - a->len)) > 0)
		a->len += n;
	assert_int_equal(n, 0);
	close(fd);
}

static void read_node(struct answer *a, struct cursor *c)
{
	uint32_t position = unpack_u32(c);
	struct node_status n;
	const void *data;
	size_t len;

	data = unpack_bytes(c, STATUS_NODE_MAX, &len);
	assert_in_range(position, 0, NODES - 1);
	assert_int_equal(status_unpack(data, len, &n), 0);
	assert_int_equal(n.nruns, 1);
	a->nodes |= 1u << position;
	a->runs[position] = n.runs[0];
	free(n.runs);
}

static void ask_and_read(struct answer *a)
{
	const void *text;
	struct cursor c;
	size_t len;

	ask(a);
	a->waiting[0] = '\0';
	a->nodes = 0;
	cursor_init(&c, a->data, a->len);
	unpack_bytes(&c, 64, &len); /* the form */
	unpack_bytes(&c, 64, &len); /* the step */
	for (uint32_t i = unpack_u32(&c); i > 0; i--)
		unpack_bytes(&c, 64, &len);
	for (uint32_t i = unpack_u32(&c); i > 0; i--) {
		text = unpack_bytes(&c, STATUS_TEXT_MAX, &len);
		snprintf(a->waiting, sizeof(a->waiting), "%.*s", (int)len,
			 (const char *)text);
	}
	while (cursor_ok(&c) && cursor_left(&c))
		read_node(a, &c);
	assert_true(cursor_done(&c));
}

STEP_TEST(a_tool_is_told_the_status)
{
	struct answer *a = unit_at_end(free, malloc(sizeof(*a)));

	step_open(s);
	wait_for_rank_3(s);
	/* An agent may not have read all of it yet: ask until it has. */
	do
		ask_and_read(a);
	while (!strstr(a->waiting, "waiting for 1 of 5 ranks: 3 (node n3)"));
	assert_int_equal(a->nodes, (1u << NODES) - 1);
	for (uint32_t i = 0; i < NODES; i++) {
		assert_int_equal(a->runs[i].first, i);
		assert_int_equal(a->runs[i].phase, STATUS_IN_PMI);
		assert_int_equal(a->runs[i].entered[COLL_FENCE], i != 3);
	}
	rank_3_comes(s);
	step_close(s);
}

/* A node whose agent has ended is silent; the answer comes all the same. */
STEP_TEST(silent_nodes_do_not_hold_up)
{
	struct answer *a = unit_at_end(free, malloc(sizeof(*a)));

	step_open(s);
	rank_say(&s->c, 4, "cmd=finalize");
	rank_expect(&s->c, 4, "cmd=finalize_ack");
	rank_close(&s->c, 4);
	cluster_stop(&s->c, 4);
	ask_and_read(a);
	assert_int_equal(a->nodes, (1u << (NODES - 1)) - 1);
	step_close(s);
}

/* The parts of a rank's time: one request for the topology. */
static void check_rest(const char *trace)
{
	const char *at = strstr(trace, "],\"wanted\":");
	long long wanted, topology, path, loaded, requests, served;
	int early;

	assert_non_null(at);
	assert_int_equal(sscanf(at, "],\"wanted\":%lld,\"rests\":[[1,2,%d,%lld,%lld,%lld,%lld,%lld]],\"entered\":[[0]",
				&wanted, &early, &topology, &path, &loaded,
				&requests, &served), 7);
	assert_true(wanted && early >= 0 && early <= 1);
	assert_true(wanted < topology && topology <= path && path < loaded);
	assert_int_equal(requests, 4); /* init, barrier_in, get, finalize */
	assert_true(served > 0);
}

STEP_TEST(traces_reach_srun)
{
	s->c.options.trace = true;
	step_open(s);
	wait_for_rank_3(s);
	rank_3_comes(s);
	rank_say(&s->c, 0, "cmd=get kvsname=7.0 key=PMI_hwloc_xmlfile");
	rank_expect(&s->c, 0, "cmd=get_result");
	rank_say(&s->c, 0, "cmd=finalize pmi2x-stamps=1,2,3,4,5,6,7,8");
	rank_expect(&s->c, 0, "cmd=finalize_ack");
	rank_say(&s->c, 1, "cmd=finalize pmi2x-stamps=1,2,3,4,5,6,7,8,9");
	rank_expect(&s->c, 1, "cmd=finalize_ack");
	step_close(s);
	assert_false(traces_missing(s));
	assert_non_null(strstr(s->trace, "{\"node\":\"n0\",\"position\":0,"));
	assert_non_null(strstr(s->trace, "\"collectives\":[[\"fence\",0,"));
	assert_non_null(strstr(s->trace, ",1,2,3,4,5,6,7,8]],"));
	check_rest(s->trace);
}

int main(void)
{
	alarm(LIMIT_S);
	return unit_run(NULL, NULL, NULL);
}
