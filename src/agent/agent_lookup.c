/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Addresses of neighbours. Where the host has to ask a resolver the call blocks:
 * it goes to a helper thread, and the loop is told when it has ended. What was
 * found is kept; a failure is, too, for AGENT_LOOKUP_KEPT_MS, since attempts follow
 * one another sooner than a resolver recovers.
 */
#include <errno.h>
#include <stdlib.h>

#include "agent/agent_internal.h"

/* Owned by the helper: it may outlive the agent, but not the agent's loop. */
struct lookup {
	struct agent_host host;
	uint32_t node_id;
	struct agent *agent; /* for its loop only */
	struct loop *loop;
	uint32_t position;
	int rc;
	struct sockaddr_storage addr;
};

static void run_lookup(void *arg)
{
	struct lookup *l = arg;

	l->rc = l->host.node_address(l->host.arg, l->node_id, true, &l->addr);
}

static void keep(struct neighbour *n, int rc)
{
	n->looking = false;
	n->has_addr = rc == 0;
	n->lookup_error = rc;
	n->lookup_ended = uv_now(loop_uv(n->agent->loop));
	if (rc)
		log_debug(n->agent->log,
			  "the address of node %s cannot be looked up",
			  agent_node_name(n->agent, n->position));
}

static void on_ended(void *arg)
{
	struct lookup *l = arg;
	struct neighbour *n = agent_neighbour(l->agent, l->position);

	if (l->agent->stage != AGENT_CLOSED) {
		n->addr = l->addr;
		keep(n, l->rc);
		agent_wireup_found(n);
	}
	free(l);
}

/* The end of a helper. */
static void release_lookup(void *arg)
{
	struct lookup *l = arg;

	if (loop_post(l->loop, on_ended, l))
		free(l);
}

static int start_lookup(struct neighbour *n, uint32_t node_id)
{
	struct agent *a = n->agent;
	struct lookup *l = calloc(1, sizeof(*l));
	int rc;

	if (!l)
		return -ENOMEM;
	l->host = a->host;
	l->node_id = node_id;
	l->position = n->position;
	l->agent = a;
	l->loop = a->loop;
	rc = helpers_run(a->lookups, run_lookup, release_lookup, l);
	if (rc) {
		free(l);
		return rc;
	}
	n->looking = true;
	return -EINPROGRESS;
}

static bool has_failed_lately(const struct neighbour *n)
{
	uint64_t now = uv_now(loop_uv(n->agent->loop));

	return n->lookup_error && now - n->lookup_ended < AGENT_LOOKUP_KEPT_MS;
}

int agent_lookup(struct neighbour *n)
{
	struct agent *a = n->agent;
	uint32_t node_id = layout_node_id(a->step->layout, n->position);
	int rc;

	if (n->has_addr)
		return 0;
	if (n->looking)
		return -EINPROGRESS;
	if (has_failed_lately(n))
		return n->lookup_error;
	rc = a->host.node_address(a->host.arg, node_id, false, &n->addr);
	if (rc == -EAGAIN)
		return start_lookup(n, node_id);
	keep(n, rc);
	return rc;
}
