/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The addresses of a TCP listener as text: its port and the addresses of the host's
 * interfaces, "40123+10.0.0.7+fd00::7".
 */
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include "transport.h"

#define TCP_ADDRESSES_MAX 6
#define TCP_TEXT_MAX (INET6_ADDRSTRLEN + 8) /* "[address]:port" */

union tcp_socket_address {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};

struct tcp_address {
	union tcp_socket_address at[TCP_ADDRESSES_MAX];
	int count;
};

/* Bytes of the socket address. */
socklen_t tcp_address_len(const union tcp_socket_address *at);

/*
 * The addresses of this host's interfaces that are up, with `port`: IPv4 before
 * IPv6, loopback only when there is no other. PMI2X_ALLGATHER_TCP_INTERFACE
 * names the one to use. 0, -ENODEV or another errno, then `why` says more.
 */
int tcp_address_local(struct tcp_address *out, uint16_t port, char *why);

/* `out` has TRANSPORT_ADDRESS_MAX bytes. */
void tcp_address_print(const struct tcp_address *address, char *out);

/* The reverse, for text of another process. 0 or -EINVAL. */
int tcp_address_parse(struct tcp_address *out, const char *text);

/* One of the addresses as text for a message; `out` has TCP_TEXT_MAX bytes. */
void tcp_address_show(const union tcp_socket_address *at, char *out);
