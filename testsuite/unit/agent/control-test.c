/* SPDX-License-Identifier: BSD-3-Clause */
/* Agents and srun: requests and replies through the tree, aborts, failures. */
#include "unit.h"

#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#include "cluster.h"
#include "libio/link.h"
#include "libio/listener.h"
#include "libio/loop.h"
#include "loopback.h"
#include "libio/protocol.h"
#include "libpmi/control.h"
#include "wrap-memory.h"

#define LINKS_MAX 16

/* ---- memory that the agents lack ---- */

static struct {
	atomic_bool armed;
	atomic_uint count; /* allocations of agents so far */
	unsigned fail;     /* from this one on, from 1, they fail */
	unsigned failures; /* how many do */
} memory;

static bool is_refused(void)
{
	unsigned n;

	if (!cluster_in_agent || !memory.armed)
		return false;
	n = ++memory.count;
	return n >= memory.fail && n - memory.fail < memory.failures;
}

/* ---- srun ---- */

/* An srun that answers lookups of "x" with "port-x", or keeps silent. */
struct srun {
	struct loop *loop;
	uv_async_t stop;
	struct listener *listener;
	struct handshake_self self;
	struct link *links[LINKS_MAX];
	pthread_mutex_t lock; /* of the members below */
	pthread_cond_t changed;
	struct cluster *cluster; /* its `changed`, too */
	bool silent;
	bool deaf; /* connections come, and nobody speaks */
	int unheard; /* such a connection; -1: none */
	unsigned accepted, aborts, requests, reports, gave_ups;
	char report[512];
	char abort[512];
	uint32_t abort_rank;
};

static void reply(struct link *l, const struct control_msg *to)
{
	struct control_msg msg = {
		.type = CONTROL_REPLY,
		.origin = to->origin,
		.id = to->id,
	};
	char text[100];
	struct buf b;

	snprintf(text, sizeof(text), "port-%s", to->name);
	msg.text = text;
	buf_init(&b, 1000);
	control_pack(&b, &msg);
	link_send_bytes(l, FRAME_CONTROL_DOWN, b.data, b.len);
	buf_free(&b);
}

static int on_frame(void *arg, struct link *l, enum frame_type type,
		    struct payload *body)
{
	struct srun *s = arg;
	struct control_msg msg;

	if (type != FRAME_CONTROL_UP ||
	    control_unpack(body->data, body->len, &msg))
		return 0;
	pthread_mutex_lock(&s->lock);
	s->aborts += msg.type == CONTROL_ABORT;
	s->requests += msg.type == CONTROL_LOOKUP;
	s->reports += msg.type == CONTROL_REPORT && !msg.code;
	s->gave_ups += msg.type == CONTROL_REPORT && msg.code;
	if (msg.type == CONTROL_REPORT && !msg.code)
		snprintf(s->report, sizeof(s->report), "%s", msg.text);
	if (msg.type == CONTROL_ABORT) {
		snprintf(s->abort, sizeof(s->abort), "%s", msg.text);
		s->abort_rank = msg.rank;
	}
	if (msg.type == CONTROL_LOOKUP && !s->silent)
		reply(l, &msg);
	pthread_cond_broadcast(&s->changed);
	pthread_mutex_unlock(&s->lock);
	pthread_mutex_lock(&s->cluster->lock);
	pthread_cond_broadcast(&s->cluster->changed);
	pthread_mutex_unlock(&s->cluster->lock);
	control_free(&msg);
	return 0;
}

static void on_proved(void *arg, struct link *l)
{
}

static void on_end(void *arg, struct link *l, int error)
{
	struct srun *s = arg;

	for (int i = 0; i < LINKS_MAX; i++) {
		if (s->links[i] == l)
			s->links[i] = NULL;
	}
	link_close(l);
}

static void on_accept(void *arg, int fd)
{
	static const struct link_ops ops = {
		.proved = on_proved,
		.frame = on_frame,
		.end = on_end,
	};
	static const struct link_options options = { .handshake_ms = 60000 };
	struct srun *s = arg;
	int i = 0;

	while (s->links[i])
		i++;
	pthread_mutex_lock(&s->lock);
	if (s->deaf)
		s->unheard = fd;
	else
		assert_int_equal(link_accept(&s->links[i], loop_uv(s->loop),
					     &s->self, fd, &options, &ops, s),
				 0);
	s->accepted++;
	pthread_cond_broadcast(&s->changed);
	pthread_mutex_unlock(&s->lock);
}

static void close_all(uv_async_t *stop)
{
	struct srun *s = stop->data;

	listener_close(s->listener);
	for (int i = 0; i < LINKS_MAX; i++)
		link_close(s->links[i]);
	uv_close((uv_handle_t *)stop, NULL);
}

static void step_end(void *srun);

/* An srun, and agents that speak to it; all end with the test. */
static struct srun *srun_start(struct cluster *c)
{
	static const struct sockaddr_storage everywhere;
	struct srun *s = calloc(1, sizeof(*s));
	uint16_t port;
	int fd;

	s->cluster = c;
	s->unheard = -1;
	pthread_mutex_init(&s->lock, NULL);
	pthread_cond_init(&s->changed, NULL);
	s->self = (struct handshake_self){
		.secret = c->secret,
		.jobid = "7.0",
		.build = "0.1",
		.position = HANDSHAKE_SRUN,
		.protocol = PROTOCOL_VERSION,
	};
	assert_int_equal(loop_create(&s->loop), 0);
	uv_async_init(loop_uv(s->loop), &s->stop, close_all);
	s->stop.data = s;
	fd = listener_socket(&everywhere, 0, &port);
	assert_int_equal(listener_open(&s->listener, loop_uv(s->loop), fd,
				       on_accept, s), 0);
	assert_int_equal(loop_start(s->loop), 0);
	c->options.launcher = loopback(port);
	return unit_at_end(step_end, s);
}

/* The agents first, as they speak to srun; the cluster, which srun wakes, is the last. */
static void step_end(void *srun)
{
	struct srun *s = srun;

	cluster_stop_all(s->cluster);
	uv_async_send(&s->stop);
	loop_join(s->loop);
	loop_destroy(s->loop);
	if (s->unheard >= 0)
		close(s->unheard);
	pthread_mutex_destroy(&s->lock);
	pthread_cond_destroy(&s->changed);
	free(s);
}

#define SRUN_TEST(name, nodes) TEST_ON(name, struct srun *s, srun_start(cluster_new(nodes)))

static void wait_for(struct srun *s, const unsigned *what, unsigned count)
{
	pthread_mutex_lock(&s->lock);
	while (*what < count)
		pthread_cond_wait(&s->changed, &s->lock);
	pthread_mutex_unlock(&s->lock);
}

static void wait_for_one(struct srun *s, const unsigned *what)
{
	wait_for(s, what, 1);
}

static unsigned get(struct srun *s, const unsigned *what)
{
	unsigned n;

	pthread_mutex_lock(&s->lock);
	n = *what;
	pthread_mutex_unlock(&s->lock);
	return n;
}

SRUN_TEST(replies_find_their_way_through_the_tree, 5)
{
	cluster_start_pmi(s->cluster);
	for (uint32_t i = 0; i < 5; i++)
		rank_say(s->cluster, i, "cmd=lookup_name service=x");
	for (uint32_t i = 0; i < 5; i++)
		rank_expect(s->cluster, i, "port-x");
	assert_int_equal(get(s, &s->accepted), 1); /* only the root's */
}

SRUN_TEST(many_aborts_become_one, 5)
{
	cluster_start_pmi(s->cluster);
	for (uint32_t i = 0; i < 5; i++) {
		rank_say(s->cluster, i, "cmd=abort exitcode=7");
		rank_close(s->cluster, i);
	}
	for (uint32_t i = 5; i-- > 0;)
		cluster_stop(s->cluster, i); /* children first: none gets lost */
	assert_int_equal(get(s, &s->aborts), 1);
	assert_string_equal(s->cluster->killed, ""); /* nor does a node fear that */
}

/* The parent may have been killed before it has passed it on. */
SRUN_TEST(an_abort_is_said_again_when_its_carrier_is_lost, 2)
{
	cluster_start_pmi(s->cluster);
	rank_say(s->cluster, 1, "cmd=abort exitcode=7");
	wait_for_one(s, &s->aborts);
	cluster_cut_links(s->cluster);
	wait_for(s, &s->aborts, 2);
	assert_int_equal(s->abort_rank, 1);
}

/* Four nodes wait for a fence that a fifth has left: the user gets a line. */
SRUN_TEST(one_failure_is_one_line, 5)
{
	cluster_start_pmi(s->cluster);
	for (uint32_t i = 0; i < 4; i++)
		rank_say(s->cluster, i, "cmd=barrier_in");
	rank_close(s->cluster, 4);
	for (uint32_t i = 0; i < 4; i++)
		rank_expect(s->cluster, i, "barrier_failed");
	for (uint32_t i = 5; i-- > 0;) {
		rank_close(s->cluster, i);
		cluster_stop(s->cluster, i);
	}
	assert_int_equal(get(s, &s->reports), 1);
	assert_int_equal(get(s, &s->gave_ups), 1);
	assert_string_equal(s->report,
			    "fence 1 failed: rank 4 (node n4) closed PMI_FD without finalizing PMI");
	assert_string_equal(s->cluster->text, "");
}

SRUN_TEST(requests_pass_after_the_parent_has_left, 5)
{
	cluster_start_pmi(s->cluster);
	rank_say(s->cluster, 1, "cmd=finalize");
	rank_close(s->cluster, 1);
	cluster_stop(s->cluster, 1);
	rank_say(s->cluster, 2, "cmd=lookup_name service=y");
	rank_expect(s->cluster, 2, "port-y");
	rank_say(s->cluster, 4, "cmd=lookup_name service=z");
	rank_expect(s->cluster, 4, "port-z");
}

/* Requests that were kept for a parent that never came go to srun directly. */
SRUN_TEST(requests_pass_without_the_parent, 3)
{
	s->cluster->options.connect_ms = 200;
	cluster_start(s->cluster, 1);
	rank_init(s->cluster, 1);
	rank_say(s->cluster, 1, "cmd=lookup_name service=y");
	rank_expect(s->cluster, 1, "port-y");
}

/* The parent waits for the reply as long as it may; then the asker is told. */
SRUN_TEST(a_request_under_way_fails_with_its_carrier, 5)
{
	s->cluster->options.drain_ms = 300;
	s->silent = true;
	cluster_start_pmi(s->cluster);
	rank_say(s->cluster, 2, "cmd=lookup_name service=y");
	wait_for_one(s, &s->requests);
	rank_say(s->cluster, 1, "cmd=finalize");
	rank_close(s->cluster, 1);
	cluster_stop(s->cluster, 1);
	rank_expect(s->cluster, 2, "info=fail");
	cluster_stop_all(s->cluster);
	assert_int_equal(get(s, &s->aborts), 0); /* a late rank is not dead */
}

/* Nobody waits for the other node; srun would never hear of its ranks. */
SRUN_TEST(a_node_without_goodbye_ends_the_step, 2)
{
	cluster_start_pmi(s->cluster);
	cluster_cut_links(s->cluster);
	wait_for_one(s, &s->aborts);
	pthread_mutex_lock(&s->lock); /* the other node may say it, too */
	assert_int_equal(s->abort_rank, CONTROL_NO_RANK);
	assert_non_null(strstr(s->abort, "lost the connection to node n"));
	pthread_mutex_unlock(&s->lock);
	rank_say(s->cluster, 0, "cmd=barrier_in");
	rank_expect(s->cluster, 0, "barrier_failed");
}

static void *stop_root(void *arg)
{
	cluster_stop(arg, 0);
	return NULL;
}

/* The child's parent has said goodbye, and srun does not know the child yet. */
SRUN_TEST(a_child_that_is_killed_between_two_links_is_noticed, 2)
{
	pthread_t stop;

	cluster_start_pmi(s->cluster);
	rank_say(s->cluster, 0, "cmd=lookup_name service=x");
	rank_expect(s->cluster, 0, "port-x");
	pthread_mutex_lock(&s->lock);
	s->deaf = true;
	pthread_mutex_unlock(&s->lock);
	rank_say(s->cluster, 0, "cmd=finalize");
	rank_close(s->cluster, 0);
	assert_int_equal(pthread_create(&stop, NULL, stop_root, s->cluster), 0);
	wait_for(s, &s->accepted, 2); /* the child waits for srun's answer */
	cluster_cut_links(s->cluster);
	pthread_join(stop, NULL);
	assert_int_equal(get(s, &s->aborts), 1);
	assert_non_null(strstr(s->abort, "lost the connection to node n1"));
}

TEST(without_srun_requests_fail_and_an_abort_ends_the_step)
{
	struct cluster c;
	uint16_t port;
	int held = closed_port(&port);

	cluster_open(&c, 3);
	c.options.connect_ms = 200;
	c.options.launcher = loopback(port);
	cluster_start_pmi(&c);
	rank_say(&c, 1, "cmd=lookup_name service=x");
	rank_expect(&c, 1, "info=fail");
	rank_say(&c, 2, "cmd=abort exitcode=7");
	cluster_expect_log(&c, "srun cannot be reached");
	cluster_close(&c);
	close(held);
	assert_string_not_equal(c.killed, "");
}

/* ---- without memory ---- */

static bool is_ended(void *arg)
{
	struct srun *s = arg;

	return s->cluster->killed[0] || get(s, &s->aborts);
}

static bool is_said(void *arg)
{
	struct srun *s = arg;

	return is_ended(s) || s->cluster->text[0] || get(s, &s->reports);
}

static void abort_root(struct cluster *c)
{
	rank_say(c, 0, "cmd=abort exitcode=7");
}

static void abort_child(struct cluster *c)
{
	rank_say(c, 1, "cmd=abort exitcode=7");
}

static void lookup_root(struct cluster *c)
{
	rank_say(c, 0, "cmd=lookup_name service=x");
}

static void lookup_child(struct cluster *c)
{
	rank_say(c, 1, "cmd=lookup_name service=x");
}

/* Something to read for either rank: its answer, or its end. */
static bool is_answered(void *arg)
{
	struct srun *s = arg;
	struct pollfd pmi[2] = { { s->cluster->pmi[0], POLLIN, 0 },
				 { s->cluster->pmi[1], POLLIN, 0 } };

	return is_ended(s) || poll(pmi, 2, 0) > 0;
}

/* The barrier of the other fails. */
static void leave(struct cluster *c)
{
	rank_say(c, 0, "cmd=barrier_in");
	rank_close(c, 1);
}

/* Wakes cluster_await when a rank gets an answer: nobody else does. */
static void *watch_ranks(void *arg)
{
	struct cluster *c = arg;
	struct pollfd pmi[2] = { { c->pmi[0], POLLIN, 0 },
				 { c->pmi[1], POLLIN, 0 } };

	poll(pmi, 2, -1);
	pthread_mutex_lock(&c->lock);
	pthread_cond_broadcast(&c->changed);
	pthread_mutex_unlock(&c->lock);
	return NULL;
}

static void await(struct cluster *c, bool (*known)(void *s), struct srun *s)
{
	pthread_t watcher;

	assert_int_equal(pthread_create(&watcher, NULL, watch_ranks, c), 0);
	cluster_await(c, known, s);
	shutdown(c->pmi[0], SHUT_RDWR); /* the rank exits */
	pthread_join(watcher, NULL);
}

/*
 * The agents lack memory for `failures` allocations, from `fail` on, while that happens.
 * False: there were not as many.
 */
static bool without(void (*happens)(struct cluster *c), bool (*known)(void *s),
		    bool connected, unsigned fail, unsigned failures)
{
	struct cluster *c = cluster_new(2);
	struct srun *s = srun_start(c);
	bool reached;

	c->options.connect_ms = 100;
	c->options.drain_ms = 100; /* without memory the end may not be in order */
	cluster_start_pmi(c);
	if (connected) {
		rank_say(c, 0, "cmd=lookup_name service=x");
		rank_expect(c, 0, "port-x");
	}
	memory.count = 0;
	memory.fail = fail;
	memory.failures = failures;
	memory.armed = true;
	happens(c);
	await(c, known, s);
	memory.armed = false;
	reached = memory.count >= fail;
	unit_end(s);
	unit_end(c);
	return reached;
}

static void each_without(void (*happens)(struct cluster *c),
			 bool (*known)(void *s))
{
	for (int i = 0; i < 4; i++) {
		unsigned failures = i / 2 ? 1 : UINT32_MAX, fail = 1;

		while (without(happens, known, i % 2, fail, failures))
			fail++;
		assert_true(fail > 3); /* they did allocate */
	}
}

TEST(an_abort_without_memory_ends_the_step)
{
	each_without(abort_root, is_ended);
	each_without(abort_child, is_ended);
}

TEST(a_request_without_memory_is_answered_or_ends_the_step)
{
	each_without(lookup_root, is_answered);
	each_without(lookup_child, is_answered);
}

TEST(a_failure_without_memory_is_said)
{
	each_without(leave, is_said);
}
