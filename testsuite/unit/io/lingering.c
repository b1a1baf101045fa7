/* SPDX-License-Identifier: BSD-3-Clause */
/* A TCP connection whose last close waits for its peer. */
#include "lingering.h"

#include "unit.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "libio/attach_fds.h"
#include "libio/listener_socket.h"

#define LINGER_SECONDS 3600

static void connect_pair(struct lingering *l)
{
	struct sockaddr_storage here = { .ss_family = AF_INET };
	struct sockaddr_in *in = (struct sockaddr_in *)&here;
	uint16_t port;
	int listener;

	in->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	listener = listener_socket(&here, 0, &port);
	assert_true(listener >= 0);
	in->sin_port = htons(port);
	l->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(connect(l->fd, (struct sockaddr *)in, sizeof(*in)), 0);
	l->peer = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	assert_true(l->peer >= 0);
	close(listener);
}

void lingering_open(struct lingering *l)
{
	const struct linger linger = { 1, LINGER_SECONDS };
	static const char much[65536];

	connect_pair(l);
	setsockopt(l->fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
	while (send(l->fd, much, sizeof(much), MSG_DONTWAIT) > 0)
		;
}

void lingering_give(struct lingering *l, int to, const char *bytes, size_t len)
{
	const struct passed_fds fds = { .count = 1, .fds = { l->fd } };
	struct iovec iov = { (char *)bytes, len };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1 };
	union attached_fds control;

	attach_fds(&m, &fds, &control);
	assert_int_equal(sendmsg(to, &m, MSG_NOSIGNAL), len);
	close(l->fd);
	l->fd = -1;
}

void lingering_close(struct lingering *l)
{
	const struct linger at_once = { 1, 0 };

	setsockopt(l->peer, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
	close(l->peer);
}
