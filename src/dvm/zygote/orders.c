/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages of pmi2x-dvmd, with descriptors: orders.h. */
#include "dvm/zygote/orders.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "libio/attach_fds.h"

struct taker {
	int (*take)(void *arg, const struct dvm_msg *m);
	void *arg;
};

void orders_init(struct orders *o, int fd)
{
	o->fd = fd;
	o->count = 0;
	frame_reader_init(&o->reader);
}

int orders_fd(struct orders *o)
{
	int fd = o->count ? o->fds[0] : -1;

	if (o->count)
		memmove(o->fds, o->fds + 1, --o->count * sizeof(*o->fds));
	return fd;
}

static void keep_fds(struct orders *o, struct msghdr *msg)
{
	const struct cmsghdr *c = CMSG_FIRSTHDR(msg);
	size_t n;
	int fd;

	if (!c || c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
		return;
	n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(fd);
	for (size_t i = 0; i < n; i++) {
		memcpy(&fd, CMSG_DATA(c) + i * sizeof(fd), sizeof(fd));
		if (o->count < ORDERS_FDS)
			o->fds[o->count++] = fd;
		else
			close(fd);
	}
}

static int on_frame(void *arg, enum frame_type type, struct payload *body)
{
	const struct taker *t = arg;
	struct dvm_msg m;
	struct cursor c;
	int rc = 0;

	cursor_init(&c, body->data, body->len);
	while (!rc && cursor_left(&c)) {
		rc = dvm_msg_unpack(&c, &m);
		rc = rc ? rc : t->take(t->arg, &m);
	}
	return rc;
}

int orders_read(struct orders *o, int (*take)(void *arg, const struct dvm_msg *m), void *arg)
{
	static const struct frame_ops ops = { .frame = on_frame };
	struct taker taker = { take, arg };
	union attached_fds control;
	struct iovec iov;
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = control.bytes,
		.msg_controllen = sizeof(control.bytes),
	};
	ssize_t n;

	iov.iov_len = frame_reader_room(&o->reader, &iov.iov_base);
	n = recvmsg(o->fd, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n <= 0)
		return n ? -errno : -EPIPE;
	keep_fds(o, &msg);
	return frame_reader_input(&o->reader, (size_t)n, &ops, &taker);
}
