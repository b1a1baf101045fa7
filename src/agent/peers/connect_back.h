/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * "Connect to me": where a neighbour could not be reached, one message over a
 * path that the site authenticates says where to connect to. It is proved with
 * the step's secret as well, and does no harm when it comes twice.
 */
#pragma once

#include "agent/peers/neighbour.h"

#define CONNECT_BACK_MAX 4096 /* bytes of a message */

/*
 * The address and ports at which the node of a position listens, as that node reports them.
 */
struct whereabouts {
	uint32_t from;
	uint16_t port;
	struct sockaddr_storage addr; /* AF_UNSPEC: at the node's address */
};

/* Send a neighbour a connect-back message, unless one is under way. */
void connect_back_call(struct neighbour *n);
/* The host's answer: see agent_connect_back_sent. */
void connect_back_sent(struct neighbour *n, int rc);
/*
 * "; what failed, and what to do" about telling the neighbour, to be added to why there
 * is no link. "": it has been told, or nobody has tried.
 */
void connect_back_explain(const struct neighbour *n, char *out, size_t size);
/* Check such a message to this node. 0 or -EPROTO, -EACCES. */
int connect_back_check(const struct node *node, const void *data, size_t len,
		       struct whereabouts *out);
