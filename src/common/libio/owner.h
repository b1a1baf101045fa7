/* SPDX-License-Identifier: BSD-3-Clause */
/* The user whose process is at the other end of a connection over the loopback device. */
#pragma once

#include <netinet/in.h>
#include <stdint.h>

/* The socket at the other end: what it calls its own address, and its peer's. */
struct owner_peer {
	struct sockaddr_in own, peer;
};

/*
 * The user who made the socket at the other end of `fd`, a TCP connection of IPv4, as
 * the kernel says. 0; -ENOENT: that socket is closed, or is not on this machine; or
 * another negative errno. A socket that listens at the same address is not taken for
 * it. Any thread; costs the same however many sockets the machine has, where the kernel
 * has sock_diag for TCP (inet_diag, tcp_diag).
 */
int owner_of_peer(int fd, uint32_t *uid);

/* Ask in two steps: `fd` may be closed before the second one. */
int owner_note_peer(int fd, struct owner_peer *peer);
int owner_of(const struct owner_peer *peer, uint32_t *uid);

/* The user who made a socket, and its number in this kernel. */
struct owner {
	uint32_t uid;
	unsigned long inode;
};

/* As owner_of. */
int owner_find(const struct owner_peer *peer, struct owner *out);

/* A peer as bytes, for a message within the machine. */
#define OWNER_BYTES 12
void owner_pack(const struct owner_peer *peer, unsigned char bytes[OWNER_BYTES]);
void owner_unpack(const unsigned char bytes[OWNER_BYTES], struct owner_peer *out);
