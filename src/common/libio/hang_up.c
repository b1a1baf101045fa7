/* SPDX-License-Identifier: BSD-3-Clause */
/* Closes a unix socket without waiting for what its peer has put into it. */
#include "libio/hang_up.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <unistd.h>

#include "libio/thread.h"

static bool has_empty_messages(int fd)
{
	int type = 0;
	socklen_t len = sizeof(type);

	return !getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len) &&
	       type == SOCK_SEQPACKET;
}

/*
 * True: a message waits, possibly an empty one. Credentials tell an empty message from the
 * end of the connection (at the end of a stream the kernel gives some, too). They come
 * first and leave no room for descriptors, which even MSG_PEEK receives.
 */
static bool has_unread(int fd)
{
	int yes = 1;
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(struct ucred))];
	} control;
	char byte;
	struct iovec iov = { &byte, 1 };
	struct msghdr m = {
		.msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = &control, .msg_controllen = sizeof(control),
	};
	ssize_t n;

	if (setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &yes, sizeof(yes)))
		return true;
	do /* once: the peer has left something unread, which hides what it has said */
		n = recvmsg(fd, &m, MSG_PEEK | MSG_DONTWAIT);
	while (n < 0 && errno == ECONNRESET);
	return n > 0 || (n == 0 && has_empty_messages(fd) &&
			 (m.msg_controllen || m.msg_flags & MSG_CTRUNC));
}

static void *close_it(void *arg)
{
	close((int)(intptr_t)arg);
	return NULL;
}

static void close_apart(int fd)
{
	pthread_t thread;

	thread_keep_code();
	if (!thread_start(&thread, close_it, (void *)(intptr_t)fd))
		pthread_detach(thread);
}

void hang_up(int *fd)
{
	int closing = *fd;

	*fd = -1;
	if (closing < 0)
		return;
	(void)shutdown(closing, SHUT_RDWR); /* from here on nothing more is put in */
	if (has_unread(closing))
		close_apart(closing);
	else
		close(closing);
}

void hang_up_listener(int *fd)
{
	int client, closing = *fd;

	*fd = -1;
	if (closing < 0)
		return;
	(void)shutdown(closing, SHUT_RDWR); /* from here on nobody more connects */
	while ((client = accept4(closing, NULL, NULL, SOCK_CLOEXEC)) >= 0)
		hang_up(&client);
	if (errno == EMFILE || errno == ENFILE || errno == ENOMEM)
		close_apart(closing);
	else
		close(closing);
}
