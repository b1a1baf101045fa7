/* SPDX-License-Identifier: BSD-3-Clause */
/* The node's facts that all parts of the agent use: node.h. */
#include "agent/node.h"

#include "libcoll/layout.h"

const char *node_name(const struct node *n, uint32_t position)
{
	return n->names[layout_node_id(n->layout, position)];
}

const char *node_own_name(const struct node *n)
{
	return node_name(n, n->self.position);
}

uint64_t node_now(const struct node *n)
{
	return uv_now(loop_uv(n->loop));
}

void node_met(struct node *n, const char *who, const struct link *l)
{
	const struct handshake_peer *peer = link_peer(l);

	if (n->met_other_build || !handshake_other_build(peer, &n->self))
		return;
	n->met_other_build = true;
	log_debug(n->log, "%s runs build %s, node %s build %s; both speak protocol %u",
		  who, peer->build, node_own_name(n), n->self.build,
		  peer->protocol);
}

void node_give_up(const struct node *n, const char *what, int error)
{
	n->give_up(n->give_up_arg, what, error);
}

void node_kill_step(const struct node *n, const char *why)
{
	n->host->kill_step(n->host->arg, why);
}

void node_close_handle(void *handle)
{
	uv_handle_t *h = handle;

	if (h->type != UV_UNKNOWN_HANDLE && !uv_is_closing(h))
		uv_close(h, NULL);
}
