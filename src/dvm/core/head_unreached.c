/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Nodes with ranks of tasks that are to end, of which the head has not heard for a while:
 * their ranks may run until the lease is over. A client that cancels, or asks for the end
 * of the DVM, waits for DOWN_MS and is told their names.
 *
 * A node may be heard, and yet not end its ranks, as when its zygote stands still. The head
 * that is to end gives such a node up some time after the grace time.
 */
#include "dvm/core/head_private.h"

#include <stdlib.h>

#define STUCK_MS 5000 /* after the grace time */
#define DOWN_MS 10000 /* more than twice what a node is silent for: lease.c, ASK_MAX_MS */

static uint64_t silent_ms(const struct dvm_head *h, uint32_t node)
{
	uint64_t heard = h->nodes[node].heard_ms;

	return h->now.ms > heard ? h->now.ms - heard : 0;
}

/* The time when its ranks have certainly ended; seconds since 1970. */
static double until(const struct dvm_head *h, uint32_t node)
{
	double ms = (double)h->nodes[node].heard_ms + h->options.away_ms - (double)h->now.ms;

	return (double)h->now.wall_ns / 1e9 + ms / 1e3;
}

struct silent_node *head_unreached(const struct dvm_head *h, uint64_t silent, size_t *count)
{
	struct silent_node *nodes = calloc(h->options.nodes + 1, sizeof(*nodes));
	bool *on = h->options.away_ms ? tasks_end_on(h) : NULL;

	*count = 0;
	for (uint32_t i = 0; nodes && on && i < h->options.nodes; i++)
		if (silent_ms(h, i) >= silent && on[i])
			nodes[(*count)++] = (struct silent_node){
				head_node_name(h, i), (double)silent_ms(h, i) / 1e3, until(h, i),
			};
	free(on);
	return nodes;
}

/* Tasks that the DVM keeps have the grace time to finish, before they are ended. */
static uint64_t stuck_ms(const struct dvm_head *h)
{
	const uint64_t grace = h->options.grace_ms;

	return h->now.ms + grace + (h->phase == HEAD_STOPS ? grace : 0) + STUCK_MS;
}

void head_down_begins(struct dvm_head *h, uint32_t client)
{
	h->stuck_ms = stuck_ms(h);
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

/* Release cancelled tasks whose ranks may run on unknown nodes. */
static void leave_held(struct dvm_head *h)
{
	if (tasks_release(h, true))
		log_error(h->log, "ranks that an earlier head has started may run for %.0f s more",
			  (double)(h->unheard_ms - h->now.ms) / 1e3);
}

static void give_up_stuck(struct dvm_head *h)
{
	static const char why[] = "its ranks have not ended in time";
	bool *on = tasks_end_on(h);

	h->stuck_ms = 0;
	for (uint32_t i = 0; on && i < h->options.nodes; i++) {
		if (!on[i] || h->nodes[i].lost)
			continue;
		dvm_head_node_lost(h, i, why, h->now);
		h->ops.node_break(h->arg, i, why);
	}
	free(on);
}

void head_unreached_turn(struct dvm_head *h)
{
	struct head_event e = { .type = EVENT_UNREACHED };
	struct silent_node *nodes;
	bool *on;

	if (h->stuck_ms && h->now.ms >= h->stuck_ms)
		give_up_stuck(h);
	if (!h->down_ms || h->now.ms < h->down_ms)
		return;
	h->down_ms = 0;
	e.unreached.nodes = nodes = head_unreached(h, DOWN_MS, &e.unreached.count);
	if (e.unreached.count)
		client_tell(h, h->down_client, &e);
	free(nodes);
	if (h->phase == HEAD_DRAINS)
		leave_held(h);
	on = tasks_end_on(h);
	for (uint32_t i = 0; on && i < h->options.nodes; i++)
		if (on[i])
			leave_alone(h, i);
	free(on);
}
