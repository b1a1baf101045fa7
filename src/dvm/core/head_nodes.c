/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Nodes that are lost or silent, that have to leave (head_growth.c), and the end of the DVM
 * for all of them.
 */
#include "dvm/core/head_private.h"
#include "libutil/plural.h"

#include <stdio.h>

#define LATE_MS 1000 /* a turn later than this after its deadline: the head was stopped */

/* ---- losses ---- */

/* Tasks that ran there wait until their ranks have surely ended. */
static void lose_tasks(struct dvm_head *h, uint32_t node, const char *why)
{
	struct head_node *n = &h->nodes[node];
	bool any = tasks_lose_node(h, node, why);

	if (n->gone || !h->options.away_ms) {
		tasks_leave_node(h, node);
		return;
	}
	n->until_ms = n->heard_ms + h->options.away_ms;
	h->nodes_due_ms = 0;
	if (any)
		log_error(h->log, "ranks on node %s may run for up to %llu s more: their tasks are run again after that",
			  n->name, n->until_ms > h->now.ms ?
				  (unsigned long long)(n->until_ms - h->now.ms) / 1000 : 0);
}

void dvm_head_node_lost(struct dvm_head *h, uint32_t node, const char *why,
			struct dvm_time now)
{
	h->now = now;
	if (node >= h->options.nodes) {
		dvm_head_grow_failed(h, why);
		return;
	}
	if (h->nodes[node].lost)
		return;
	h->nodes[node].lost = true;
	if (h->phase == HEAD_LEFT || !head_is_ready(h))
		return;
	if (h->nodes[node].left) {
		log_info(h->log, "node %s has left", h->nodes[node].name);
	} else {
		log_error(h->log, "node %s is lost: %s", h->nodes[node].name, why);
		report_node(h, node, "lost", why, ledger_node_tasks(h->ledger, node));
	}
	ledger_lose_node(h->ledger, node);
	journal_nodes(h, false);
	h->hopeless_ms = now.ms + (h->journal.on ? HEAD_HOPE_MS : 0);
	lose_tasks(h, node, why);
	tasks_fail_impossible(h);
}

void dvm_head_node_gone(struct dvm_head *h, uint32_t node, struct dvm_time now)
{
	struct head_node *n = &h->nodes[node];

	h->now = now;
	n->gone = true;
	if (!n->until_ms)
		return;
	n->until_ms = 0;
	tasks_leave_node(h, node);
}

void dvm_head_former_gone(struct dvm_head *h, struct dvm_time now)
{
	h->now = now;
	if (h->unheard_ms)
		h->unheard_ms = now.ms; /* the turn releases the tasks */
}

/* ---- leaving, and leases ---- */

/* Tell the node to leave: nothing runs there any more. */
static void tell_to_leave(struct dvm_head *h, uint32_t node)
{
	const struct dvm_msg m = { .type = DVM_LEAVE };

	head_queue_msg(h, node, &m);
	h->nodes[node].left = true;
}

/* A node that is lost: when its ranks have ended, surely. One that is not: when it is. */
static uint64_t lease_limit(const struct dvm_head *h, const struct head_node *n)
{
	if (n->lost)
		return n->until_ms ? n->until_ms : UINT64_MAX;
	return h->options.lease_ms && head_is_ready(h) && !h->adopting ?
	       n->heard_ms + h->options.lease_ms : UINT64_MAX;
}

/*
 * The head was stopped, as by Slurm's suspend, and what the node has said meanwhile has not
 * been read. The node may have been stopped, too: it has some time to be heard.
 */
static bool was_stopped(struct dvm_head *h, struct head_node *n)
{
	if (h->now.ms < lease_limit(h, n) + LATE_MS)
		return false;
	n->heard_ms = h->now.ms - h->options.lease_ms + h->options.lease_ms / 4;
	return true;
}

static void check_lease(struct dvm_head *h, uint32_t node)
{
	struct head_node *n = &h->nodes[node];
	char why[64];

	if (h->now.ms < lease_limit(h, n))
		return;
	if (n->lost) {
		dvm_head_node_gone(h, node, h->now);
		return;
	}
	if (was_stopped(h, n))
		return;
	snprintf(why, sizeof(why), "no message from the daemon for %u s",
		 h->options.lease_ms / 1000);
	dvm_head_node_lost(h, node, why, h->now);
	h->ops.node_break(h->arg, node, "no message from the daemon");
}

static bool is_leaving(const struct head_node *n)
{
	return n->leaving && !n->left && !n->lost;
}

static void go_on_leaving(struct dvm_head *h, uint32_t node)
{
	struct head_node *n = &h->nodes[node];

	if (n->leave_ms && n->leave_ms <= h->now.ms) {
		n->leave_ms = 0;
		tasks_move_away(h, node);
	}
	if (ledger_node_tasks(h->ledger, node))
		h->some_leave = true;
	else
		tell_to_leave(h, node);
}

/* The first deadline of a node. */
static uint64_t first_due(const struct dvm_head *h)
{
	uint64_t first = UINT64_MAX;

	for (uint32_t i = 0; i < h->options.nodes; i++) {
		const struct head_node *n = &h->nodes[i];
		uint64_t lease = lease_limit(h, n);

		if (n->leave_ms && !n->lost && n->leave_ms < first)
			first = n->leave_ms;
		if (lease < first)
			first = lease;
	}
	return first;
}

/*
 * Nodes are looked at when one may have a deadline: what a node says only moves its lease
 * farther away.
 */
void head_nodes_turn(struct dvm_head *h)
{
	if (h->unheard_ms && h->unheard_ms <= h->now.ms) {
		h->unheard_ms = 0;
		tasks_release(h, false);
	}
	if (h->nodes_due_ms > h->now.ms && !h->some_leave)
		return;
	h->some_leave = false;
	for (uint32_t i = 0; i < h->options.nodes; i++) {
		check_lease(h, i);
		if (is_leaving(&h->nodes[i]))
			go_on_leaving(h, i);
	}
	h->nodes_due_ms = head_is_ready(h) && !h->adopting ? first_due(h) : 0;
}

uint64_t dvm_head_deadline(const struct dvm_head *h)
{
	uint64_t due = h->nodes_due_ms ? h->nodes_due_ms : first_due(h);
	uint64_t first = h->stop_ms ? h->stop_ms : UINT64_MAX;

	if (h->unheard_ms && h->unheard_ms < first)
		first = h->unheard_ms;
	if (h->down_ms && h->down_ms < first)
		first = h->down_ms;
	if (h->stuck_ms && h->stuck_ms < first)
		first = h->stuck_ms;
	if (h->hopeless_ms > h->now.ms && h->hopeless_ms < first)
		first = h->hopeless_ms; /* after that, each turn looks */
	if (submits_due_ms(h) < first)
		first = submits_due_ms(h);
	return due < first ? due : first;
}

/* ---- stopping ---- */

void head_drain(struct dvm_head *h)
{
	if (h->phase != HEAD_SERVES)
		return;
	h->phase = HEAD_DRAINS;
	h->ending_ns = h->now.wall_ns;
}

void dvm_head_stop(struct dvm_head *h, struct dvm_time now)
{
	h->now = now;
	if (h->phase != HEAD_SERVES && h->phase != HEAD_DRAINS)
		return;
	if (h->nrunning || h->nqueued)
		log_error(h->log, "the head is stopping: %zu running task%s %s %u s to finish, %zu %s queued",
			  h->nrunning, plural(h->nrunning), has_or_have(h->nrunning),
			  h->options.grace_ms / 1000, h->nqueued, is_or_are(h->nqueued));
	h->phase = HEAD_STOPS;
	h->ending_ns = h->ending_ns ? h->ending_ns : now.wall_ns;
	h->stop_ms = now.ms + h->options.grace_ms;
}

void dvm_head_stop_now(struct dvm_head *h, struct dvm_time now)
{
	dvm_head_stop(h, now);
	if (h->phase == HEAD_STOPS && h->stop_ms)
		h->stop_ms = now.ms ? now.ms : 1;
}

void head_stop_turn(struct dvm_head *h)
{
	if (!h->stop_ms || h->now.ms < h->stop_ms)
		return;
	h->stop_ms = 0;
	for (uint32_t i = 0; i < h->options.nodes; i++)
		tasks_move_away(h, i);
}
