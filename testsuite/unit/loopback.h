/* SPDX-License-Identifier: BSD-3-Clause */
/* Ports of the loopback address. */
#pragma once

#include "unit.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

static inline struct sockaddr_storage loopback(uint16_t port)
{
	struct sockaddr_storage s = { 0 };
	struct sockaddr_in *in = (struct sockaddr_in *)&s;

	in->sin_family = AF_INET;
	in->sin_port = htons(port);
	in->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	return s;
}

/*
 * A port where nobody listens. The descriptor, which is the caller's to close, holds
 * it: one that was just free may be what the kernel gives to the next process.
 */
static inline int closed_port(uint16_t *port)
{
	struct sockaddr_storage s = loopback(0);
	struct sockaddr_in *in = (struct sockaddr_in *)&s;
	socklen_t len = sizeof(*in);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(bind(fd, (struct sockaddr *)&s, len), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&s, &len), 0);
	*port = ntohs(in->sin_port);
	return fd;
}
