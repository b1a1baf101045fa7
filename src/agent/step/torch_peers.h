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

/* The other end of a TCP connection. `name`: its address, for people. */
enum torch_peer torch_peer_of(const struct node *n, int fd, char name[NODE_WHY_MAX]);
