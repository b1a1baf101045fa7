/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The network that a site has chosen for the links, and this node's address there. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

struct network {
	int family;         /* AF_INET or AF_INET6 */
	uint8_t prefix[16]; /* 4 bytes of it with AF_INET */
	uint32_t bits;      /* of it that count */
};

/* "192.0.2.0/24" or "2001:db8::/32". False: it is neither. */
bool network_parse(const char *text, struct network *out);

/*
 * The first address of an interface of this node, that is up, in the network. 0,
 * -EADDRNOTAVAIL, or another negative errno.
 */
int network_address(const struct network *n, struct sockaddr_storage *out);
