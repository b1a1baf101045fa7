/* SPDX-License-Identifier: BSD-3-Clause */
/* Options of a TCP connection: tcp.h. */
#include "libio/tcp.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#define PROBES 3

static void set(int fd, int level, int name, int value)
{
	/* Sockets other than TCP work without these. */
	(void)setsockopt(fd, level, name, &value, sizeof(value));
}

void tcp_end_without_answer(int fd, uint32_t ms)
{
	int seconds = (int)(ms / 1000 / (PROBES + 1));

	seconds = seconds ? seconds : 1;
	set(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, (int)ms);
	set(fd, IPPROTO_TCP, TCP_KEEPIDLE, seconds);
	set(fd, IPPROTO_TCP, TCP_KEEPINTVL, seconds);
	set(fd, IPPROTO_TCP, TCP_KEEPCNT, PROBES);
	set(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
}

void tcp_send_at_once(int fd)
{
	set(fd, IPPROTO_TCP, TCP_NODELAY, 1);
}
