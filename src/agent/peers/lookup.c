/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Addresses of neighbours. The host finds them, and may need long. An address is kept; a
 * failure is, too, for LOOKUP_KEPT_MS, since attempts follow one another sooner than a
 * resolver recovers.
 */
#include "agent/peers/lookup.h"

#include <errno.h>

#include "libcoll/layout.h"

#define LOOKUP_KEPT_MS 5000 /* a failed look-up; then it is asked again */

struct neighbour *lookup_found(struct peers *p, uint32_t node_id, int rc,
			       const struct sockaddr_storage *addr)
{
	const struct node *node = p->node;
	struct neighbour *n;

	if (node_id >= layout_nodes(node->layout))
		return NULL;
	n = neighbour_find(p, layout_position(node->layout, node_id));
	if (!n || !n->looking)
		return NULL;
	n->looking = false;
	n->has_addr = rc == 0;
	n->lookup_error = rc;
	n->lookup_ended = node_now(node);
	if (rc)
		log_debug(node->log, "the address of node %s cannot be looked up",
			  neighbour_name(n));
	else
		n->addr = *addr;
	return n->asking_host ? NULL : n;
}

static bool has_failed_lately(const struct neighbour *n)
{
	return n->lookup_error && node_now(n->peers->node) - n->lookup_ended <
					  LOOKUP_KEPT_MS;
}

int lookup_address(struct neighbour *n)
{
	const struct node *node = n->peers->node;

	if (n->has_addr)
		return 0;
	if (n->looking)
		return -EINPROGRESS;
	if (has_failed_lately(n))
		return n->lookup_error;
	n->looking = n->asking_host = true;
	node->host->find_node(node->host->arg,
			      layout_node_id(node->layout, n->position));
	n->asking_host = false;
	return n->looking ? -EINPROGRESS : n->lookup_error;
}
