/* SPDX-License-Identifier: BSD-3-Clause */
/* Processes that write complete output, as the daemon sees them: output_writer.h. */
#include "dvm/node/output_writer.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#include "dvm/node/output_file.h"
#include "libio/fd.h"
#include "libutil/array.h"

#define WHY_ROOM 128

/*
 * The life of a writer.
 *
 *   WRITES --> ENDS    all was given; its process is to answer
 *   WRITES --> LOST    its process was given up, or has died: `why`
 *   ENDS, LOST --> OVER    the answer is to be reported by the loop, after the end
 */
enum writer_state { WRITES, ENDS, LOST, OVER };

struct output_writer {
	struct output_writers *of;
	uint32_t part;
	enum writer_state state;
	int fd; /* to the process */
	pid_t process;
	uv_poll_t poll;
	uv_timer_t timer; /* of a process that takes nothing; of OVER: for the report */
	uint64_t waits_ms; /* when the part began to wait; 0: it does not */
	int handles;
	bool full;
	struct buf left; /* messages that the socket has not taken, each behind its length */
	char answer[OUTPUT_FILE_ANSWER];
	size_t answer_len;
	char why[WHY_ROOM];
	UT_hash_handle hh;
};

struct output_writers {
	uv_loop_t *loop;
	uint32_t stall_ms;
	struct output_writers_ops ops;
	void *arg;
	struct output_writer *all;
	pid_t *ended; /* processes that may not be reaped yet */
	size_t nended, ended_cap;
};

/* ---- the process ---- */

/* Reap what can be reaped; a process that a file server keeps is left. */
static void reap(struct output_writers *w)
{
	size_t left = 0;

	for (size_t i = 0; i < w->nended; i++)
		if (!waitpid(w->ended[i], NULL, WNOHANG))
			w->ended[left++] = w->ended[i];
	w->nended = left;
}

static void forget_process(struct output_writer *o)
{
	struct output_writers *w = o->of;

	if (!array_grow(&w->ended, w->nended, &w->ended_cap, sizeof(*w->ended)))
		w->ended[w->nended++] = o->process;
	reap(w);
}

static void __attribute__((noreturn)) be_process(int fd, const struct node_keep *what)
{
	if (what->umask & DVM_UMASK_GIVEN)
		umask(what->umask & 0777);
	output_file_main(fd, what->dir, what->name);
}

/* 0 or a negative errno. */
static int start(struct output_writer *o, const struct node_keep *what)
{
	int ends[2], rc;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return -errno;
	o->process = fork();
	if (!o->process)
		be_process(ends[1], what);
	rc = o->process < 0 ? -errno : 0;
	close(ends[1]);
	if (!rc && fcntl(ends[0], F_SETFL, O_NONBLOCK) < 0)
		rc = -errno;
	if (rc)
		close(ends[0]);
	else
		o->fd = ends[0];
	return rc;
}

/* ---- handles ---- */

static void on_closed(uv_handle_t *handle)
{
	struct output_writer *o = handle->data;

	if (--o->handles)
		return;
	buf_free(&o->left);
	free(o);
}

static void close_poll(struct output_writer *o)
{
	if (o->fd < 0)
		return;
	uv_close((uv_handle_t *)&o->poll, on_closed);
	fd_close(&o->fd);
	forget_process(o);
}

static void writer_free(struct output_writer *o)
{
	HASH_DEL(o->of->all, o);
	close_poll(o);
	uv_close((uv_handle_t *)&o->timer, on_closed);
}

/* ---- the end ---- */

static const char *reason(const struct output_writer *o)
{
	const char *why = o->answer_len ? o->answer : o->why;

	return *why ? why : NULL;
}

static void report(struct output_writer *o)
{
	struct output_writers *w = o->of;
	size_t first = o->answer_len ? strlen(o->answer) + 1 : 0;
	const struct node_kept kept = {
		.files = { o->answer + first, o->answer_len - first }, .why = reason(o),
	};

	w->ops.kept(w->arg, o->part, &kept);
	writer_free(o);
}

static void on_timer(uv_timer_t *timer);

static void set_full(struct output_writer *o, bool full)
{
	struct output_writers *w = o->of;

	if (o->full == full)
		return;
	o->full = full;
	w->ops.full(w->arg, o->part, full);
}

/* The process takes nothing any more. */
static void over(struct output_writer *o)
{
	bool ends = o->state == ENDS;

	o->state = ends ? OVER : LOST;
	o->waits_ms = 0;
	close_poll(o);
	buf_clear(&o->left);
	if (ends)
		uv_timer_start(&o->timer, on_timer, 0, 0);
	else
		uv_timer_stop(&o->timer);
	set_full(o, false);
}

static void lose(struct output_writer *o, const char *why)
{
	snprintf(o->why, sizeof(o->why), "%s", why);
	kill(o->process, SIGKILL);
	over(o);
}

static void on_timer(uv_timer_t *timer)
{
	struct output_writer *o = timer->data;
	char why[WHY_ROOM];

	if (o->state == OVER) {
		report(o);
		return;
	}
	snprintf(why, sizeof(why), "the file system has not answered for %u s",
		 o->of->stall_ms / 1000);
	lose(o, why);
}

/* ---- messages ---- */

static void on_poll(uv_poll_t *poll, int status, int events);

/* The process has taken something, or is to take something from now on. */
static void set_waiting(struct output_writer *o)
{
	int events = UV_READABLE | (o->left.len ? UV_WRITABLE : 0);

	uv_poll_start(&o->poll, events, on_poll);
	o->waits_ms = o->left.len || o->state == ENDS ? uv_now(o->of->loop) : 0;
	if (o->waits_ms)
		uv_timer_start(&o->timer, on_timer, o->of->stall_ms, 0);
	else
		uv_timer_stop(&o->timer);
}

/* 0, -EAGAIN, or another negative errno. */
static int put(int fd, char stream, const void *data, size_t len)
{
	struct iovec iov[2] = { { &stream, 1 }, { (void *)(uintptr_t)data, len } };
	struct msghdr m = { .msg_iov = iov, .msg_iovlen = 2 };
	ssize_t n;

	do {
		n = sendmsg(fd, &m, MSG_NOSIGNAL | MSG_DONTWAIT);
	} while (n < 0 && errno == EINTR);
	return n < 0 ? (errno == EWOULDBLOCK || errno == ENOBUFS ? -EAGAIN : -errno) : 0;
}

/* Messages are: u32 length, stream, bytes. */
static int add_left(struct output_writer *o, char stream, const void *data, size_t len)
{
	uint32_t length = (uint32_t)len;
	int rc = buf_append(&o->left, &length, sizeof(length));

	rc = rc ? rc : buf_append(&o->left, &stream, 1);
	return rc ? rc : buf_append(&o->left, data, len);
}

static void write_piece(struct output_writer *o, char stream, const void *data, size_t len)
{
	int rc = o->left.len ? -EAGAIN : put(o->fd, stream, data, len);

	if (rc == -EAGAIN)
		rc = add_left(o, stream, data, len);
	if (rc) {
		lose(o, strerror(-rc));
		return;
	}
	if (!o->left.len || o->full)
		return;
	set_waiting(o);
	set_full(o, true);
}

/* 0, -EAGAIN, or another negative errno. */
static int put_left(struct output_writer *o)
{
	uint32_t len;
	int rc;

	while (o->left.len) {
		memcpy(&len, o->left.data, sizeof(len));
		rc = put(o->fd, o->left.data[sizeof(len)], o->left.data + sizeof(len) + 1, len);
		if (rc)
			return rc;
		buf_consume(&o->left, sizeof(len) + 1 + len);
	}
	return 0;
}

static void flush(struct output_writer *o)
{
	size_t before = o->left.len;
	int rc = put_left(o);

	if (rc && rc != -EAGAIN) {
		lose(o, strerror(-rc));
		return;
	}
	if (o->left.len == before && before)
		return;
	if (!o->left.len && o->state == ENDS)
		shutdown(o->fd, SHUT_WR);
	set_waiting(o);
	if (!o->left.len)
		set_full(o, false);
}

static void read_answer(struct output_writer *o)
{
	ssize_t n = recv(o->fd, o->answer, sizeof(o->answer), MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n > 0 && o->answer[n - 1] == '\0') {
		o->answer_len = (size_t)n;
		over(o);
	} else {
		lose(o, "the process that wrote it was killed");
	}
}

static void on_poll(uv_poll_t *poll, int status, int events)
{
	struct output_writer *o = poll->data;

	if (status < 0 || (events & UV_READABLE))
		read_answer(o);
	if (o->fd >= 0 && (events & UV_WRITABLE))
		flush(o);
}

/* ---- use ---- */

static struct output_writer *find(struct output_writers *w, uint32_t part)
{
	struct output_writer *o;

	HASH_FIND(hh, w->all, &part, sizeof(part), o);
	return o;
}

int output_writers_begin(struct output_writers *w, uint32_t part, const struct node_keep *what)
{
	struct output_writer *o = calloc(1, sizeof(*o));
	int rc;

	if (!o)
		return -ENOMEM;
	reap(w);
	o->of = w;
	o->part = part;
	HASH_ADD(hh, w->all, part, sizeof(o->part), o);
	rc = o->hh.tbl ? start(o, what) : -ENOMEM;
	if (rc) {
		if (o->hh.tbl)
			HASH_DEL(w->all, o);
		free(o);
		return rc;
	}
	buf_init(&o->left, SIZE_MAX / 2);
	uv_poll_init(w->loop, &o->poll, o->fd);
	uv_timer_init(w->loop, &o->timer);
	o->poll.data = o->timer.data = o;
	o->handles = 2;
	set_waiting(o);
	return 0;
}

void output_writers_write(struct output_writers *w, uint32_t part, int stream, const void *data,
			  size_t len)
{
	struct output_writer *o = find(w, part);
	const char *at = data;
	size_t n;

	for (; o && o->state == WRITES && len; at += n, len -= n) {
		n = len < OUTPUT_FILE_PIECE ? len : OUTPUT_FILE_PIECE;
		write_piece(o, (char)stream, at, n);
	}
}

void output_writers_end(struct output_writers *w, uint32_t part)
{
	struct output_writer *o = find(w, part);

	if (o->state == LOST) {
		o->state = OVER;
		uv_timer_start(&o->timer, on_timer, 0, 0);
		return;
	}
	o->state = ENDS;
	if (!o->left.len)
		shutdown(o->fd, SHUT_WR);
	set_waiting(o);
}

uint32_t output_writers_stall_ms(struct output_writers *w, uint32_t part)
{
	const struct output_writer *o = find(w, part);

	return o && o->waits_ms ? (uint32_t)(uv_now(w->loop) - o->waits_ms) : 0;
}

/* ---- life ---- */

int output_writers_create(struct output_writers **out, uv_loop_t *loop, uint32_t stall_ms,
			  const struct output_writers_ops *ops, void *arg)
{
	struct output_writers *w = calloc(1, sizeof(*w));

	*out = w;
	if (!w)
		return -ENOMEM;
	w->loop = loop;
	w->stall_ms = stall_ms;
	w->ops = *ops;
	w->arg = arg;
	return 0;
}

void output_writers_close(struct output_writers *w)
{
	struct output_writer *o, *next;

	if (!w)
		return;
	HASH_ITER(hh, w->all, o, next)
		writer_free(o);
}

void output_writers_destroy(struct output_writers *w)
{
	if (!w)
		return;
	free(w->ended);
	free(w);
}
