/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads and writes PMI_FD: partial writes, signals, passed descriptors. */
#include "config.h" /* _GNU_SOURCE */

#include "pmi_fd.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libutil/passed_fds.h"

#define READ_LEAST ((size_t)4 << 10) /* room for a read; it grows with what comes */
#define READ_FDS_MAX 8    /* of one read */

struct pmi_fd {
	int fd;
	int fd_flags;       /* flags before pmi_fd_keep, or -1 */
	struct stat socket; /* the socket at the session's begin */
	struct passed_fds passed; /* came with the input, oldest first */
	struct buf input;
};

static int check_socket(int fd, struct stat *st)
{
	if (fstat(fd, st))
		return -errno;
	return S_ISSOCK(st->st_mode) ? 0 : -ENOTSOCK;
}

int pmi_fd_open(struct pmi_fd **out, int fd)
{
	struct stat st;
	struct pmi_fd *t;
	int rc = check_socket(fd, &st);

	if (rc)
		return rc;
	t = calloc(1, sizeof(*t));
	if (!t)
		return -ENOMEM;
	t->fd = fd;
	t->fd_flags = -1;
	t->socket = st;
	buf_init(&t->input, PMI2_HEADER_LEN + PMI2_BODY_MAX + READ_LEAST);
	*out = t;
	return 0;
}

/* The program has closed the descriptor and opened something else there. */
static bool is_replaced(const struct pmi_fd *t)
{
	struct stat st;

	return check_socket(t->fd, &st) || st.st_dev != t->socket.st_dev ||
	       st.st_ino != t->socket.st_ino;
}

void pmi_fd_keep(struct pmi_fd *t)
{
	int flags = fcntl(t->fd, F_GETFD);

	if (flags >= 0 && !fcntl(t->fd, F_SETFD, flags | FD_CLOEXEC))
		t->fd_flags = flags;
}

void pmi_fd_close(struct pmi_fd *t)
{
	if (!t)
		return;
	if (t->fd_flags >= 0 && !is_replaced(t))
		fcntl(t->fd, F_SETFD, t->fd_flags);
	while (t->passed.count)
		close(t->passed.fds[--t->passed.count]);
	buf_free(&t->input);
	free(t);
}

int pmi_fd_await(struct pmi_fd *t, bool output)
{
	struct pollfd p = {
		.fd = t->fd, .events = output ? POLLIN | POLLOUT : POLLIN,
	};

	if (poll(&p, 1, -1) < 0 && errno != EINTR)
		return -errno;
	return 0;
}

long pmi_fd_send(struct pmi_fd *t, const void *data, size_t len)
{
	ssize_t n;

	do
		n = send(t->fd, data, len, MSG_NOSIGNAL | MSG_DONTWAIT);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return errno == EAGAIN || errno == EWOULDBLOCK ? 0 : -errno;
	return n;
}

/* Keep the first ones, as many as an agent passes; close all others. */
static void keep_passed(struct pmi_fd *t, struct cmsghdr *c)
{
	size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
	int fds[READ_FDS_MAX];

	if (count > READ_FDS_MAX)
		count = READ_FDS_MAX;
	memcpy(fds, CMSG_DATA(c), count * sizeof(int));
	for (size_t i = 0; i < count; i++) {
		if (t->passed.count < PASSED_FDS_MAX)
			t->passed.fds[t->passed.count++] = fds[i];
		else
			close(fds[i]);
	}
}

static void collect_passed(struct pmi_fd *t, struct msghdr *msg)
{
	struct cmsghdr *c;

	for (c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c))
		if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS)
			keep_passed(t, c);
}

/* As much as there is room for. */
static long receive(struct pmi_fd *t, int flags)
{
	union {
		char bytes[CMSG_SPACE(READ_FDS_MAX * sizeof(int))];
		struct cmsghdr align;
	} control;
	struct iovec iov = {
		.iov_base = t->input.data + t->input.len,
		.iov_len = buf_room(&t->input),
	};
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.bytes,
		.msg_controllen = sizeof(control.bytes),
	};
	ssize_t n = recvmsg(t->fd, &msg, flags | MSG_CMSG_CLOEXEC);

	if (n < 0)
		return -errno;
	collect_passed(t, &msg);
	t->input.len += n;
	return n ? n : -ECONNRESET;
}

long pmi_fd_fill(struct pmi_fd *t, int block)
{
	long n = buf_reserve(&t->input, READ_LEAST);

	if (n)
		return n;
	for (;;) {
		n = receive(t, block ? 0 : MSG_DONTWAIT);
		if (n == -EAGAIN && !block)
			return 0;
		/* A process that inherited PMI_FD before may have made it non-blocking. */
		if (n == -EAGAIN)
			n = pmi_fd_await(t, false);
		else if (n != -EINTR)
			return n;
		if (n && n != -EINTR)
			return n;
	}
}

enum pmi_protocol pmi_fd_form(enum pmi_protocol protocol, const char *data)
{
	return data[0] == 'c' ? PMI_PROTOCOL_1 : protocol;
}

long pmi_fd_frame(struct pmi_fd *t, enum pmi_protocol protocol,
		  char **data)
{
	*data = t->input.data;
	if (t->input.len == 0)
		return 0;
	if (pmi_fd_form(protocol, t->input.data) == PMI_PROTOCOL_2)
		return pmi2_frame(t->input.data, t->input.len);
	return pmi1_frame(t->input.data, t->input.len);
}

void pmi_fd_consume(struct pmi_fd *t, size_t len)
{
	buf_consume(&t->input, len);
}

int pmi_fd_take_fd(struct pmi_fd *t)
{
	struct passed_fds *p = &t->passed;
	int fd;

	if (p->count == 0)
		return -1;
	fd = p->fds[0];
	p->count--;
	memmove(p->fds, p->fds + 1, p->count * sizeof(fd));
	return fd;
}

bool pmi_fd_hung_up(const struct pmi_fd *t)
{
	struct pollfd p = { .fd = t->fd, .events = POLLRDHUP };

	if (poll(&p, 1, 0) > 0 &&
	    (p.revents & (POLLRDHUP | POLLHUP | POLLERR | POLLNVAL)))
		return true;
	return is_replaced(t);
}

void pmi_fd_shutdown(struct pmi_fd *t)
{
	shutdown(t->fd, SHUT_RDWR);
}
