/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The TCPStore of a step, whose protocol has no proof, is for processes on the nodes of the
 * step; on this node, only for those of the step's user.
 */
#pragma once

#include "agent/node.h"

enum torch_peer {
	TORCH_PEER_MAY,
	TORCH_PEER_GONE,       /* the connection has ended */
	TORCH_PEER_OTHER_USER, /* on this node */
	TORCH_PEER_OTHER_HOST, /* no node of the step has the address */
};

#define TORCH_PEERS_MAX 64 /* of one look-up */

/* The other end of a TCP connection. */
struct torch_peer_of {
	int fd;
	enum torch_peer peer;
	char name[NODE_WHY_MAX]; /* address, for people */
};

/*
 * The node of the step that a connection comes from, and its port there. False: it has ended, or
 * comes from elsewhere.
 */
bool torch_peers_origin(const struct node *n, int fd, uint32_t *position, uint16_t *port);
/* The port of a socket; 0: none. */
uint16_t torch_peers_port(int fd);
/*
 * Find out who has made up to TORCH_PEERS_MAX connections. All that come from this node together cost
 * one reading of the kernel's list of sockets, which has a line for each connection of the node.
 */
void torch_peers_look(const struct node *n, struct torch_peer_of *peers, uint32_t count);
