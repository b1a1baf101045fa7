/* SPDX-License-Identifier: BSD-3-Clause */
/* Listening TCP sockets, before there is a loop to accept in. Any thread. */
#pragma once

#include <stdint.h>
#include <sys/socket.h>

/*
 * A listening TCP socket on `bind_to` (AF_UNSPEC: every address, both
 * families) and `port` (0: any). The descriptor or a negative errno
 * (-EADDRINUSE: also where port_keep has the port). Writes the port.
 */
int listener_socket(const struct sockaddr_storage *bind_to, uint16_t port,
		    uint16_t *bound);

/*
 * A socket that keeps `port` of every address from others: from programs that ask for any
 * port, from listener_socket and from port_keep. Servers that set SO_REUSEADDR and ask for
 * this port can listen there. A descriptor or a negative errno.
 */
int port_keep(uint16_t port);
/*
 * Listen on `bind_to` at a port that the caller keeps, as listener_socket. The descriptor or a
 * negative errno.
 */
int port_listen_kept(const struct sockaddr_storage *bind_to, uint16_t port);

/*
 * The port of node `index` (a position): first + (seed + index) modulo the size of the
 * range, so that nodes of one step on one host never collide. Nobody else knows the
 * seed, and so which ports to take before them.
 */
uint16_t seeded_port(uint64_t seed, uint32_t index, uint16_t first,
		     uint16_t last);
