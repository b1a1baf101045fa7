/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * srun's end over real sockets: an agent's link, spawned processes, a spawned
 * step with a server of its own, strangers, and the end.
 */
#include "unit.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "launcher/srun_server.h"
#include "libio/link.h"
#include "libio/protocol.h"
#include "libpmi/control.h"
#include "libpmi/names.h"

static uv_loop_t loop;

/* ---- memory that srun's thread lacks ---- */

struct payload *__real_payload_copy_in(struct budget *budget, const void *data,
				       size_t len);
struct payload *__wrap_payload_copy_in(struct budget *budget, const void *data,
				       size_t len);

static atomic_int fails; /* so many copies from now, from 1; 0: none */
static __thread bool has_memory;

struct payload *__wrap_payload_copy_in(struct budget *budget, const void *data,
				       size_t len)
{
	if (!has_memory && fails && !--fails)
		return NULL;
	return __real_payload_copy_in(budget, data, len);
}

static struct secret secret;

/* ---- an agent ---- */

struct agent {
	struct handshake_self self;
	struct link *link;
	int proved, ended, error;
	unsigned replies;
	struct control_msg reply; /* the last one */
};

static void on_proved(void *arg, struct link *l)
{
	((struct agent *)arg)->proved = 1;
}

static int on_frame(void *arg, struct link *l, enum frame_type type,
		    struct payload *body)
{
	struct agent *a = arg;

	assert_int_equal(type, FRAME_CONTROL_DOWN);
	control_free(&a->reply);
	assert_int_equal(control_unpack(body->data, body->len, &a->reply), 0);
	assert_int_equal(a->reply.type, CONTROL_REPLY);
	a->replies++;
	return 0;
}

static void on_end(void *arg, struct link *l, int error)
{
	struct agent *a = arg;

	a->ended = 1;
	a->error = error;
	link_close(l);
	a->link = NULL;
}

static struct sockaddr_storage loopback(uint16_t port)
{
	struct sockaddr_storage s = { 0 };
	struct sockaddr_in *in = (struct sockaddr_in *)&s;

	in->sin_family = AF_INET;
	in->sin_port = htons(port);
	in->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	return s;
}

static void agent_connect(struct agent *a, const struct srun_server *h,
			  const char *jobid, const struct secret *s)
{
	static const struct link_ops ops = {
		.proved = on_proved,
		.frame = on_frame,
		.end = on_end,
	};
	static const struct link_options options = { .handshake_ms = 60000 };
	struct sockaddr_storage to = loopback(srun_server_port(h));

	memset(a, 0, sizeof(*a));
	a->self.jobid = jobid;
	a->self.build = "test";
	a->self.protocol = PROTOCOL_VERSION;
	a->self.secret = *s;
	assert_int_equal(link_connect(&a->link, &loop, &a->self,
				      HANDSHAKE_LAUNCHER, &to, &options, &ops,
				      a), 0);
	while (!a->proved && !a->ended)
		uv_run(&loop, UV_RUN_ONCE);
}

static void agent_send(struct agent *a, const struct control_msg *msg)
{
	struct buf b;

	buf_init(&b, CONTROL_FRAME_MAX);
	assert_int_equal(control_pack(&b, msg), 0);
	assert_int_equal(link_send_bytes(a->link, FRAME_CONTROL_UP, b.data,
					 b.len), 0);
	buf_free(&b);
}

static void await_replies(struct agent *a, unsigned count)
{
	while (a->replies < count && !a->ended)
		uv_run(&loop, UV_RUN_ONCE);
	assert_int_equal(a->replies, count);
}

/* Ask and return the code of the answer. */
static int ask(struct agent *a, enum control_type type, const char *name,
	       const char *text)
{
	const struct control_msg msg = {
		.type = type, .origin = 2, .id = 40 + a->replies,
		.name = (char *)name, .text = (char *)text,
	};
	unsigned before = a->replies;

	agent_send(a, &msg);
	await_replies(a, before + 1);
	assert_int_equal(a->reply.origin, 2);
	assert_int_equal(a->reply.id, 40 + before);
	return a->reply.code;
}

static void request_spawn(struct agent *a, const char *program, uint32_t id)
{
	struct spawn_request *s = spawn_new();
	struct control_msg msg = { .type = CONTROL_SPAWN, .id = id };
	struct buf body;

	spawn_add_command(s);
	spawn_set_program(s, program, strlen(program));
	spawn_set_nprocs(s, 1);
	buf_init(&body, CONTROL_BODY_MAX);
	spawn_pack(&body, s);
	msg.body = body.data;
	msg.body_len = body.len;
	agent_send(a, &msg);
	buf_free(&body);
	spawn_free(s);
}

/* Spawn and return the code of the answer. */
static int spawn(struct agent *a, const char *program)
{
	unsigned before = a->replies;

	request_spawn(a, program, 0);
	await_replies(a, before + 1);
	return a->reply.code;
}

static void agent_leave(struct agent *a)
{
	link_send_bytes(a->link, FRAME_GOODBYE, NULL, 0);
	link_shutdown(a->link);
	while (!a->ended)
		uv_run(&loop, UV_RUN_ONCE);
	assert_int_equal(a->error, 0);
	control_free(&a->reply);
}

/* ---- srun ---- */

struct srun {
	struct srun_server *server;
	struct srun_server *spawned; /* of the program "step" */
	pid_t pid;           /* of the last spawned process */
	int hold;            /* spawned processes read it before they end */
	int tells;           /* it knows nodes, and writes here of an abort */
	atomic_int aborts; /* read while srun's server runs */
	int reports;
	uint32_t abort_rank;
	char text[128];
};

static void start(struct srun_server **out, struct srun *s, const char *jobid,
		  int parent_fd);

/* What a spawned process does, by its program's name. */
static void child_main(const char *program, int hold, int channel)
{
	sigset_t none;
	char c;

	for (int fd = 3; fd < 1024; fd++) /* as exec would */
		if (fd != hold && fd != channel)
			close(fd);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	if (!strcmp(program, "fails") || !strcmp(program, "brief"))
		_exit(3);
	if (!strcmp(program, "killed"))
		raise(SIGKILL);
	if (!strcmp(program, "step") || !strcmp(program, "stays") ||
	    !strcmp(program, "runs"))
		while (read(hold, &c, 1) < 0)
			;
	_exit(0);
}

/* What srun's server of a spawned srun says when its first rank is there. */
static void write_ready(int fd)
{
	const struct control_msg msg = { .type = CONTROL_READY, .text = "1.9" };
	struct payload *header;
	struct buf b;

	buf_init(&b, CONTROL_FRAME_MAX);
	control_pack(&b, &msg);
	header = frame_header(FRAME_CONTROL_UP, NULL, 0, b.len);
	assert_int_equal(write(fd, header->data, header->len), header->len);
	assert_int_equal(write(fd, b.data, b.len), b.len);
	payload_unref(header);
	buf_free(&b);
}

static pid_t on_spawn(void *arg, uint32_t serial,
		      const struct spawn_request *request, int *fd)
{
	struct srun *s = arg;
	const char *program = request->commands[0].program;
	int pair[2];

	if (!strcmp(program, "unstartable"))
		return -ENOENT;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair))
		return -errno;
	if (!strcmp(program, "brief") || !strcmp(program, "runs"))
		write_ready(pair[1]);
	s->pid = fork();
	if (s->pid == 0)
		child_main(program, s->hold,
			   strcmp(program, "step") ? pair[1] : -1);
	*fd = pair[0];
	if (!strcmp(program, "step"))
		start(&s->spawned, s, "1.1", pair[1]);
	else
		close(pair[1]);
	return s->pid;
}

static void on_abort(void *arg, uint32_t rank, int code, const char *text)
{
	struct srun *s = arg;

	s->aborts++;
	s->abort_rank = rank;
	if (!s->tells)
		return;
	snprintf(s->text, sizeof(s->text), "%s", text);
	assert_int_equal(write(s->tells, "", 1), 1);
}

static uint32_t three_nodes(void *arg)
{
	return 3;
}

static const char *node_name(void *arg, uint32_t position)
{
	static const char *const names[] = { "n0", "n1", "n2" };

	return names[position];
}

static void on_report(void *arg, const char *text)
{
	struct srun *s = arg;

	s->reports++;
	snprintf(s->text, sizeof(s->text), "%s", text);
}

static void start(struct srun_server **out, struct srun *s, const char *jobid,
		  int parent_fd)
{
	const struct srun_server_options options = {
		.secret = secret,
		.jobid = jobid,
		.build = "test",
		.parent_fd = parent_fd,
		.handshake_ms = 60000,
	};
	const struct srun_server_host host = {
		.spawn = on_spawn,
		.abort = on_abort,
		.report = on_report,
		.nodes = s->tells ? three_nodes : NULL,
		.node_name = node_name,
		.arg = s,
	};

	assert_int_equal(srun_server_start(out, &options, &host, NULL), 0);
	assert_int_not_equal(srun_server_port(*out), 0);
}

/* ---- tests ---- */

static void names_are_served(void **state)
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

static void without_memory_for_a_reply_the_link_ends(void **state)
{
	const struct control_msg msg = { .type = CONTROL_LOOKUP, .name = "x" };
	struct srun s = { 0 };
	struct agent a;

	start(&s.server, &s, "1.0", -1);
	agent_connect(&a, s.server, "1.0", &secret);
	fails = 2; /* the request's is the first */
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
static void silent_agents_are_noticed(void **state)
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

static void last_words_are_heard(void **state)
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

/* srun alone may know the nodes that are left at the end. */
static void an_agent_without_goodbye_ends_the_step(void **state)
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

static void a_stranger_changes_nothing(void **state)
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

static void silent_strangers_do_not_shut_out_an_agent(void **state)
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

static void nonsense_ends_only_its_link(void **state)
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

static void a_spawn_that_ends_early_is_answered(void **state)
{
	struct srun s = { 0 };
	struct agent a;

	start(&s.server, &s, "1.0", -1);
	agent_connect(&a, s.server, "1.0", &secret);
	assert_int_equal(spawn(&a, "brief"), 0); /* it was there, then failed */
	assert_string_equal(a.reply.text, "1.9");
	assert_int_not_equal(spawn(&a, "fails"), 0);
	assert_string_equal(a.reply.text, "srun ended with exit code 3 before "
			    "the first process started");
	assert_int_not_equal(spawn(&a, "killed"), 0);
	assert_string_equal(a.reply.text, "srun was killed by signal 9 before "
			    "the first process started");
	assert_int_not_equal(spawn(&a, "unstartable"), 0);
	assert_int_equal(spawn(&a, "quiet"), 0);
	assert_int_equal(waitpid(s.pid, NULL, WNOHANG), -1); /* reaped */
	agent_leave(&a);
	srun_server_stop(s.server, 0);
}

static void a_spawned_step_that_never_starts_is_no_success(void **state)
{
	struct control_msg ready = {
		.type = CONTROL_READY, .code = 1, .text = "rank 0 has ended",
	};
	struct srun s = { 0 };
	struct agent a, b;
	int hold[2];

	assert_int_equal(pipe(hold), 0);
	s.hold = hold[0];
	start(&s.server, &s, "1.0", -1);
	agent_connect(&a, s.server, "1.0", &secret);
	request_spawn(&a, "step", 5);
	assert_int_not_equal(ask(&a, CONTROL_LOOKUP, "a", NULL), 0); /* that waits */
	agent_connect(&b, s.spawned, "1.1", &secret);
	agent_send(&b, &ready);
	await_replies(&a, 2);
	assert_int_equal(a.reply.id, 5);
	assert_int_not_equal(a.reply.code, 0);
	assert_string_equal(a.reply.text, "rank 0 has ended");
	agent_leave(&b);
	srun_server_stop(s.spawned, 0);
	agent_leave(&a);
	close(hold[1]);
	srun_server_stop(s.server, UINT32_MAX);
	close(hold[0]);
}

static void a_spawned_step_uses_its_parents_names(void **state)
{
	const struct control_msg ready = { .type = CONTROL_READY };
	struct srun s = { 0 };
	struct agent a, b;
	int hold[2];

	assert_int_equal(pipe(hold), 0);
	s.hold = hold[0];
	start(&s.server, &s, "1.0", -1);
	agent_connect(&a, s.server, "1.0", &secret);
	assert_int_equal(ask(&a, CONTROL_PUBLISH, "before", "p"), 0);

	/* The answer comes when the first process of the step is there. */
	request_spawn(&a, "step", 5);
	assert_int_equal(ask(&a, CONTROL_LOOKUP, "before", NULL), 0);

	agent_connect(&b, s.spawned, "1.1", &secret);
	agent_send(&b, &ready);
	await_replies(&a, 3);
	assert_int_equal(a.reply.id, 5);
	assert_int_equal(a.reply.code, 0);
	assert_string_equal(a.reply.text, "1.1");

	assert_int_equal(ask(&b, CONTROL_LOOKUP, "before", NULL), 0);
	assert_string_equal(b.reply.text, "p");
	assert_int_equal(ask(&b, CONTROL_PUBLISH, "after", "q"), 0);
	assert_int_equal(ask(&a, CONTROL_LOOKUP, "after", NULL), 0);
	assert_string_equal(a.reply.text, "q");
	assert_int_not_equal(ask(&b, CONTROL_PUBLISH, "after", "r"), 0);

	agent_leave(&b);
	srun_server_stop(s.spawned, 0);
	assert_int_equal(ask(&a, CONTROL_LOOKUP, "after", NULL), 0);
	agent_leave(&a);
	close(hold[1]); /* the spawned process ends */
	srun_server_stop(s.server, UINT32_MAX);
	close(hold[0]);
}

static void names_fail_when_the_parent_is_gone(void **state)
{
	const struct control_msg lookup = {
		.type = CONTROL_LOOKUP, .name = "a",
	};
	struct srun s = { 0 };
	struct agent a;
	int pair[2];
	char first;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0,
				    pair), 0);
	start(&s.server, &s, "1.1", pair[1]);
	agent_connect(&a, s.server, "1.1", &secret);
	agent_send(&a, &lookup);
	assert_int_equal(read(pair[0], &first, 1), 1); /* it asks */
	close(pair[0]);
	await_replies(&a, 1);
	assert_int_not_equal(a.reply.code, 0);
	assert_int_not_equal(ask(&a, CONTROL_LOOKUP, "a", NULL), 0);
	agent_leave(&a);
	srun_server_stop(s.server, 0);
}

/* ---- who waits for a step that has ended ---- */

/* A look-up of PMIx for what the namespace is to publish. */
static void wait_for_namespace(struct agent *a, const char *waiting, const char *nspace)
{
	struct names_item item = { .key = "x", .from.nspace = nspace };
	const struct names_request r = {
		.op = NAMES_LOOKUP, .range = NAMES_OF_SESSION, .items = &item,
		.count = 1, .wait = 1,
	};
	struct control_msg msg = {
		.type = CONTROL_NAMES, .name = (char *)waiting, .text = (char *)"n0",
	};
	struct buf b;

	buf_init(&b, NAMES_BYTES_MAX);
	assert_int_equal(names_pack_request(&b, &r), 0);
	msg.body = b.data;
	msg.body_len = b.len;
	agent_send(a, &msg);
	buf_free(&b);
}

static void a_spawned_step_that_ends_is_not_waited_for(void **state)
{
	struct srun s = { 0 };
	struct agent a;
	int hold[2];

	assert_int_equal(pipe(hold), 0);
	s.hold = hold[0];
	start(&s.server, &s, "1.0", -1);
	agent_connect(&a, s.server, "1.0", &secret);
	assert_int_equal(spawn(&a, "runs"), 0); /* its step is 1.9 */
	wait_for_namespace(&a, "pmi2x.1.0", "pmi2x.1.9");
	assert_int_not_equal(ask(&a, CONTROL_LOOKUP, "a", NULL), 0); /* that waits */
	close(hold[1]);
	await_replies(&a, a.replies + 1);
	agent_leave(&a);
	srun_server_stop(s.server, 0);
	assert_int_equal(s.reports, 1);
	assert_string_equal(s.text, "pmi2x.1.0 cannot connect with pmi2x.1.9, which has ended without it");
	close(hold[0]);
}

static void *stop(void *server)
{
	srun_server_stop(server, UINT32_MAX);
	return NULL;
}

static void the_spawning_step_that_ends_is_not_waited_for(void **state)
{
	const struct control_msg ready = { .type = CONTROL_READY };
	struct srun s = { 0 };
	struct agent a, b;
	pthread_t thread;
	int hold[2];

	assert_int_equal(pipe(hold), 0);
	s.hold = hold[0];
	start(&s.server, &s, "1.0", -1);
	agent_connect(&a, s.server, "1.0", &secret);
	request_spawn(&a, "step", 5);
	assert_int_not_equal(ask(&a, CONTROL_LOOKUP, "a", NULL), 0);
	agent_connect(&b, s.spawned, "1.1", &secret);
	agent_send(&b, &ready);
	await_replies(&a, a.replies + 1);
	wait_for_namespace(&b, "pmi2x.1.1", "pmi2x.1.0");
	agent_leave(&a);
	assert_int_equal(pthread_create(&thread, NULL, stop, s.server), 0);
	await_replies(&b, 1); /* while srun waits for the spawned step */
	agent_leave(&b);
	srun_server_stop(s.spawned, 0);
	close(hold[1]);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_string_equal(s.text, "pmi2x.1.1 cannot connect with pmi2x.1.0, which has ended without it");
	close(hold[0]);
}

/*
 * The step ends while a program that it has spawned still runs: one that has started
 * PMI, or one that has not.
 */
static void end_before_a_child(bool ready, uint32_t wait_ms)
{
	struct srun s = { 0 };
	struct agent a;
	int hold[2];

	assert_int_equal(pipe(hold), 0);
	s.hold = hold[0];
	start(&s.server, &s, "1.0", -1);
	agent_connect(&a, s.server, "1.0", &secret);
	if (ready)
		assert_int_equal(spawn(&a, "runs"), 0);
	else
		request_spawn(&a, "stays", 0);
	assert_int_not_equal(ask(&a, CONTROL_LOOKUP, "a", NULL), 0);
	agent_leave(&a);
	srun_server_stop(s.server, wait_ms);
	assert_int_equal(waitpid(s.pid, NULL, WNOHANG), -1); /* reaped */
	close(hold[0]);
	close(hold[1]);
}

static void children_that_stay_are_terminated(void **state)
{
	end_before_a_child(true, 0);
}

/* Its spawn was not answered, so that the rank that asked for it is dead. */
static void a_child_that_nobody_waits_for_is_terminated(void **state)
{
	end_before_a_child(false, UINT32_MAX);
}

static void a_range_without_a_free_port_is_an_error(void **state)
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

static int set_up(void **state)
{
	secret_create(&secret);
	return uv_loop_init(&loop);
}

static int tear_down(void **state)
{
	uv_run(&loop, UV_RUN_DEFAULT);
	return uv_loop_close(&loop);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_are_served),
		cmocka_unit_test(without_memory_for_a_reply_the_link_ends),
		cmocka_unit_test(silent_agents_are_noticed),
		cmocka_unit_test(last_words_are_heard),
		cmocka_unit_test(an_agent_without_goodbye_ends_the_step),
		cmocka_unit_test(a_stranger_changes_nothing),
		cmocka_unit_test(silent_strangers_do_not_shut_out_an_agent),
		cmocka_unit_test(nonsense_ends_only_its_link),
		cmocka_unit_test(a_spawn_that_ends_early_is_answered),
		cmocka_unit_test(a_spawned_step_that_never_starts_is_no_success),
		cmocka_unit_test(a_spawned_step_uses_its_parents_names),
		cmocka_unit_test(names_fail_when_the_parent_is_gone),
		cmocka_unit_test(a_spawned_step_that_ends_is_not_waited_for),
		cmocka_unit_test(the_spawning_step_that_ends_is_not_waited_for),
		cmocka_unit_test(children_that_stay_are_terminated),
		cmocka_unit_test(a_child_that_nobody_waits_for_is_terminated),
		cmocka_unit_test(a_range_without_a_free_port_is_an_error),
	};

	has_memory = true;
	return cmocka_run_group_tests_name("srun-server", tests, set_up, tear_down);
}
