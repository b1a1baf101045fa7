/* SPDX-License-Identifier: BSD-3-Clause */
/* Links over real sockets: proof, frames, orderly and disorderly ends. */
#include "unit.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "libio/link.h"
#include "libio/listener.h"
#include "loopback.h"

static time_t clock_ahead; /* seconds for which this process could not run */

/* Stands for the C library's in this program. */
int clock_gettime(clockid_t clock, struct timespec *now)
{
	int rc = (int)syscall(SYS_clock_gettime, clock, now);

	now->tv_sec += clock_ahead;
	return rc;
}

static uv_loop_t loop;
static struct handshake_self child, parent;
static const struct link_options options = {
	.handshake_ms = 60000,
	.dead_peer_ms = 60000,
};

struct side {
	struct link *link;
	int proved, frames, ends, error;
	enum frame_type type;
	char text[16];
	int refuse;
	bool finishes; /* at a goodbye, after a large answer */
};

#define LARGE ((size_t)16 << 20) /* bytes, more than sockets take */

/* The end of the other side's input is there to be read, too. */
static void finish(struct side *s)
{
	static char large[LARGE];

	link_send_bytes(s->link, FRAME_CONTROL_UP, large, LARGE);
	link_send_bytes(s->link, FRAME_GOODBYE, "bye", 4);
	link_shutdown(s->link);
	assert_true(link_queued(s->link) > 0);
	link_finish(s->link);
}

static void on_proved(void *arg, struct link *l)
{
	((struct side *)arg)->proved++;
}

static int on_frame(void *arg, struct link *l, enum frame_type type,
		    struct payload *body)
{
	struct side *s = arg;

	s->frames++;
	s->type = type;
	memcpy(s->text, body->data, body->len < 16 ? body->len : 16);
	if (s->finishes && type == FRAME_GOODBYE)
		finish(s);
	return s->refuse;
}

static void on_end(void *arg, struct link *l, int error)
{
	struct side *s = arg;

	s->ends++;
	s->error = error;
	link_close(l);
	s->link = NULL;
}

static const struct link_ops ops = {
	.proved = on_proved,
	.frame = on_frame,
	.end = on_end,
};

static void on_accept(void *arg, int fd)
{
	struct side *s = arg;

	assert_int_equal(link_accept(&s->link, &loop, &parent, fd, &options,
				     &ops, s), 0);
}

struct pair {
	struct side connector, acceptor;
	struct listener *listener;
};

static void pair_open(struct pair *p)
{
	static const struct sockaddr_storage everywhere;
	struct sockaddr_storage to;
	uint16_t port;
	int fd = listener_socket(&everywhere, 0, &port);

	memset(p, 0, sizeof(*p));
	assert_true(fd >= 0);
	assert_int_equal(listener_open(&p->listener, &loop, fd, on_accept,
				       &p->acceptor), 0);
	to = loopback(port);
	assert_int_equal(link_connect(&p->connector.link, &loop, &child, 0, &to,
				      &options, &ops, &p->connector), 0);
}

static void pair_close(struct pair *p)
{
	listener_close(p->listener);
	link_close(p->connector.link);
	link_close(p->acceptor.link);
	uv_run(&loop, UV_RUN_DEFAULT);
}

static void end_pair(void *pair)
{
	pair_close(pair);
	free(pair);
}

static struct pair *new_pair(void)
{
	struct pair *p = calloc(1, sizeof(*p));

	pair_open(p);
	return unit_at_end(end_pair, p);
}

#define PAIR_TEST(name) TEST_ON(name, struct pair *p, new_pair())

PAIR_TEST(frames_pass_between_proved_ends)
{
	assert_int_equal(link_send_bytes(p->connector.link, FRAME_COLLECTIVE,
					 "early", 6), -ENOTCONN);
	while (!p->acceptor.proved)
		uv_run(&loop, UV_RUN_ONCE);
	assert_int_equal(p->connector.proved, 1);
	assert_int_equal(link_peer(p->acceptor.link)->position, 5);
	link_send_bytes(p->acceptor.link, FRAME_CONTROL_DOWN, "down", 5);
	link_send_bytes(p->connector.link, FRAME_CONTROL_UP, "up", 3);
	while (!p->acceptor.frames || !p->connector.frames)
		uv_run(&loop, UV_RUN_ONCE);
	assert_int_equal(p->acceptor.type, FRAME_CONTROL_UP);
	assert_string_equal(p->acceptor.text, "up");
	assert_string_equal(p->connector.text, "down");
	link_send_bytes(p->connector.link, FRAME_GOODBYE, "bye", 4);
	link_shutdown(p->connector.link);
	while (!p->acceptor.ends || !p->connector.ends)
		uv_run(&loop, UV_RUN_ONCE);
	assert_int_equal(p->acceptor.type, FRAME_GOODBYE);
	assert_int_equal(p->acceptor.error, 0);
	assert_int_equal(p->connector.error, 0);
}

PAIR_TEST(finished_link_sends_its_queue)
{
	while (!p->acceptor.proved)
		uv_run(&loop, UV_RUN_ONCE);
	p->connector.finishes = true;
	link_send_bytes(p->acceptor.link, FRAME_GOODBYE, "bye", 4);
	link_shutdown(p->acceptor.link);
	while (!p->acceptor.ends || !p->connector.ends)
		uv_run(&loop, UV_RUN_ONCE);
	assert_int_equal(p->acceptor.frames, 2);
	assert_int_equal(p->acceptor.type, FRAME_GOODBYE);
	assert_int_equal(p->acceptor.error, 0);
	assert_int_equal(p->connector.error, 0);
}

TEST(a_stranger_is_turned_away)
{
	struct handshake_self right = child;
	struct pair p;

	secret_create(&child.secret);
	pair_open(&p);
	while (!p.connector.ends)
		uv_run(&loop, UV_RUN_ONCE);
	assert_int_equal(p.connector.error, -EACCES);
	while (!p.acceptor.ends)
		uv_run(&loop, UV_RUN_ONCE);
	assert_int_equal(p.acceptor.proved, 0);
	assert_true(p.acceptor.error < 0);
	child = right;
	pair_close(&p);
}

PAIR_TEST(a_refused_frame_ends_the_link)
{
	p->acceptor.refuse = -EPROTO;
	while (!p->acceptor.proved)
		uv_run(&loop, UV_RUN_ONCE);
	link_send_bytes(p->connector.link, FRAME_COLLECTIVE, "bad", 4);
	link_send_bytes(p->connector.link, FRAME_COLLECTIVE, "bad", 4);
	while (!p->acceptor.ends || !p->connector.ends)
		uv_run(&loop, UV_RUN_ONCE);
	assert_int_equal(p->acceptor.frames, 1);
	assert_int_equal(p->acceptor.error, -EPROTO);
}

TEST(nobody_there_is_an_error)
{
	struct sockaddr_storage to;
	struct side s = { 0 };
	uint16_t port;
	int rc, held = closed_port(&port);

	to = loopback(port);
	rc = link_connect(&s.link, &loop, &child, 0, &to, &options, &ops, &s);
	if (!rc) {
		uv_run(&loop, UV_RUN_DEFAULT);
		assert_int_equal(s.ends, 1);
		rc = s.error;
	} /* else told at once: also fine */
	close(held);
	assert_int_equal(rc, -ECONNREFUSED);
}

TEST(silent_peer_is_dropped_after_the_limit)
{
	static const struct sockaddr_storage everywhere;
	struct link_options soon = { .handshake_ms = 1 };
	struct sockaddr_storage to;
	struct side s = { 0 };
	uint16_t port;
	int fd = listener_socket(&everywhere, 0, &port); /* never accepts */

	to = loopback(port);
	assert_int_equal(link_connect(&s.link, &loop, &child, 0, &to, &soon,
				      &ops, &s), 0);
	uv_run(&loop, UV_RUN_DEFAULT);
	assert_int_equal(s.ends, 1);
	assert_int_equal(s.error, -ETIMEDOUT);
	close(fd);
}

/* Connected with a listener that has not accepted yet. */
static int accept_readable(int listener)
{
	int fd = accept(listener, NULL, NULL);
	struct pollfd there = { .fd = fd, .events = POLLIN };

	assert_true(fd >= 0);
	assert_int_equal(poll(&there, 1, -1), 1);
	return fd;
}

/* The message is there, and this process has not run since it has come. */
TEST(message_received_in_time_is_not_late)
{
	static const struct sockaddr_storage everywhere;
	const struct link_options patient = { .handshake_ms = UINT32_MAX };
	struct sockaddr_storage to;
	struct side connector = { 0 }, acceptor = { 0 };
	uint16_t port;
	int fd = listener_socket(&everywhere, 0, &port);

	to = loopback(port);
	assert_int_equal(link_connect(&connector.link, &loop, &child, 0, &to,
				      &patient, &ops, &connector), 0);
	while (link_queued(connector.link))
		uv_run(&loop, UV_RUN_ONCE);
	on_accept(&acceptor, accept_readable(fd));
	clock_ahead += 2 * options.handshake_ms / 1000;
	while (!acceptor.proved && !acceptor.ends)
		uv_run(&loop, UV_RUN_ONCE);
	assert_int_equal(acceptor.error, 0);
	assert_int_equal(acceptor.proved, 1);
	link_close(connector.link);
	link_close(acceptor.link);
	uv_run(&loop, UV_RUN_DEFAULT);
	close(fd);
}

/* Bytes that are no message give the peer no more time. */
TEST(half_a_message_is_late)
{
	static const struct sockaddr_storage everywhere;
	struct sockaddr_storage to;
	struct side s = { 0 };
	uint16_t port;
	int fd = listener_socket(&everywhere, 0, &port);
	int stranger = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	to = loopback(port);
	assert_int_equal(connect(stranger, (struct sockaddr *)&to,
				 sizeof(struct sockaddr_in)), 0);
	assert_int_equal(write(stranger, "pmi2x", 5), 5);
	on_accept(&s, accept_readable(fd));
	clock_ahead += 2 * options.handshake_ms / 1000;
	while (!s.ends)
		uv_run(&loop, UV_RUN_ONCE);
	assert_int_equal(s.error, -ETIMEDOUT);
	uv_run(&loop, UV_RUN_DEFAULT);
	close(stranger);
	close(fd);
}

static int set_up(void **state)
{
	child = parent = (struct handshake_self){
		.jobid = "1.0",
		.build = "test",
	};
	secret_create(&child.secret);
	parent.secret = child.secret;
	child.position = 5;
	return uv_loop_init(&loop);
}

static int tear_down(void **state)
{
	return uv_loop_close(&loop);
}

int main(void)
{
	return unit_run(NULL, set_up, tear_down);
}
