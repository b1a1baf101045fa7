/* SPDX-License-Identifier: BSD-3-Clause */
/* Reading, writing and waiting on simulated sockets, and what goes wrong meanwhile. */
#include <sys/uio.h>

#include "testsuite/dst/sockets_internal.h"

int __wrap_shutdown(int fd, int how);
ssize_t __wrap_send(int fd, const void *data, size_t len, int flags);
ssize_t __wrap_sendmsg(int fd, const struct msghdr *msg, int flags);
ssize_t __wrap_write(int fd, const void *data, size_t len);
ssize_t __wrap_writev(int fd, const struct iovec *iov, int n);
ssize_t __wrap_recv(int fd, void *to, size_t len, int flags);
ssize_t __wrap_read(int fd, void *to, size_t len);
ssize_t __wrap_recvmsg(int fd, struct msghdr *msg, int flags);
int __wrap_recvmmsg(int fd, struct mmsghdr *msgs, unsigned n, int flags,
		    struct timespec *timeout);
ssize_t __real_write(int fd, const void *data, size_t len);

/* ---- readiness ---- */

static bool has_arrived(const struct segment *g)
{
	return g && g->arrival <= now();
}

/*
 * The segment that a read sees next: behind what has been looked at, if that is so
 * wanted.
 */
static struct segment *next_unseen(const struct socket *s, size_t *skip)
{
	struct segment *g = s->first;

	*skip = s->peek_offset > 0 ? s->peek_offset : 0;
	while (g && g->len && *skip >= g->len - g->taken) {
		*skip -= g->len - g->taken;
		g = g->next;
	}
	return g;
}

void socket_take_reset(struct socket *s)
{
	struct segment *g = s->first;

	if (!has_arrived(g) || !g->error)
		return;
	s->error = g->error;
	s->state = SOCKET_DEAD;
	s->changes++;
	socket_drop_segment(s);
}

static bool has_room(const struct socket *s)
{
	return s->peer && s->peer->bytes < s->peer->room;
}

static uint32_t end_events(const struct socket *s)
{
	uint32_t events = 0;

	for (const struct segment *g = s->first; has_arrived(g); g = g->next)
		if (!g->len)
			events |= EPOLLIN | EPOLLRDHUP;
	if (s->family == AF_UNIX && !s->peer)
		events |= EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLOUT;
	if ((events & EPOLLRDHUP) && s->wrote_end)
		events |= EPOLLHUP;
	return events;
}

uint32_t socket_events(struct file *f)
{
	struct socket *s = f->socket;
	uint32_t events = 0;

	socket_settle(s);
	if (s->state == SOCKET_LISTENS)
		return socket_has_connection(s) ? EPOLLIN : 0;
	if (s->state == SOCKET_NEW || s->state == SOCKET_CONNECTS)
		return 0;
	socket_take_reset(s);
	if (has_arrived(s->first))
		events |= EPOLLIN;
	if (s->state == SOCKET_DEAD)
		events |= EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLHUP |
			  (s->error ? EPOLLERR : 0);
	else if (has_room(s) || !s->peer)
		events |= EPOLLOUT;
	return events | end_events(s);
}

uint64_t socket_changes(struct file *f)
{
	struct socket *s = f->socket;
	uint64_t arrived = 0;

	for (const struct segment *g = s->first; has_arrived(g); g = g->next)
		arrived++;
	return s->changes + arrived;
}

/* ---- sending ---- */

struct wait_io {
	struct file *file;
	uint32_t events;
};

static bool io_is_ready(void *arg)
{
	struct wait_io *w = arg;

	return file_events(w->file) & (w->events | EPOLLERR | EPOLLHUP);
}

/* Wait as the descriptor is set. False: errno says why not. */
static bool await(struct socket *s, uint32_t events, int flags)
{
	struct wait_io w = { s->file, events };

	if (io_is_ready(&w))
		return true;
	if (s->file->nonblocking || (flags & MSG_DONTWAIT)) {
		errno = EAGAIN;
		return false;
	}
	return task_wait(io_is_ready, &w, NEVER);
}

int socket_take_error(struct socket *s, int otherwise)
{
	int error = s->error ? s->error : otherwise;

	s->error = 0;
	return error;
}

static size_t total(const struct iovec *iov, int n)
{
	size_t len = 0;

	for (int i = 0; i < n; i++)
		len += iov[i].iov_len;
	return len;
}

static void copy_out(char *to, const struct iovec *iov, size_t len)
{
	for (; len; iov++) {
		size_t part = iov->iov_len < len ? iov->iov_len : len;

		memcpy(to, iov->iov_base, part);
		to += part;
		len -= part;
	}
}

static void attach(struct segment *g, const struct msghdr *msg)
{
	struct cmsghdr *c = msg->msg_control ? CMSG_FIRSTHDR(msg) : NULL;
	int fd;

	if (!c)
		return;
	g->nfds = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
	for (unsigned i = 0; i < g->nfds; i++) {
		memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(fd));
		if (!file_find(fd)) {
			failed("descriptor %d is passed, but not open", fd);
			g->nfds = i;
			return;
		}
		g->fds[i] = file_ref(file_find(fd));
	}
}

/* The rest of what was to be sent does not come; both ends hear of a reset. */
static size_t cut(struct socket *s, size_t len)
{
	if (!s->cut_after || s->sent + len < s->cut_after)
		return len;
	len = s->cut_after - s->sent;
	s->cut_after = 0;
	return len;
}

static void reset_both(struct socket *s)
{
	struct socket *peer = s->peer;

	trace("cut", s->host, s->peer_host);
	socket_reset(s, ECONNRESET);
	socket_reset(peer, ECONNRESET);
}

static ssize_t transmit(struct socket *s, const struct msghdr *msg, size_t len)
{
	struct socket *peer = s->peer;
	bool cuts = s->cut_after && s->sent + len >= s->cut_after;
	size_t n = cut(s, len);
	struct segment *g;
	char *bytes;

	if (peer->had_reset)
		return len;
	if (network.loses && s->family != AF_UNIX && draw_once_in(20))
		n--;
	bytes = __real_malloc(n ? n : 1);
	copy_out(bytes, msg->msg_iov, n);
	if (s->family == AF_UNIX)
		trace_text("says \"%.*s\"", (int)n, bytes);
	g = socket_deliver(peer, bytes, n);
	__real_free(bytes);
	if (socket_is_down(s) && s->family != AF_UNIX)
		g->arrival = NEVER;
	attach(g, msg);
	s->sent += n;
	if (cuts)
		reset_both(s);
	return len;
}

static ssize_t send_message(struct socket *s, const struct msghdr *msg,
			    int flags)
{
	size_t len = total(msg->msg_iov, msg->msg_iovlen), room;

	if (s->state == SOCKET_NEW || s->state == SOCKET_LISTENS)
		return fails(ENOTCONN);
	socket_settle(s);
	if (s->state == SOCKET_CONNECTS)
		return fails(EAGAIN);
	if (draw_once_in(hardship.interrupts))
		return fails(EINTR);
	if (!await(s, EPOLLOUT, flags))
		return -1;
	socket_take_reset(s);
	if (s->state == SOCKET_DEAD || s->wrote_end)
		return fails(socket_take_error(s, EPIPE));
	if (!s->peer && s->family == AF_UNIX)
		return fails(EPIPE);
	if (!s->peer) { /* the answer to it is a reset, if there is one */
		if (!socket_is_down(s))
			socket_reset(s, ECONNRESET);
		return len;
	}
	if (!has_room(s))
		return fails(EAGAIN);
	room = s->peer->room - s->peer->bytes;
	if (s->type == SOCK_STREAM && len > room)
		len = room;
	/* Linux takes less than there is room for only when memory is short. */
	if (s->type == SOCK_STREAM && len > 1 && room < s->peer->room / 2 &&
	    draw_once_in(hardship.short_io))
		len = 1 + draw_below(len - 1);
	return transmit(s, msg, len);
}

ssize_t __wrap_sendmsg(int fd, const struct msghdr *msg, int flags)
{
	struct socket *s = socket_of(fd);
	ssize_t n;

	task_maybe_switch();
	if (!s) {
		failed("sendmsg(%d), which is not open", fd);
		return -1;
	}
	n = send_message(s, msg, flags);
	trace("send", fd, n < 0 ? -errno : n);
	return n;
}

ssize_t __wrap_send(int fd, const void *data, size_t len, int flags)
{
	struct iovec iov = { (void *)data, len };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

	return __wrap_sendmsg(fd, &msg, flags);
}

int __wrap_eventfd_write(int fd, uint64_t count);

ssize_t __wrap_write(int fd, const void *data, size_t len)
{
	struct file *f = fd >= FIRST_FD ? file_find(fd) : NULL;
	uint64_t count;

	if (fd == 2)
		trace_text("stderr: %.*s", (int)len - 1, (const char *)data);
	if (fd < FIRST_FD)
		return fd == 2 ? (ssize_t)len : __real_write(fd, data, len);
	if (f && f->kind == FILE_EVENT && len == sizeof(count)) {
		memcpy(&count, data, sizeof(count));
		return __wrap_eventfd_write(fd, count) ? -1 : (ssize_t)len;
	}
	if (f && f->kind == FILE_MEMORY)
		return __real_write(f->real_fd, data, len);
	return __wrap_send(fd, data, len, 0);
}

ssize_t __wrap_writev(int fd, const struct iovec *iov, int n)
{
	struct msghdr msg = { .msg_iov = (struct iovec *)iov, .msg_iovlen = n };

	return __wrap_sendmsg(fd, &msg, 0);
}

int __wrap_shutdown(int fd, int how)
{
	struct socket *s = socket_of(fd);

	if (!s)
		return -1;
	trace("shutdown", fd, how);
	if (how != SHUT_RD && !s->wrote_end) {
		s->wrote_end = true;
		if (s->peer && !s->had_reset)
			socket_deliver(s->peer, NULL, 0);
	}
	if (how != SHUT_WR)
		s->no_more_input = true;
	s->changes++;
	return 0;
}

/* ---- receiving ---- */

static void give_fds(struct segment *g, struct msghdr *msg, size_t *used)
{
	struct cmsghdr *c = msg->msg_control ? CMSG_FIRSTHDR(msg) : NULL;
	unsigned n = 0;

	if (!c || CMSG_SPACE(sizeof(int)) > msg->msg_controllen)
		return;
	for (; n < g->nfds; n++) {
		int fd = fd_open(file_ref(g->fds[n]));

		if (fd < 0) {
			msg->msg_flags |= MSG_CTRUNC;
			break;
		}
		memcpy(CMSG_DATA(c) + n * sizeof(int), &fd, sizeof(fd));
	}
	for (unsigned i = 0; i < g->nfds; i++)
		file_unref(g->fds[i]);
	g->nfds = 0;
	if (!n)
		return;
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(n * sizeof(int));
	*used = CMSG_SPACE(n * sizeof(int));
}

/* Bytes that have come, one after the other; those with descriptors begin a read. */
static ssize_t take_bytes(struct socket *s, struct msghdr *msg, size_t max,
			  bool peek)
{
	char *to = msg->msg_iov[0].iov_base;
	size_t done = 0, control = 0, skip;
	struct segment *g = next_unseen(s, &skip);

	if (!peek) {
		g = s->first;
		skip = 0;
	}
	while (done < max && has_arrived(g) && g->len) {
		size_t part = g->len - g->taken - skip;
		bool whole;

		if (done && g->nfds)
			break;
		if (part > max - done)
			part = max - done;
		memcpy(to + done, g->bytes + g->taken + skip, part);
		done += part;
		skip = 0;
		if (peek) {
			g = g->next;
			continue;
		}
		if (g->nfds)
			give_fds(g, msg, &control);
		g->taken += part;
		s->bytes -= part;
		whole = g->taken == g->len || s->type != SOCK_STREAM;
		if (!whole)
			break;
		s->bytes -= g->len - g->taken;
		socket_drop_segment(s);
		g = s->first;
		if (s->type != SOCK_STREAM)
			break;
	}
	msg->msg_controllen = control;
	return done;
}

static void move_peek(struct socket *s, ssize_t n, bool peek)
{
	if (s->peek_offset < 0)
		return;
	if (peek)
		s->peek_offset += n;
	else
		s->peek_offset = s->peek_offset > n ? s->peek_offset - n : 0;
}

static bool can_receive(void *arg)
{
	struct socket *s = arg;
	size_t skip;

	socket_settle(s);
	socket_take_reset(s);
	return has_arrived(next_unseen(s, &skip)) || s->state == SOCKET_DEAD ||
	       s->no_more_input || (!s->peer && s->family == AF_UNIX);
}

static ssize_t receive(struct socket *s, struct msghdr *msg, int flags)
{
	size_t max = msg->msg_iov[0].iov_len, skip;
	bool peek = flags & MSG_PEEK;
	ssize_t n;

	socket_settle(s);
	if (s->state == SOCKET_CONNECTS)
		return fails(EAGAIN);
	if (!(flags & MSG_DONTWAIT) && draw_once_in(hardship.interrupts))
		return fails(EINTR);
	if (!can_receive(s) &&
	    (s->file->nonblocking || (flags & MSG_DONTWAIT)))
		return fails(EAGAIN);
	task_wait(can_receive, s, NEVER);
	if (s->family != AF_UNIX && max > 1 && draw_once_in(hardship.short_io))
		max = 1 + draw_below(max - 1);
	n = take_bytes(s, msg, max, peek);
	if (n > 0) {
		move_peek(s, n, peek);
		if (!peek && s->peer)
			s->peer->changes++;
		return n;
	}
	msg->msg_controllen = 0;
	if (has_arrived(next_unseen(s, &skip)) || s->no_more_input)
		return 0;
	if (s->error)
		return fails(socket_take_error(s, 0));
	return 0;
}

ssize_t __wrap_recvmsg(int fd, struct msghdr *msg, int flags)
{
	struct socket *s = socket_of(fd);
	ssize_t n;

	task_maybe_switch();
	msg->msg_flags = 0;
	if (!s) {
		failed("recvmsg(%d), which is not open", fd);
		return -1;
	}
	n = receive(s, msg, flags);
	trace("receive", fd, n < 0 ? -errno : n);
	return n;
}

ssize_t __wrap_recv(int fd, void *to, size_t len, int flags)
{
	struct iovec iov = { to, len };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

	return __wrap_recvmsg(fd, &msg, flags);
}

ssize_t __wrap_read(int fd, void *to, size_t len)
{
	return __wrap_recv(fd, to, len, 0);
}

int __wrap_recvmmsg(int fd, struct mmsghdr *msgs, unsigned n, int flags,
		    struct timespec *timeout)
{
	unsigned got = 0;

	while (got < n) {
		ssize_t len = __wrap_recvmsg(fd, &msgs[got].msg_hdr, flags);

		if (len < 0)
			break;
		msgs[got++].msg_len = len;
	}
	return got ? (int)got : -1;
}
