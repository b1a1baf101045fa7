/* SPDX-License-Identifier: BSD-3-Clause */
/* Agents: links in any order of events, ends of ranks and nodes, draining. */
#include "unit.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent-cluster.h"
#include "libio/link.h"
#include "libio/listener.h"
#include "libio/protocol.h"
#include "libio/registration.h"

static void barrier(struct cluster *c)
{
	for (uint32_t i = 0; i < c->nodes; i++)
		rank_say(c, i, "cmd=barrier_in");
	for (uint32_t i = 0; i < c->nodes; i++)
		rank_expect(c, i, "cmd=barrier_out");
}

static void init_all(struct cluster *c)
{
	for (uint32_t i = 0; i < c->nodes; i++)
		rank_init(c, i);
}

static void five_nodes_fence_and_get(void **state)
{
	struct cluster c;

	cluster_open(&c, 5);
	cluster_start_all(&c);
	init_all(&c);
	for (uint32_t i = 0; i < 5; i++) {
		char line[100];

		snprintf(line, sizeof(line),
			 "cmd=put kvsname=7.0 key=k%u value=v%u", i, i);
		rank_say(&c, i, line);
		rank_expect(&c, i, "rc=0");
	}
	barrier(&c);
	for (uint32_t i = 0; i < 5; i++) {
		rank_say(&c, i, "cmd=get kvsname=7.0 key=k3");
		rank_expect(&c, i, "value=v3");
	}
	barrier(&c);
	assert_string_equal(c.text, "");
	cluster_close(&c);
}

static bool has_ipv6(void)
{
	struct sockaddr_in6 in = { .sin6_family = AF_INET6 };
	int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
	bool has;

	in.sin6_addr = in6addr_loopback;
	has = fd >= 0 && !bind(fd, (struct sockaddr *)&in, sizeof(in));
	close(fd);
	return has;
}

/* Who looks for them at 127.0.0.1 finds nobody. */
static void nodes_of_ipv6_alone(void **state)
{
	const struct sockaddr_in6 one = {
		.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT,
	};
	struct cluster c;

	if (!has_ipv6())
		skip();
	cluster_open(&c, 5);
	c.ipv6 = true;
	memcpy(&c.options.bind, &one, sizeof(one));
	cluster_start_all(&c);
	init_all(&c);
	barrier(&c);
	assert_string_equal(c.text, "");
	cluster_close(&c);
}

/* All listen in a network of which node_address knows nothing. */
static void a_network_of_their_own(void **state)
{
	struct sockaddr_in here = {
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(0x7f4d4d01),
	};
	struct cluster c;

	cluster_open(&c, 5);
	memcpy(&c.options.bind, &here, sizeof(here));
	c.options.addresses_told = true;
	c.nowhere = true;
	cluster_start_all(&c);
	init_all(&c);
	barrier(&c);
	assert_string_equal(c.text, "");
	cluster_close(&c);
	assert_true(c.tells >= 4);
}

static void who_does_not_tell_is_named(void **state)
{
	struct sockaddr_in here = {
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(0x7f4d4d01),
	};
	struct cluster c;

	cluster_open(&c, 3);
	memcpy(&c.options.bind, &here, sizeof(here));
	c.options.addresses_told = true;
	c.options.connect_ms = 200;
	cluster_start(&c, 1);
	rank_init(&c, 1);
	rank_say(&c, 1, "cmd=barrier_in");
	rank_expect(&c, 1, "barrier_failed");
	cluster_expect_log(&c, "node n0 has not told node n1");
	cluster_expect_log(&c, "Pmi2xNetwork");
	cluster_close(&c);
}

static void a_late_parent_is_found(void **state)
{
	struct cluster c;

	cluster_open(&c, 3);
	cluster_start(&c, 2);
	cluster_start(&c, 1);
	rank_init(&c, 1);
	rank_init(&c, 2);
	rank_say(&c, 1, "cmd=barrier_in");
	rank_say(&c, 2, "cmd=barrier_in");
	cluster_start(&c, 0);
	rank_init(&c, 0);
	rank_say(&c, 0, "cmd=barrier_in");
	for (uint32_t i = 0; i < 3; i++)
		rank_expect(&c, i, "cmd=barrier_out");
	cluster_close(&c);
}

/* Somebody else sits on the ports of parent and child, and answers nothing. */
static void strangers_on_the_ports_do_no_harm(void **state)
{
	static const struct sockaddr_storage everywhere;
	struct cluster c;
	uint16_t port;
	int fds[2];

	cluster_open(&c, 5);
	c.options.handshake_ms = 500;
	fds[0] = listener_socket(&everywhere, cluster_port(&c, 0), &port);
	fds[1] = listener_socket(&everywhere, cluster_port(&c, 1), &port);
	assert_true(fds[0] >= 0 && fds[1] >= 0);
	cluster_start_all(&c);
	init_all(&c);
	barrier(&c);
	cluster_close(&c);
	assert_true(c.tells > 0);
	close(fds[0]);
	close(fds[1]);
}

/* Another step of another user answers, with another secret. */
static void another_steps_agents_are_not_taken_for_ours(void **state)
{
	struct cluster ours, theirs;

	cluster_open(&ours, 3);
	cluster_open(&theirs, 3);
	ours.options.port_last = ours.port_first + 5; /* they are bound to meet */
	theirs.options.port_first = ours.options.port_first;
	theirs.options.port_last = ours.options.port_last;
	cluster_start_all(&theirs);
	cluster_start_all(&ours);
	init_all(&ours);
	init_all(&theirs);
	barrier(&ours);
	barrier(&theirs);
	cluster_close(&ours);
	cluster_close(&theirs);
}

/* Ports that nobody can guess: all is told, in the form slurmd uses. */
static void what_is_told_is_enough(void **state)
{
	struct cluster c;

	cluster_open(&c, 3);
	c.options.port_first = c.options.port_last = 0;
	cluster_start_all(&c);
	init_all(&c);
	barrier(&c);
	cluster_close(&c);
}

static void a_parent_that_never_comes_is_named(void **state)
{
	struct cluster c;

	cluster_open(&c, 3);
	c.options.connect_ms = 300;
	cluster_start(&c, 1);
	rank_init(&c, 1);
	rank_say(&c, 1, "cmd=barrier_in");
	rank_expect(&c, 1, "barrier_failed");
	cluster_expect_log(&c, "cannot reach node n0");
	cluster_expect_log(&c, "Pmi2xPorts");
	cluster_close(&c);
}

static void a_child_that_never_comes_is_named(void **state)
{
	struct cluster c;

	cluster_open(&c, 3);
	c.options.connect_ms = 100;
	cluster_start(&c, 0);
	cluster_start(&c, 1);
	rank_init(&c, 0);
	rank_init(&c, 1);
	for (uint32_t i = 0; i < 2; i++)
		rank_say(&c, i, "cmd=barrier_in");
	for (uint32_t i = 0; i < 2; i++)
		rank_expect(&c, i, "barrier_failed");
	cluster_expect_log(&c, "cannot reach node n2");
	cluster_expect_log(&c, "unless its ranks ended without PMI");
	cluster_close(&c);
}

static void mixed_builds_work_together(void **state)
{
	struct cluster c;

	cluster_open(&c, 3);
	c.steps[2].build = "0.2";
	cluster_start_all(&c);
	init_all(&c);
	barrier(&c);
	assert_string_equal(c.text, "");
	cluster_close(&c);
}

static void mixed_protocols_are_refused_by_name(void **state)
{
	struct cluster c;

	cluster_open(&c, 3);
	c.options.protocol = 4;
	cluster_start(&c, 0);
	cluster_start(&c, 1);
	c.options.protocol = 5;
	c.steps[2].build = "0.2";
	cluster_start(&c, 2);
	init_all(&c);
	for (uint32_t i = 0; i < 3; i++)
		rank_say(&c, i, "cmd=barrier_in");
	for (uint32_t i = 0; i < 3; i++)
		rank_expect(&c, i, "barrier_failed");
	cluster_expect_log(&c, "node n2 speaks protocol 5 (build 0.2), "
			       "node n0 protocol 4 (build 0.1): "
			       "install one version of pmi2x on all nodes");
	cluster_expect_log(&c, "node n0 speaks protocol 4 (build 0.1), "
			       "node n2 protocol 5 (build 0.2):");
	cluster_close(&c);
}

/* ---- hostile connections ---- */

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
static void strangers_who_connect_do_no_harm(void **state)
{
	struct timeval patience = { .tv_sec = 60 };
	struct cluster c;
	char got[10];
	int fds[300];

	cluster_open(&c, 3);
	c.options.handshake_ms = 300;
	cluster_start_all(&c);
	for (int i = 0; i < 300; i++) {
		fds[i] = connect_to(cluster_port(&c, 0));
		if (i % 3 == 0)
			assert_true(send(fds[i], "GET / HTTP/1.0\r\n\r\n", 18,
					 MSG_NOSIGNAL) == 18);
	}
	init_all(&c);
	barrier(&c);
	for (int i = 0; i < 300; i++) {
		setsockopt(fds[i], SOL_SOCKET, SO_RCVTIMEO, &patience,
			   sizeof(patience));
		assert_true(recv(fds[i], got, sizeof(got), 0) == 0 ||
			    errno == ECONNRESET);
		close(fds[i]);
	}
	cluster_close(&c);
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

	if (!p->as_child)
		misbehave(p);
}

static int peer_frame(void *arg, struct link *l, enum frame_type type,
		      struct payload *body)
{
	struct peer *p = arg;

	p->left |= type == FRAME_GOODBYE;
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
static void a_neighbour_that_never_takes_is_given_up(void **state)
{
	static const struct sockaddr_storage everywhere;
	struct peer p = { .as_child = true, .pauses = true };
	struct cluster c;
	uint16_t port;
	int fd;

	cluster_open(&c, 2);
	c.options.connect_ms = 300;
	fd = listener_socket(&everywhere, cluster_port(&c, 1), &port);
	assert_true(fd >= 0);
	cluster_start(&c, 0);
	rank_init(&c, 0);
	rank_say(&c, 0, "cmd=barrier_in");
	cluster_await(&c, has_told, &c);
	peer_accept(&c, &p, fd);
	rank_expect(&c, 0, "barrier_failed");
	cluster_expect_log(&c, "cannot reach node n1");
	peer_finish(&p);
	cluster_close(&c);
}

static void a_peer_that_breaks_the_rules_is_cut_off(void **state)
{
	static const unsigned char junk[64] = { 0xff, 0xff, 0xff, 0xff };
	static const struct peer peers[] = {
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

static void a_node_that_leaves_while_its_link_settles_says_so(void **state)
{
	struct cluster c;

	cluster_open(&c, 3);
	leave_while_a_link_settles(&c);
}

/* The same when its time is up before it would give such a link up. */
static void a_node_with_little_time_to_leave_says_so_as_well(void **state)
{
	struct cluster c;

	cluster_open(&c, 3);
	c.options.drain_ms = 300;
	leave_while_a_link_settles(&c);
}

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
		die_as_rank(starter_registration_fd(c.agents[2]), grandchild,
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

static void a_dead_rank_fails_the_others(void **state)
{
	a_death_fails_the_barrier(false);
}

static void a_grandchild_does_not_hide_a_death(void **state)
{
	a_death_fails_the_barrier(true);
}

static void a_slot_is_registered_once(void **state)
{
	struct cluster c;
	char got[10];
	int reg, fd;

	cluster_open(&c, 1);
	cluster_start_all(&c);
	rank_init(&c, 0);
	reg = starter_registration_fd(c.agents[0]);
	assert_int_equal(registration_of_rank(reg, 0, &fd), 0);
	assert_int_equal(read(fd, got, sizeof(got)), 0); /* closed */
	close(fd);
	assert_int_equal(registration_of_rank(reg, 1, &fd), 0);
	assert_int_equal(read(fd, got, sizeof(got)), 0);
	close(fd);
	cluster_expect_log(&c, "local rank 0: it is there already");
	cluster_expect_log(&c, "local rank 1: there is none");
	rank_say(&c, 0, "cmd=barrier_in");
	rank_expect(&c, 0, "cmd=barrier_out"); /* unharmed */
	cluster_close(&c);
}

static void a_rank_that_does_not_read_is_dropped_alone(void **state)
{
	struct cluster c;
	int sent = 0;

	cluster_open(&c, 1);
	cluster_start_all(&c);
	rank_init(&c, 0);
	while (send(c.pmi[0], "cmd=get_maxes\n", 14,
		    MSG_NOSIGNAL | MSG_DONTWAIT) == 14 && sent < 10000000)
		sent++;
	assert_true(sent < 10000000); /* the agent has stopped reading */
	cluster_close(&c);
}

/* ---- ends of nodes ---- */

/* The parent leaves as soon as its own rank is done: the children lose nothing. */
static void a_leaving_node_owes_nothing(void **state)
{
	for (int round = 0; round < 20; round++) {
		struct cluster c;

		cluster_open(&c, 5);
		cluster_start_all(&c);
		init_all(&c);
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

static void nothing_is_left_behind(void **state)
{
	unsigned before = descriptors(), alone = threads();
	struct cluster c;

	cluster_open(&c, 5); /* never used: stops at once */
	cluster_start_all(&c);
	cluster_close(&c);
	assert_int_equal(descriptors(), before);
	assert_int_equal(threads(), alone);

	cluster_open(&c, 5);
	cluster_start_all(&c);
	init_all(&c);
	barrier(&c);
	cluster_close(&c);
	assert_int_equal(descriptors(), before);
	assert_int_equal(threads(), alone);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(five_nodes_fence_and_get),
		cmocka_unit_test(nodes_of_ipv6_alone),
		cmocka_unit_test(a_network_of_their_own),
		cmocka_unit_test(who_does_not_tell_is_named),
		cmocka_unit_test(a_late_parent_is_found),
		cmocka_unit_test(strangers_on_the_ports_do_no_harm),
		cmocka_unit_test(another_steps_agents_are_not_taken_for_ours),
		cmocka_unit_test(what_is_told_is_enough),
		cmocka_unit_test(a_parent_that_never_comes_is_named),
		cmocka_unit_test(a_child_that_never_comes_is_named),
		cmocka_unit_test(mixed_builds_work_together),
		cmocka_unit_test(mixed_protocols_are_refused_by_name),
		cmocka_unit_test(strangers_who_connect_do_no_harm),
		cmocka_unit_test(a_peer_that_breaks_the_rules_is_cut_off),
		cmocka_unit_test(a_neighbour_that_never_takes_is_given_up),
		cmocka_unit_test(a_node_that_leaves_while_its_link_settles_says_so),
		cmocka_unit_test(a_node_with_little_time_to_leave_says_so_as_well),
		cmocka_unit_test(a_dead_rank_fails_the_others),
		cmocka_unit_test(a_grandchild_does_not_hide_a_death),
		cmocka_unit_test(a_slot_is_registered_once),
		cmocka_unit_test(a_rank_that_does_not_read_is_dropped_alone),
		cmocka_unit_test(a_leaving_node_owes_nothing),
		cmocka_unit_test(nothing_is_left_behind),
	};

	return cmocka_run_group_tests_name("agent", tests, NULL, NULL);
}
