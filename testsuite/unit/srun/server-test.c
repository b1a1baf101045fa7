/* SPDX-License-Identifier: BSD-3-Clause */
/* srun's end over real sockets: an agent's link, names, strangers, and the end. */
#include "bed.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

TEST(names_are_served)
{
	struct srun s = { 0 };
	struct agent a, b;

	start(&s.server, &s, "1.0", -1);
	agent_connect(&a, s.server, "1.0", &secret);
	agent_connect(&b, s.server, "1.0", &secret);
	assert_int_equal(ask(&a, CONTROL_PUBLISH, "ocean", "port 1"), 0);
	assert_int_equal(ask(&b, CONTROL_LOOKUP, "ocean", NULL), 0);
	assert_string_equal(b.reply.text, "port 1");
	agent_leave(&a); /* one that leaves takes nobody with it */
	assert_int_equal(ask(&b, CONTROL_UNPUBLISH, "ocean", NULL), 0);
	assert_int_not_equal(ask(&b, CONTROL_LOOKUP, "ocean", NULL), 0);
	agent_leave(&b);
	srun_server_stop(s.server, 0);
}

TEST(without_memory_for_a_reply_the_link_ends)
{
	const struct control_msg msg = { .type = CONTROL_LOOKUP, .name = "x" };
	struct srun s = { 0 };
	struct agent a;

	start(&s.server, &s, "1.0", -1);
	agent_connect(&a, s.server, "1.0", &secret);
	failing_copy = 2; /* the request's is the first */
	agent_send(&a, &msg);
	while (!a.ended)
		uv_run(&loop, UV_RUN_ONCE);
	assert_int_equal(a.error, 0);
	assert_int_equal(a.replies, 0);
	agent_connect(&a, s.server, "1.0", &secret);
	assert_int_not_equal(ask(&a, CONTROL_LOOKUP, "x", NULL), 0);
	agent_leave(&a);
	srun_server_stop(s.server, 0);
}

static int option(int fd, int level, int name)
{
	socklen_t len = sizeof(int);
	int value = 0;

	assert_int_equal(getsockopt(fd, level, name, &value, &len), 0);
	return value;
}

/* The end of a link that srun holds. */
static int accepted_by(const struct srun_server *h)
{
	for (int fd = 0; fd < 1024; fd++) {
		struct sockaddr_in6 here = { 0 }, there;
		socklen_t len = sizeof(here), there_len = sizeof(there);

		if (!getsockname(fd, (struct sockaddr *)&here, &len) &&
		    here.sin6_family == AF_INET6 &&
		    ntohs(here.sin6_port) == srun_server_port(h) &&
		    !getpeername(fd, (struct sockaddr *)&there, &there_len))
			return fd;
	}
	return -1;
}

/* The host of an agent may die without a word. */
TEST(silent_agents_are_noticed)
{
	struct srun s = { 0 };
	struct agent a;
	int fd;

	start(&s.server, &s, "1.0", -1);
	agent_connect(&a, s.server, "1.0", &secret);
	fd = accepted_by(s.server);
	assert_true(option(fd, SOL_SOCKET, SO_KEEPALIVE));
	assert_true(option(fd, IPPROTO_TCP, TCP_KEEPIDLE) * 1000 <
		    SRUN_SERVER_DEAD_PEER_MS);
	assert_int_equal(option(fd, IPPROTO_TCP, TCP_USER_TIMEOUT),
			 SRUN_SERVER_DEAD_PEER_MS);
	agent_leave(&a);
	srun_server_stop(s.server, 0);
}

TEST(last_words_are_heard)
{
	const struct control_msg abort = { .type = CONTROL_ABORT, .rank = 7 };
	const struct control_msg report = {
		.type = CONTROL_REPORT, .text = "rank 7 on node n1 was killed",
	};
	struct srun s = { 0 };
	struct agent a;

	start(&s.server, &s, "1.0", -1);
	agent_connect(&a, s.server, "1.0", &secret);
	agent_send(&a, &report);
	agent_send(&a, &abort);
	agent_send(&a, &abort);
	link_send_bytes(a.link, FRAME_GOODBYE, NULL, 0);
	link_close(a.link); /* sent, but nobody need have read it */
	uv_run(&loop, UV_RUN_DEFAULT);
	srun_server_stop(s.server, 0);
	assert_int_equal(s.reports, 1);
	assert_string_equal(s.text, report.text);
	assert_int_equal(s.aborts, 1);
	assert_int_equal(s.abort_rank, 7);
}

/* Nobody answers the question for the ranks that wait for a key. */
static const struct control_msg key_waits = {
	.type = CONTROL_ABORT, .rank = CONTROL_KEY_WAITS, .code = 5, .text = "rank 7 failed",
};

TEST(step_whose_nodes_do_not_say_who_waits_ends)
{
	struct srun s = { 0 };
	struct agent a;
	int pair[2];
	char byte;

	assert_int_equal(pipe(pair), 0);
	s.tells = pair[1];
	start(&s.server, &s, "1.0", -1);
	agent_connect(&a, s.server, "1.0", &secret);
	agent_send(&a, &key_waits);
	link_send_bytes(a.link, FRAME_GOODBYE, NULL, 0);
	link_close(a.link);
	uv_run(&loop, UV_RUN_DEFAULT);
	assert_int_equal(read(pair[0], &byte, 1), 1);
	srun_server_stop(s.server, 0);
	close(pair[0]);
	close(pair[1]);
	assert_int_equal(s.aborts, 1);
	assert_int_equal(s.abort_rank, CONTROL_NO_RANK);
	assert_string_equal(s.text, "rank 7 failed");
}

TEST(failure_is_told_when_the_step_ends_before_nodes_say_who_waits)
{
	struct srun s = { 0 };
	struct agent a;
	int pair[2];

	assert_int_equal(pipe(pair), 0);
	s.tells = pair[1];
	start(&s.server, &s, "1.0", -1);
	agent_connect(&a, s.server, "1.0", &secret);
	agent_send(&a, &key_waits);
	link_send_bytes(a.link, FRAME_GOODBYE, NULL, 0);
	link_close(a.link);
	uv_run(&loop, UV_RUN_DEFAULT);
	srun_server_stop(s.server, 0);
	close(pair[0]);
	close(pair[1]);
	assert_int_equal(s.aborts, 1);
	assert_string_equal(s.text, "rank 7 failed");
}

/* srun alone may know the nodes that are left at the end. */
TEST(an_agent_without_goodbye_ends_the_step)
{
	struct srun s = { 0 };
	struct agent a, b;
	int pair[2];
	char byte;

	assert_int_equal(pipe(pair), 0);
	s.tells = pair[1];
	start(&s.server, &s, "1.0", -1);
	agent_connect(&a, s.server, "1.0", &secret);
	agent_connect(&b, s.server, "1.0", &secret);
	agent_leave(&a); /* in order */
	assert_int_not_equal(ask(&b, CONTROL_LOOKUP, "x", NULL), 0);
	control_free(&b.reply);
	assert_int_equal(s.aborts, 0);
	link_close(b.link);
	uv_run(&loop, UV_RUN_DEFAULT);
	assert_int_equal(read(pair[0], &byte, 1), 1);
	srun_server_stop(s.server, 0);
	close(pair[0]);
	close(pair[1]);
	assert_int_equal(s.abort_rank, CONTROL_NO_RANK);
	assert_non_null(strstr(s.text, "lost the connection to node n0"));
}

TEST(a_stranger_changes_nothing)
{
	struct secret other;
	struct srun s = { 0 };
	struct agent a, b;

	secret_create(&other);
	start(&s.server, &s, "1.0", -1);
	agent_connect(&a, s.server, "1.0", &other);
	assert_true(a.ended);
	assert_int_equal(a.error, -EACCES);
	agent_connect(&a, s.server, "2.0", &secret);
	assert_true(a.ended);
	agent_connect(&b, s.server, "1.0", &secret);
	assert_int_equal(ask(&b, CONTROL_PUBLISH, "a", "p"), 0);
	agent_leave(&b);
	srun_server_stop(s.server, 0);
}

TEST(silent_strangers_do_not_shut_out_an_agent)
{
	int fds[SRUN_SERVER_STRANGERS_MAX + 20];
	const size_t count = sizeof(fds) / sizeof(*fds);
	struct sockaddr_storage to;
	struct srun s = { 0 };
	struct agent a;
	char byte;

	start(&s.server, &s, "1.0", -1);
	to = loopback(srun_server_port(s.server));
	for (size_t i = 0; i < count; i++) {
		fds[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		assert_int_equal(connect(fds[i], (struct sockaddr *)&to,
					 sizeof(struct sockaddr_in)), 0);
	}
	agent_connect(&a, s.server, "1.0", &secret);
	assert_true(a.proved);
	agent_leave(&a);
	assert_true(read(fds[0], &byte, 1) <= 0); /* the oldest had to go */
	for (size_t i = 0; i < count; i++)
		close(fds[i]);
	srun_server_stop(s.server, 0);
}

TEST(nonsense_ends_only_its_link)
{
	struct srun s = { 0 };
	struct agent a, b;

	start(&s.server, &s, "1.0", -1);
	agent_connect(&a, s.server, "1.0", &secret);
	agent_connect(&b, s.server, "1.0", &secret);
	link_send_bytes(a.link, FRAME_CONTROL_UP, "nonsense", 8);
	while (!a.ended)
		uv_run(&loop, UV_RUN_ONCE);
	assert_int_equal(ask(&b, CONTROL_PUBLISH, "a", "p"), 0);
	link_send_bytes(b.link, FRAME_COLLECTIVE, "", 0);
	while (!b.ended)
		uv_run(&loop, UV_RUN_ONCE);
	control_free(&b.reply);
	srun_server_stop(s.server, 0);
}

TEST(a_range_without_a_free_port_is_an_error)
{
	struct srun_server_options options = {
		.secret = secret, .jobid = "1.0", .build = "test",
		.parent_fd = -1,
	};
	const struct srun_server_host host = { 0 };
	struct srun s = { 0 };
	struct srun_server *h;

	start(&s.server, &s, "1.0", -1);
	options.port_first = options.port_last = srun_server_port(s.server);
	assert_int_equal(srun_server_start(&h, &options, &host, NULL), -EADDRINUSE);
	srun_server_stop(s.server, 0);
	assert_int_equal(srun_server_start(&h, &options, &host, NULL), 0);
	assert_int_equal(srun_server_port(h), options.port_first);
	srun_server_stop(h, 0);
}

int main(void)
{
	return unit_run(NULL, set_up, tear_down);
}
