/* SPDX-License-Identifier: BSD-3-Clause */
/* Closes a unix socket without waiting for what its peer has put into it. */
#include "libio/hang_up.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <unistd.h>

#include "libio/thread.h"

/*
 * Is there a message? An empty one has its sender's credentials, unlike the end of the
 * connection. MSG_PEEK leaves descriptors where they are.
 */
static bool has_unread(int fd)
{
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
	ssize_t n = recvmsg(fd, &m, MSG_PEEK | MSG_DONTWAIT);

	return n > 0 || (n == 0 && (m.msg_controllen || m.msg_flags & MSG_CTRUNC));
}

static void *close_it(void *arg)
{
	close((int)(intptr_t)arg);
	return NULL;
}

void hang_up(int *fd)
{
	pthread_t thread;
	int closing = *fd;

	*fd = -1;
	if (closing < 0)
		return;
	(void)shutdown(closing, SHUT_RDWR); /* from here on nothing more is put in */
	if (!has_unread(closing)) {
		close(closing);
		return;
	}
	thread_keep_code();
	if (!thread_start(&thread, close_it, (void *)(intptr_t)closing))
		pthread_detach(thread);
}
