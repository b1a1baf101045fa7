/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages between an agent and the process that has started it. */
#include "libconfine/host_msg.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>

#include "libio/attach_fds.h"
#include "libio/fd.h"
#include "libutil/pack.h"

int host_msg_pack(struct buf *b, const struct host_msg *m)
{
	int rc = m->len > HOST_DATA_MAX ? -EMSGSIZE : pack_u8(b, m->type);

	rc = rc ? rc : pack_u32(b, m->number);
	rc = rc ? rc : pack_u32(b, (uint32_t)m->code);
	return rc ? rc : pack_bytes(b, m->data, m->len);
}

int host_msg_unpack(struct host_msg *m, const void *data, size_t len)
{
	struct cursor c;

	cursor_init(&c, data, len);
	m->type = unpack_u8(&c);
	m->number = unpack_u32(&c);
	m->code = (int32_t)unpack_u32(&c);
	m->data = unpack_bytes(&c, HOST_DATA_MAX, &m->len);
	if (!cursor_done(&c) || m->type < HOST_READY || m->type >= HOST_TYPES)
		return -EPROTO;
	return 0;
}

int host_msg_send_with(int fd, const struct host_msg *m, const struct passed_fds *fds)
{
	char room[HOST_MSG_MAX];
	union attached_fds control;
	struct iovec iov = { .iov_base = room };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	struct buf b;
	ssize_t n;
	int rc;

	buf_init_in(&b, room, sizeof(room));
	rc = host_msg_pack(&b, m);
	if (rc)
		return rc;
	iov.iov_len = b.len;
	if (fds)
		attach_fds(&msg, fds, &control);
	do {
		n = sendmsg(fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT);
	} while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : 0;
}

int host_msg_send(int fd, const struct host_msg *m)
{
	return host_msg_send_with(fd, m, NULL);
}

int host_msg_send_wait(int fd, const struct host_msg *m)
{
	struct pollfd room = { .fd = fd, .events = POLLOUT };
	int rc;

	while ((rc = host_msg_send(fd, m)) == -EAGAIN)
		(void)poll(&room, 1, -1);
	return rc;
}

static int no_message(int error)
{
	return error == EAGAIN || error == EINTR ? 0 : -EPIPE;
}

/* ECONNRESET, once: it has left answers unread, and ended. Its messages still arrive. */
static ssize_t receive(int fd, struct msghdr *m, int flags)
{
	ssize_t n;

	do
		n = recvmsg(fd, m, flags | MSG_DONTWAIT);
	while (n < 0 && errno == ECONNRESET);
	return n;
}

/*
 * Look at the next message without taking it: 1: it has no descriptors; else as
 * host_msg_receive. There is room for the sender's credentials only, so that descriptors,
 * which stay in the socket, are reported as cut off.
 */
static int look(int fd)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(struct ucred))];
	} control;
	char byte;
	struct iovec iov = { &byte, 1 };
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = &control, .msg_controllen = sizeof(control),
	};
	ssize_t n = receive(fd, &msg, MSG_PEEK);

	if (n < 0)
		return no_message(errno);
	if (msg.msg_flags & MSG_CTRUNC)
		return -EPROTO;
	/* An empty message has credentials, the end of the connection has none. */
	return n || msg.msg_controllen ? 1 : -EPIPE;
}

int host_msg_receive(int fd, char room[HOST_MSG_MAX], struct host_msg *m)
{
	struct iovec iov = { room, HOST_MSG_MAX };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	int rc = look(fd);
	ssize_t n;

	if (rc <= 0)
		return rc;
	n = receive(fd, &msg, 0);
	if (n < 0)
		return no_message(errno);
	return host_msg_unpack(m, room, (size_t)n) ? -EPROTO : 1;
}

int host_msg_receive_with(int fd, char room[HOST_MSG_MAX], struct host_msg *m,
			  int *passed)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control;
	struct iovec iov = { room, HOST_MSG_MAX };
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = control.bytes, .msg_controllen = sizeof(control.bytes),
	};
	ssize_t n = receive(fd, &msg, MSG_CMSG_CLOEXEC);

	*passed = -1;
	if (n < 0)
		return no_message(errno);
	if (n == 0)
		return -EPIPE;
	*passed = passed_fd(&msg);
	if (!host_msg_unpack(m, room, (size_t)n))
		return 1;
	fd_close(passed);
	return -EPROTO;
}
