/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * "Connect to me": where a neighbour could not be reached, one message over a
 * path that the site authenticates says where to connect to. It is proved with
 * the step's secret as well, and does no harm when it comes twice.
 */
#ifndef PMI2X_CONNECT_BACK_H
#define PMI2X_CONNECT_BACK_H

#include "agent/peers/neighbour.h"

#define CONNECT_BACK_MAX 4096 /* bytes of a message */

/* Where the node at a position listens, as it says. */
struct whereabouts {
	uint32_t from;
	uint16_t port;
	struct sockaddr_storage addr; /* AF_UNSPEC: at the node's address */
};

/*
 * Have a neighbour told where we listen. False: it will not be. With `answer`, the
 * host says when it has been.
 */
bool connect_back_call(const struct neighbour *n, bool answer);
/* Check such a message to this node. 0 or -EPROTO, -EACCES. */
int connect_back_check(const struct node *node, const void *data, size_t len,
		       struct whereabouts *out);

#endif
