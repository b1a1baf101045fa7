/* SPDX-License-Identifier: BSD-3-Clause */
/* Agents: peers that are none, with and without the secret of the step. */
#include "unit.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cluster.h"
#include "libio/link.h"
#include "libio/listener.h"
#include "libio/protocol.h"

static int connect_to(uint16_t port)
{
	struct sockaddr_in in = {
		.sin_family = AF_INET,
		.sin_port = htons(port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(connect(fd, (struct sockaddr *)&in, sizeof(in)), 0);
	return fd;
}

/* More silent connections than an agent keeps; each is dropped in the end. */
CLUSTER_TEST(strangers_who_connect_do_no_harm, 3)
{
	struct timeval patience = { .tv_sec = 60 };
	char got[10];
	int fds[300];

	c->options.handshake_ms = 300;
	cluster_start_all(c);
	for (int i = 0; i < 300; i++) {
		fds[i] = connect_to(cluster_port(c, 0));
		if (i % 3 == 0)
			assert_true(send(fds[i], "GET / HTTP/1.0\r\n\r\n", 18,
					 MSG_NOSIGNAL) == 18);
	}
	cluster_init_all(c);
	cluster_barrier(c);
	for (int i = 0; i < 300; i++) {
		setsockopt(fds[i], SOL_SOCKET, SO_RCVTIMEO, &patience,
			   sizeof(patience));
		assert_true(recv(fds[i], got, sizeof(got), 0) == 0 ||
			    errno == ECONNRESET);
		close(fds[i]);
	}
}

/* A peer that has the step's secret, but not its manners. */
struct peer {
	uv_loop_t loop;
	struct link *link;
	const void *body;
	size_t len;
	enum frame_type type;
	bool as_child; /* waits to be chosen, takes, then misbehaves */
	bool pauses;   /* once it has been chosen, before it takes */
	bool proved;   /* both sides have the step's secret */
	bool chosen;   /* the other side takes it for node 1 */
	bool left;     /* the other side has said goodbye */
	bool ended;
};

static void misbehave(struct peer *p)
{
	link_send_bytes(p->link, p->type, p->body, p->len);
}

static void peer_proved(void *arg, struct link *l)
{
	struct peer *p = arg;

	p->proved = true;
	if (!p->as_child)
		misbehave(p);
}

static int peer_frame(void *arg, struct link *l, enum frame_type type,
		      struct payload *body)
{
	struct peer *p = arg;

	p->left |= type == FRAME_GOODBYE;
	p->chosen |= type == FRAME_CHOSEN;
	if (p->pauses && type == FRAME_CHOSEN) {
		uv_stop(&p->loop);
	} else if (p->as_child && type == FRAME_CHOSEN) {
		link_send(l, FRAME_TAKEN, NULL);
		misbehave(p);
	}
	return 0;
}

static void peer_end(void *arg, struct link *l, int error)
{
	struct peer *p = arg;

	p->ended = true;
	link_close(l);
}

static const struct link_ops peer_ops = {
	.proved = peer_proved,
	.frame = peer_frame,
	.end = peer_end,
};
static const struct link_options peer_options = { .handshake_ms = 60000 };

static struct handshake_self peer_self(const struct cluster *c)
{
	return (struct handshake_self){
		.secret = c->secret,
		.jobid = "7.0",
		.build = "0.1",
		.position = 1,
		.protocol = PROTOCOL_VERSION,
	};
}

/* Connects as node 1 to node 0; returns when it pauses, or the link has ended. */
static void peer_run(struct cluster *c, struct peer *p)
{
	const struct handshake_self self = peer_self(c);
	struct sockaddr_storage to = { 0 };
	struct sockaddr_in *in = (struct sockaddr_in *)&to;

	in->sin_family = AF_INET;
	in->sin_port = htons(cluster_port(c, 0));
	in->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	assert_int_equal(uv_loop_init(&p->loop), 0);
	assert_int_equal(link_connect(&p->link, &p->loop, &self, 0, &to,
				      &peer_options, &peer_ops, p), 0);
	uv_run(&p->loop, UV_RUN_DEFAULT);
}

/* As node 1, to which node 0 has connected; the same. */
static void peer_accept(struct cluster *c, struct peer *p, int listening)
{
	const struct handshake_self self = peer_self(c);
	int fd;

	do {
		fd = accept4(listening, NULL, NULL, SOCK_NONBLOCK);
	} while (fd < 0);
	close(listening);
	assert_int_equal(uv_loop_init(&p->loop), 0);
	assert_int_equal(link_accept(&p->link, &p->loop, &self, fd,
				     &peer_options, &peer_ops, p), 0);
	uv_run(&p->loop, UV_RUN_DEFAULT);
}

/* Until node 0 has closed the link. */
static void peer_finish(struct peer *p)
{
	uv_run(&p->loop, UV_RUN_DEFAULT);
	assert_true(p->ended);
	assert_int_equal(uv_loop_close(&p->loop), 0);
}

static bool has_told(void *arg)
{
	return ((struct cluster *)arg)->tells;
}

/* The connection was slow, so nobody is looking at the clock any more. */
CLUSTER_TEST(a_neighbour_that_never_takes_is_given_up, 2)
{
	static const struct sockaddr_storage everywhere;
	struct peer p = { .as_child = true, .pauses = true };
	uint16_t port;
	int fd;

	c->options.connect_ms = 300;
	fd = listener_socket(&everywhere, cluster_port(c, 1), &port);
	assert_true(fd >= 0);
	cluster_start(c, 0);
	rank_init(c, 0);
	rank_say(c, 0, "cmd=barrier_in");
	cluster_await(c, has_told, c);
	peer_accept(c, &p, fd);
	rank_expect(c, 0, "barrier_failed");
	cluster_expect_log(c, "cannot reach node n1");
	peer_finish(&p);
}

TEST(a_peer_that_breaks_the_rules_is_cut_off)
{
	static const unsigned char junk[64] = { 0xff, 0xff, 0xff, 0xff };
	static const char much[1025] = "Pmi2xPorts=";
	static const struct peer peers[] = {
		{ .type = FRAME_APART, .body = junk, .len = 64 },
		{ .type = FRAME_APART, .body = much, .len = sizeof(much) },
		{ .type = FRAME_CHOSEN },
		{ .type = FRAME_TAKEN, .as_child = true },
		{ .type = FRAME_COLLECTIVE, .body = junk, .len = 64 },
		{ .type = FRAME_COLLECTIVE, .body = junk, .len = 64,
		  .as_child = true },
		{ .type = FRAME_COLLECTIVE, .as_child = true },
		{ .type = FRAME_CONTROL_UP, .body = junk, .len = 64,
		  .as_child = true },
		{ .type = FRAME_CONTROL_DOWN, .body = junk, .len = 64,
		  .as_child = true },
		{ .type = FRAME_GOODBYE, .body = junk, .len = 3,
		  .as_child = true },
		{ .type = FRAME_TYPES, .as_child = true },
	};

	for (size_t i = 0; i < sizeof(peers) / sizeof(*peers); i++) {
		struct peer p = peers[i];
		struct cluster c;

		cluster_open(&c, 3);
		cluster_start(&c, 0);
		peer_run(&c, &p);
		peer_finish(&p);
		cluster_close(&c);
	}
}

/* A peer of the step's user says that it is node 1, whose link is up. */
CLUSTER_TEST(position_of_a_connected_node_is_not_taken_over, 3)
{
	static const unsigned char junk[64] = { 0xff, 0xff, 0xff, 0xff };
	struct peer p = { .type = FRAME_COLLECTIVE, .body = junk,
			  .len = sizeof(junk), .as_child = true };

	cluster_start_pmi(c);
	peer_run(c, &p);
	assert_true(p.proved);
	assert_false(p.chosen);
	peer_finish(&p);
	cluster_barrier(c);
}

/* To the child the link is up, to its parent not yet: it is no death. */
static void leave_while_a_link_settles(struct cluster *c)
{
	struct peer p = { .as_child = true, .pauses = true };

	cluster_start(c, 0);
	peer_run(c, &p);
	rank_close(c, 0);
	cluster_stop(c, 0);
	link_send(p.link, FRAME_TAKEN, NULL);
	peer_finish(&p);
	assert_true(p.left);
	cluster_close(c);
}

TEST(a_node_that_leaves_while_its_link_settles_says_so)
{
	struct cluster c;

	cluster_open(&c, 3);
	leave_while_a_link_settles(&c);
}

/* As above, when its time is up before it would give such a link up. */
TEST(a_node_with_little_time_to_leave_says_so_as_well)
{
	struct cluster c;

	cluster_open(&c, 3);
	c.options.drain_ms = 300;
	leave_while_a_link_settles(&c);
	assert_true(c.unfinished);
}
