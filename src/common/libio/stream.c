/* SPDX-License-Identifier: BSD-3-Clause */
/* Non-blocking byte streams: input callbacks, output queue, one end. */
#include "libio/stream.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "libio/out_queue.h"

#define WASTE_BYTES 4096 /* of input, taken out at once */

/*
 * Life: open -> (finishing | broken) -> ended -> closed. `error` is set when
 * writing has failed; the loop's next turn then reads what is left and ends.
 */
struct stream {
	uv_poll_t poll;      /* unless there is a set */
	struct epoll_set *epoll;
	struct watched_fd watched;
	bool holds;          /* input stays in the socket; see stream.h */
	size_t held;         /* bytes of it that have been delivered, */
	uint32_t pieces;     /* in this number of reads */
	bool credentials;    /* the kernel tells who has written */
	pid_t sender;        /* of what was read last; 0: unknown */
	bool told;           /* of input, and the burst has not settled: output waits */
	uv_timer_t soon; /* errors found inside a call are reported from the loop */
	int handles;     /* not yet closed */
	int fd;
	int events;      /* events that the poll waits for; 0: none */
	bool is_socket;
	bool finishing;
	bool shutting;
	bool ended;
	bool closed;
	int error;
	struct out_queue out;
	struct stream_limits limits;
	struct stream_ops ops;
	void *arg;
};

static void on_poll(uv_poll_t *poll, int status, int events);
static void on_change(struct watched_fd *e, int events, bool failed);
static void on_settle(struct watched_fd *e);

static bool reads(const struct stream *s)
{
	return !s->finishing && !s->ended && !s->closed &&
	       (s->out.bytes <= s->limits.pause || s->error);
}

static void arm(struct stream *s)
{
	int events = 0;

	if (s->ended || s->closed)
		return;
	if (reads(s))
		events |= UV_READABLE;
	if (s->out.count && !s->told)
		events |= UV_WRITABLE;
	if (events == s->events)
		return;
	s->events = events;
	if (s->epoll)
		epoll_set_change(s->epoll, &s->watched, events);
	else if (events)
		uv_poll_start(&s->poll, events, on_poll);
	else
		uv_poll_stop(&s->poll);
}

static bool has_credentials(int fd)
{
	int on = 0;
	socklen_t len = sizeof(on);

	return !getsockopt(fd, SOL_SOCKET, SO_PASSCRED, &on, &len) && on;
}

/* Without SO_PEEK_OFF for this kind of descriptor input is taken out as ever. */
static int watch(struct stream *s)
{
	int zero = 0, flags = fcntl(s->fd, F_GETFL);

	if (flags < 0 || fcntl(s->fd, F_SETFL, flags | O_NONBLOCK) < 0)
		return -errno;
	s->holds = !setsockopt(s->fd, SOL_SOCKET, SO_PEEK_OFF, &zero,
			       sizeof(zero));
	s->credentials = s->holds && has_credentials(s->fd);
	s->watched = (struct watched_fd){
		.fd = s->fd,
		.event = on_change,
		.settle = on_settle,
	};
	s->events = UV_READABLE;
	return epoll_set_add(s->epoll, &s->watched, s->events);
}

static int begin(struct stream *s, uv_loop_t *loop)
{
	int rc = s->epoll ? watch(s) :
			    uv_poll_init(loop, &s->poll, s->fd);

	if (rc)
		return rc;
	uv_timer_init(loop, &s->soon);
	s->handles = s->epoll ? 1 : 2;
	s->poll.data = s->soon.data = s;
	arm(s);
	return 0;
}

int stream_open_held(struct stream **out, uv_loop_t *loop,
		     struct epoll_set *epoll, int fd, const struct stream_limits *limits,
		     const struct stream_ops *ops, void *arg)
{
	struct stream *s = calloc(1, sizeof(*s));
	socklen_t len = sizeof(int);
	int rc = -ENOMEM, type;

	if (!s)
		goto close_fd;
	s->epoll = epoll;
	s->fd = fd;
	s->is_socket = !getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len);
	s->limits = *limits;
	s->ops = *ops;
	s->arg = arg;
	rc = begin(s, loop);
	if (rc)
		goto free_stream;
	*out = s;
	return 0;
free_stream:
	free(s);
close_fd:
	close(fd);
	return rc;
}

int stream_open(struct stream **out, uv_loop_t *loop, int fd,
		const struct stream_limits *limits,
		const struct stream_ops *ops, void *arg)
{
	return stream_open_held(out, loop, NULL, fd, limits, ops, arg);
}

static void stop_polling(struct stream *s)
{
	if (!s->epoll)
		uv_poll_stop(&s->poll);
	else if (s->watched.event)
		epoll_set_remove(s->epoll, &s->watched);
}

static void flush(struct stream *s);
static void drop_answered(struct stream *s);

/* Let what waits for the end of the burst go. */
static void stop_waiting(struct stream *s)
{
	if (s->told && s->out.count) {
		flush(s);
		drop_answered(s);
	}
	s->told = false;
}

static void end(struct stream *s, int error)
{
	if (s->ended || s->closed)
		return;
	stop_waiting(s);
	s->ended = true;
	stop_polling(s);
	uv_timer_stop(&s->soon);
	out_queue_clear(&s->out);
	s->ops.end(s->arg, error || !s->error ? error : s->error);
}

static void on_soon(uv_timer_t *timer);

/* Writing is no longer possible; the next turn of the loop says so. */
static int break_off(struct stream *s, int error)
{
	if (!s->error)
		s->error = error;
	out_queue_clear(&s->out);
	uv_timer_start(&s->soon, on_soon, 0, 0);
	return error;
}

/* ---- output ---- */

static void flush(struct stream *s)
{
	int rc = out_queue_flush(&s->out, s->fd, s->is_socket);

	if (rc)
		break_off(s, rc);
	else if (!s->out.count && s->shutting)
		shutdown(s->fd, SHUT_WR);
}

/* Take what has been delivered out of the socket. */
static void drop_held(struct stream *s)
{
	char waste[WASTE_BYTES];

	while (s->held) {
		ssize_t n = recv(s->fd, waste, s->held < sizeof(waste) ?
					       s->held : sizeof(waste), 0);

		if (n < 0 && errno == EINTR)
			continue;
		s->held = n > 0 ? s->held - n : 0;
	}
	s->pieces = 0;
}

/* Not after each answer; see stream_open_held. */
static void drop_answered(struct stream *s)
{
	if (s->pieces >= STREAM_HOLD_PIECES)
		drop_held(s);
}

static bool writable(const struct stream *s)
{
	return !s->error && !s->finishing && !s->shutting && !s->ended &&
	       !s->closed;
}

int stream_write(struct stream *s, const void *data, size_t len,
		 const struct passed_fds *fds)
{
	struct iovec iov = { .iov_base = (void *)data, .iov_len = len };
	struct payload *rest;
	ssize_t sent = 0;
	int rc;

	if (!writable(s))
		return -EPIPE;
	if (len == 0)
		return 0;
	if (fds && fds->count)
		stop_waiting(s);
	if (!s->told && !s->out.count)
		sent = out_queue_put(s->fd, s->is_socket, &iov, 1, fds);
	if (!s->told)
		drop_answered(s);
	if (sent < 0) {
		break_off(s, sent);
		return -EPIPE;
	}
	if ((size_t)sent == len)
		return 0;
	len -= sent;
	if (len > s->limits.queue || s->out.bytes > s->limits.queue - len)
		return break_off(s, -ENOBUFS);
	rest = payload_copy((const char *)data + sent, len);
	rc = rest ? out_queue_add(&s->out, rest, sent ? NULL : fds) : -ENOMEM;
	payload_unref(rest);
	if (rc)
		return break_off(s, rc);
	arm(s);
	return 0;
}

int stream_write_vec(struct stream *s, struct payload *front,
		     const struct payload_vec *v)
{
	size_t len = (front ? front->len : 0) + (v ? v->bytes : 0);
	bool was_empty = s->out.count == 0;
	int rc = 0;

	if (!writable(s))
		return -EPIPE;
	if (len > s->limits.queue || s->out.bytes > s->limits.queue - len)
		return break_off(s, -ENOBUFS);
	if (front)
		rc = out_queue_add(&s->out, front, NULL);
	for (size_t i = 0; !rc && v && i < v->count; i++)
		rc = out_queue_add(&s->out, v->items[i], NULL);
	if (rc)
		return break_off(s, rc);
	if (was_empty)
		flush(s);
	arm(s);
	return s->error ? -EPIPE : 0;
}

size_t stream_queued(const struct stream *s)
{
	return s->out.bytes;
}

void stream_release(struct stream *s)
{
	drop_held(s);
}

/* ---- input ---- */

/*
 * Bytes of one sender. There is room for its credentials and for nothing else: what
 * descriptors come with them are dropped.
 */
static ssize_t peek_with_sender(struct stream *s, void *at, size_t room)
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(struct ucred))];
	} control;
	struct iovec iov = { at, room };
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = &control, .msg_controllen = sizeof(control),
	};
	ssize_t n = recvmsg(s->fd, &msg, MSG_PEEK);
	const struct cmsghdr *c = n > 0 ? CMSG_FIRSTHDR(&msg) : NULL;
	struct ucred who;

	if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_CREDENTIALS) {
		memcpy(&who, CMSG_DATA(c), sizeof(who));
		s->sender = who.pid;
	}
	return n;
}

static ssize_t get(struct stream *s, void *at, size_t room)
{
	ssize_t n;

	do {
		n = s->credentials ? peek_with_sender(s, at, room) :
		    s->holds ? recv(s->fd, at, room, MSG_PEEK) :
			       read(s->fd, at, room);
	} while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : n;
}

pid_t stream_sender(const struct stream *s)
{
	return s->sender;
}

/* Less than lets the peer wait for room: each piece takes some of that. */
static bool holds_much(const struct stream *s)
{
	return s->held > STREAM_HOLD_MAX || s->pieces > 2 * STREAM_HOLD_PIECES;
}

/*
 * Read once: the length; 0: nothing there, or the end. *more: the read filled its room, or
 * the kernel ended it between two senders.
 */
static size_t read_once(struct stream *s, bool *more)
{
	void *at;
	size_t room = s->ops.room(s->arg, &at);
	ssize_t n = get(s, at, room);

	*more = n > 0 && ((size_t)n == room || s->credentials);
	if (n == -EAGAIN || n == -EWOULDBLOCK)
		return 0;
	if (n <= 0) {
		end(s, n);
		return 0;
	}
	if (s->holds) {
		s->held += n;
		s->pieces++;
	}
	s->ops.input(s->arg, n);
	if (holds_much(s) && !s->closed)
		drop_held(s);
	return n;
}

/* `last`: no event will tell of the end. */
static void read_turn(struct stream *s, bool last)
{
	bool more = true; /* false: the poll reports when there is more */
	int i;

	for (i = 0; i < STREAM_READS_PER_TURN && (more || last) && reads(s); i++)
		read_once(s, &more);
	if (i == STREAM_READS_PER_TURN && s->epoll && reads(s))
		epoll_set_change(s->epoll, &s->watched, s->events);
}

void stream_read_now(struct stream *s, size_t max)
{
	size_t n = 1, total = 0;
	bool more;

	while (n && total < max && !s->finishing && !s->ended && !s->closed) {
		n = read_once(s, &more);
		total += n;
	}
}

/* ---- events ---- */

#define STREAM_LAST_READ ((size_t)4 << 20) /* bytes, of a broken stream */

static void write_turn(struct stream *s)
{
	bool had = s->out.count > 0;

	flush(s);
	if (had && !s->out.count && !s->error && s->ops.drained)
		s->ops.drained(s->arg);
}

static int pending_error(struct stream *s, int otherwise)
{
	socklen_t len = sizeof(int);
	int error = 0;

	if (s->is_socket)
		getsockopt(s->fd, SOL_SOCKET, SO_ERROR, &error, &len);
	return error ? -error : otherwise;
}

/* Deliver what had come before the failure, then the failure. */
static void end_broken(struct stream *s)
{
	stream_read_now(s, STREAM_LAST_READ);
	if (!s->closed)
		end(s, s->error);
}

/* Wait for what comes next, if anything. */
static void go_on(struct stream *s)
{
	if (s->finishing && !s->out.count && !s->error)
		end(s, 0);
	arm(s);
}

static void on_events(struct stream *s, int events, bool failed)
{
	if (failed && !s->error && !reads(s))
		s->error = pending_error(s, -EIO);
	if (s->error) {
		end_broken(s);
		return;
	}
	if ((events & UV_READABLE) && reads(s))
		read_turn(s, events & UV_DISCONNECT);
	if ((events & UV_WRITABLE) && !s->ended && !s->closed)
		write_turn(s);
	go_on(s);
}

static void on_poll(uv_poll_t *poll, int status, int events)
{
	struct stream *s = poll->data;

	if (status < 0) { /* an error condition: libuv has stopped the poll */
		s->events = 0;
		events = UV_READABLE | UV_WRITABLE;
	}
	on_events(s, events, status < 0);
}

static struct stream *watched_by(struct watched_fd *e)
{
	return (struct stream *)((char *)e - offsetof(struct stream, watched));
}

static void on_change(struct watched_fd *e, int events, bool failed)
{
	struct stream *s = watched_by(e);

	s->told = true;
	on_events(s, events, failed);
}

static void on_settle(struct watched_fd *e)
{
	struct stream *s = watched_by(e);

	stop_waiting(s);
	go_on(s);
}

static void on_soon(uv_timer_t *timer)
{
	struct stream *s = timer->data;

	if (s->error)
		end_broken(s);
	else
		end(s, 0); /* finishing, and nothing is queued */
}

void stream_finish(struct stream *s)
{
	if (s->finishing || s->ended || s->closed)
		return;
	s->finishing = true;
	if (!s->out.count)
		uv_timer_start(&s->soon, on_soon, 0, 0);
	arm(s);
}

void stream_shutdown(struct stream *s)
{
	if (!writable(s))
		return;
	s->shutting = true;
	if (!s->out.count)
		shutdown(s->fd, SHUT_WR);
}

static void on_closed(uv_handle_t *handle)
{
	struct stream *s = handle->data;

	if (--s->handles)
		return;
	out_queue_free(&s->out);
	free(s);
}

void stream_close(struct stream *s)
{
	if (!s || s->closed)
		return;
	stop_waiting(s);
	s->closed = true;
	out_queue_clear(&s->out);
	drop_held(s); /* closing with input unread would reset the connection */
	if (s->epoll)
		stop_polling(s);
	else
		uv_close((uv_handle_t *)&s->poll, on_closed);
	uv_close((uv_handle_t *)&s->soon, on_closed);
	close(s->fd);
}

int stream_fd(const struct stream *s)
{
	return s->fd;
}
