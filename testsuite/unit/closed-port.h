/* SPDX-License-Identifier: BSD-3-Clause */
/* A port where nobody listens, and nobody else can meanwhile. */
#ifndef PMI2X_UNIT_CLOSED_PORT_H
#define PMI2X_UNIT_CLOSED_PORT_H

#include "unit.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

/*
 * Of the loopback address. The descriptor, which is the caller's to close, holds the
 * port: one that was just free may be what the kernel gives to the next process.
 */
static inline int closed_port(uint16_t *port)
{
	struct sockaddr_in in = {
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	socklen_t len = sizeof(in);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(bind(fd, (struct sockaddr *)&in, len), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&in, &len), 0);
	*port = ntohs(in.sin_port);
	return fd;
}

#endif
