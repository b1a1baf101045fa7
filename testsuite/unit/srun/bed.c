/* SPDX-License-Identifier: BSD-3-Clause */
/* srun and agents of the tests of its server. */
#include "bed.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "libio/protocol.h"

uv_loop_t loop;
struct secret secret;
atomic_int failing_copy;

/* ---- memory that srun's threads lack ---- */

struct payload *__real_payload_copy_in(struct budget *budget, const void *data,
				       size_t len);
struct payload *__wrap_payload_copy_in(struct budget *budget, const void *data,
				       size_t len);

static __thread bool has_memory;

struct payload *__wrap_payload_copy_in(struct budget *budget, const void *data,
				       size_t len)
{
	if (!has_memory && failing_copy && !--failing_copy)
		return NULL;
	return __real_payload_copy_in(budget, data, len);
}

/* ---- an agent ---- */

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

void agent_connect(struct agent *a, const struct srun_server *h, const char *jobid,
		   const struct secret *s)
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
				      HANDSHAKE_SRUN, &to, &options, &ops,
				      a), 0);
	while (!a->proved && !a->ended)
		uv_run(&loop, UV_RUN_ONCE);
}

void agent_send(struct agent *a, const struct control_msg *msg)
{
	struct buf b;

	buf_init(&b, CONTROL_FRAME_MAX);
	assert_int_equal(control_pack(&b, msg), 0);
	assert_int_equal(link_send_bytes(a->link, FRAME_CONTROL_UP, b.data,
					 b.len), 0);
	buf_free(&b);
}

void await_replies(struct agent *a, unsigned count)
{
	while (a->replies < count && !a->ended)
		uv_run(&loop, UV_RUN_ONCE);
	assert_int_equal(a->replies, count);
}

int ask(struct agent *a, enum control_type type, const char *name, const char *text)
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

void agent_leave(struct agent *a)
{
	link_send_bytes(a->link, FRAME_GOODBYE, NULL, 0);
	link_shutdown(a->link);
	while (!a->ended)
		uv_run(&loop, UV_RUN_ONCE);
	assert_int_equal(a->error, 0);
	control_free(&a->reply);
}

/* ---- srun ---- */

/* The action of a spawned process, by its program's name. */
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

/* The message of a spawned srun's server when its first rank is there. */
static void write_ready(int fd)
{
	const struct control_msg msg = { .type = CONTROL_READY, .text = "1.9" };
	struct payload *frame;
	struct buf b;

	buf_init(&b, CONTROL_FRAME_MAX);
	control_pack(&b, &msg);
	frame = frame_whole(FRAME_CONTROL_UP, b.data, b.len);
	assert_int_equal(write(fd, frame->data, frame->len), frame->len);
	payload_unref(frame);
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

void start(struct srun_server **out, struct srun *s, const char *jobid, int parent_fd)
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

int set_up(void **state)
{
	has_memory = true;
	secret_create(&secret);
	return uv_loop_init(&loop);
}

int tear_down(void **state)
{
	uv_run(&loop, UV_RUN_DEFAULT);
	return uv_loop_close(&loop);
}
