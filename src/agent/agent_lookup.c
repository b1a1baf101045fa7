/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Addresses of neighbours. The host finds them, and may need long. What was
 * found is kept; a failure is, too, for AGENT_LOOKUP_KEPT_MS, since attempts follow
 * one another sooner than a resolver recovers.
 */
#include <errno.h>

#include "agent/agent_internal.h"

void agent_node_found(struct agent *a, uint32_t node_id, int rc,
		      const struct sockaddr_storage *addr)
{
	struct neighbour *n;

	if (a->stage == AGENT_CLOSED ||
	    node_id >= layout_nodes(a->step->layout))
		return;
	n = agent_neighbour(a, layout_position(a->step->layout, node_id));
	if (!n || !n->looking)
		return;
	n->looking = false;
	n->has_addr = rc == 0;
	n->lookup_error = rc;
	n->lookup_ended = uv_now(loop_uv(a->loop));
	if (rc)
		log_debug(a->log, "the address of node %s cannot be looked up",
			  agent_node_name(a, n->position));
	else
		n->addr = *addr;
	if (!n->asking_host)
		agent_wireup_found(n);
}

static bool has_failed_lately(const struct neighbour *n)
{
	uint64_t now = uv_now(loop_uv(n->agent->loop));

	return n->lookup_error && now - n->lookup_ended < AGENT_LOOKUP_KEPT_MS;
}

int agent_lookup(struct neighbour *n)
{
	struct agent *a = n->agent;

	if (n->has_addr)
		return 0;
	if (n->looking)
		return -EINPROGRESS;
	if (has_failed_lately(n))
		return n->lookup_error;
	n->looking = n->asking_host = true;
	a->host.find_node(a->host.arg,
			  layout_node_id(a->step->layout, n->position));
	n->asking_host = false;
	return n->looking ? -EINPROGRESS : n->lookup_error;
}
