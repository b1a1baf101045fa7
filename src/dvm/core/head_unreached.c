/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Nodes with ranks of tasks that are to end, of which the head has not heard for a while:
 * their ranks may run until the lease is over. A client that cancels, or asks for the end
 * of the DVM, waits for DOWN_MS and is told their names.
 */
#include "dvm/core/head_private.h"

#include <stdlib.h>

#define DOWN_MS 10000 /* more than twice what a node is silent for: lease.c, ASK_MAX_MS */

static uint64_t silent_ms(const struct dvm_head *h, uint32_t node)
{
	uint64_t heard = h->nodes[node].heard_ms;

	return h->now.ms > heard ? h->now.ms - heard : 0;
}

/* When its ranks have ended, surely; seconds since 1970. */
static double until(const struct dvm_head *h, uint32_t node)
{
	double ms = (double)h->nodes[node].heard_ms + h->options.away_ms - (double)h->now.ms;

	return (double)h->now.wall_ns / 1e9 + ms / 1e3;
}

/* A new reference to a list of the nodes that are silent for `silent` ms. */
static json_t *list(const struct dvm_head *h, uint64_t silent)
{
	json_t *nodes = json_array();
	bool *on = h->options.away_ms ? tasks_end_on(h) : NULL;

	for (uint32_t i = 0; on && i < h->options.nodes; i++)
		if (silent_ms(h, i) >= silent && on[i])
			json_array_append_new(nodes, json_pack("{s:o,s:f,s:f}",
				"name", report_name(head_node_name(h, i)),
				"silent", (double)silent_ms(h, i) / 1e3,
				"until", until(h, i)));
	free(on);
	return nodes;
}

void head_unreached_request(struct dvm_head *h, struct head_client *c, json_t *request)
{
	client_answer(h, c, request, json_pack("{s:s,s:o}", "ev", "unreached",
					       "nodes", list(h, 0)));
}

void head_down_begins(struct dvm_head *h, uint32_t client)
{
	h->down_client = client;
	h->down_ms = h->options.away_ms ? h->now.ms + DOWN_MS : 0;
}

/* The next head must not run them again before: only what is cancelled is left alone. */
static void leave_alone(struct dvm_head *h, uint32_t node)
{
	struct head_node *n = &h->nodes[node];

	if (silent_ms(h, node) < DOWN_MS)
		return;
	log_error(h->log, "node %s cannot be reached: ranks there may run for %.0f s more",
		  n->name, until(h, node) - (double)h->now.wall_ns / 1e9);
	if (h->phase != HEAD_DRAINS)
		return;
	if (!n->lost) {
		dvm_head_node_lost(h, node, "no message from the daemon", h->now);
		h->ops.node_break(h->arg, node, "no message from the daemon");
	}
	n->until_ms = 0;
	tasks_leave_node(h, node);
}

/* Nobody knows where their ranks are. */
static void leave_held(struct dvm_head *h)
{
	if (tasks_release(h, true))
		log_error(h->log, "ranks that an earlier head has started may run for %.0f s more",
			  (double)(h->unheard_ms - h->now.ms) / 1e3);
}

void head_unreached_turn(struct dvm_head *h)
{
	json_t *nodes;
	bool *on;

	if (!h->down_ms || h->now.ms < h->down_ms)
		return;
	h->down_ms = 0;
	nodes = list(h, DOWN_MS);
	if (json_array_size(nodes))
		client_tell(h, h->down_client, json_pack("{s:s,s:O}", "ev", "unreached",
							 "nodes", nodes));
	json_decref(nodes);
	if (h->phase == HEAD_DRAINS)
		leave_held(h);
	on = tasks_end_on(h);
	for (uint32_t i = 0; on && i < h->options.nodes; i++)
		if (on[i])
			leave_alone(h, i);
	free(on);
}
