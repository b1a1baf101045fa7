/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Nodes that come later, that go before the end, and that get no more tasks.
 *
 * Nodes of a growth have the positions behind all others. They belong to the DVM when all
 * of them have registered. If one cannot register, none belongs to it, and the client
 * gets the reason.
 *
 * A node that is to go gets no more tasks. After its grace time the head ends the tasks
 * that still run there, and runs them again elsewhere. When no task runs there, the head
 * tells the daemon to leave: head_nodes.c.
 */
#include "dvm/core/head_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define NAMES_MAX ((size_t)16 << 20) /* bytes of a request's "nodes" */
#define SECONDS_MAX 1000000000 /* of a request's "grace" */

/* ---- growing ---- */

/* `why`: NULL when it has grown. */
static void end_growth(struct dvm_head *h, const char *why)
{
	const struct head_event e = {
		.type = EVENT_GROWN,
		.grown = { h->growth.tag, why, h->growth.registered },
	};

	client_tell(h, h->growth.client, &e);
	head_growth_forget(h);
}

void head_growth_forget(struct dvm_head *h)
{
	free(h->growth.tag);
	memset(&h->growth, 0, sizeof(h->growth));
}

void head_node_free(struct head_node *n)
{
	free(n->name);
	free(n->drained_why);
	buf_free(&n->out);
	buf_free(&n->done);
	buf_free(&n->later);
	buf_free(&n->early);
}

static void drop_node(struct dvm_head *h, uint32_t node)
{
	struct head_node *n = &h->nodes[node];

	if (n->name)
		h->ops.node_break(h->arg, node, "it cannot join");
	head_node_free(n);
	memset(n, 0, sizeof(*n));
}

void dvm_head_grow_failed(struct dvm_head *h, const char *why)
{
	if (!h->growth.nodes)
		return;
	log_error(h->log, "the DVM has not grown: %s", why);
	for (uint32_t i = h->options.nodes; i < dvm_head_positions(h); i++)
		drop_node(h, i);
	end_growth(h, why);
}

/* 0 or a negative errno. */
static int adopt_next(struct dvm_head *h)
{
	struct head_node *n = &h->nodes[h->options.nodes];
	bool returned = head_has_lost_name(h, n->name);
	int rc = head_add_name(h, h->options.nodes);

	if (rc)
		return rc;
	rc = ledger_add_node(h->ledger, &n->has);
	if (rc) {
		head_drop_name(h, h->options.nodes);
		return rc;
	}
	report_node(h, h->options.nodes, returned ? "returned" : "joined", "", 0);
	h->nodes_due_ms = 0;
	h->options.nodes++;
	h->registered++;
	h->growth.nodes--;
	return 0;
}

void head_growth_registered(struct dvm_head *h)
{
	int rc = 0;

	if (++h->growth.registered < h->growth.nodes)
		return;
	while (!rc && h->growth.nodes)
		rc = adopt_next(h);
	h->retry = true;
	journal_nodes(h, false);
	if (rc)
		dvm_head_grow_failed(h, strerror(-rc));
	else
		end_growth(h, NULL);
}

static int make_room(struct dvm_head *h, uint32_t more)
{
	size_t all = (size_t)h->options.nodes + more;
	struct head_node *nodes = realloc(h->nodes, all * sizeof(*nodes));

	if (!nodes)
		return -ENOMEM;
	memset(nodes + h->options.nodes, 0, more * sizeof(*nodes));
	h->nodes = nodes;
	return 0;
}

/* True: the DVM may grow by `count` nodes. LEDGER_NODES_MAX bounds all of them. */
static bool count_ok(const struct dvm_head *h, int64_t count)
{
	return count >= 1 && count <= (int64_t)(LEDGER_NODES_MAX - h->options.nodes);
}

static bool is_there(const struct head_node *n)
{
	return !n->lost && !n->leaving;
}

/*
 * Nodes of these names are there, for a request to shrink, or can come: one that is lost,
 * or has left, may come back.
 */
static bool names_ok(const struct dvm_head *h, const struct node_names *n, bool there,
		     struct head_refusal *no)
{
	for (int64_t i = 0; n->names && i < n->count; i++) {
		const char *name = n->names[i];
		uint32_t node = name ? head_find_node(h, name) : NODE_NONE;
		const struct head_node *found = node == NODE_NONE ? NULL : &h->nodes[node];

		if (there && !(found && is_there(found)))
			return head_refuse(no, "there is no node %s here",
					   name ? name : "without a name");
		if (!there && (!name || (found && !found->lost)))
			return head_refuse(no, name ? "node %s is here already" :
					   "a node has no %s", name ? name : "name");
	}
	return true;
}

/* With commas between them. 0 or -ENOMEM; nothing when there are no names. */
static int join(struct buf *out, const struct node_names *n)
{
	int rc = 0;

	for (int64_t i = 0; n->names && !rc && i < n->count; i++)
		rc = buf_printf(out, "%s%s", i ? "," : "", n->names[i]);
	return rc || !n->names ? rc : buf_append(out, "", 1);
}

static const char *why_not(int rc)
{
	if (rc == -EBUSY)
		return "the daemons of the last attempt have not ended yet";
	if (rc == -ENOTSUP)
		return "only a DVM in a Slurm job can grow by a job or by names of nodes";
	return strerror(-rc);
}

static int begin_growth(struct dvm_head *h, const struct head_client *c, const char *tag,
			const struct node_names *n, uint64_t job)
{
	struct buf names;
	int rc = h->ops.grow ? make_room(h, (uint32_t)n->count) : -ENOTSUP;

	if (rc)
		return rc;
	h->growth.nodes = (uint32_t)n->count;
	h->growth.client = c->number;
	h->growth.tag = tag ? strdup(tag) : NULL;
	buf_init(&names, NAMES_MAX);
	rc = tag && !h->growth.tag ? -ENOMEM : join(&names, n);
	rc = rc ? rc : h->ops.grow(h->arg, h->growth.nodes, job, names.data);
	buf_free(&names);
	if (rc)
		head_growth_forget(h);
	return rc;
}

bool head_grow(struct dvm_head *h, const struct head_client *c, const char *tag,
	       const struct node_names *n, int64_t job, struct head_refusal *no)
{
	int rc;

	if (h->phase != HEAD_SERVES || !head_is_ready(h) || h->growth.nodes)
		return head_refuse(no, "%s", h->growth.nodes ?
				   "this DVM is growing already" :
				   "this DVM is starting or stopping");
	if (!count_ok(h, n->count) || job < 0)
		return head_refuse(no, "\"nodes\" is a list of names or a number, up to %u altogether, and \"job\" the number of a job",
				   LEDGER_NODES_MAX);
	if (!names_ok(h, n, false, no))
		return false;
	rc = begin_growth(h, c, tag, n, (uint64_t)job);
	return !rc || head_refuse(no, "no more daemons can be started: %s", why_not(rc));
}

/* ---- shrinking ---- */

static uint32_t count_there(const struct dvm_head *h)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < h->options.nodes; i++)
		count += is_there(&h->nodes[i]);
	return count;
}

static void begin_leaving(struct dvm_head *h, uint32_t node, uint64_t grace_ms)
{
	struct head_node *n = &h->nodes[node];

	n->leaving = true;
	n->leave_ms = grace_ms == UINT64_MAX ? 0 : h->now.ms + grace_ms;
	h->nodes_due_ms = 0;
	ledger_close_node(h->ledger, node, true);
	h->retry = true;
}

/* The node with the fewest tasks, among those that are there; the last of them. */
static uint32_t idlest(const struct dvm_head *h)
{
	uint32_t found = NODE_NONE;

	for (uint32_t i = 0; i < h->options.nodes; i++)
		if (is_there(&h->nodes[i]) &&
		    (found == NODE_NONE || ledger_node_tasks(h->ledger, i) <=
						   ledger_node_tasks(h->ledger, found)))
			found = i;
	return found;
}

bool head_shrink(struct dvm_head *h, const struct node_names *n, const int64_t *grace_s,
		 struct head_refusal *no)
{
	uint64_t ms = grace_s ? (uint64_t)*grace_s * 1000 : UINT64_MAX;

	if (n->count < 1 || (grace_s && (*grace_s < 0 || *grace_s > SECONDS_MAX)))
		return head_refuse(no, "\"nodes\" is a list of names or a number, and \"grace\" one of seconds");
	if (n->count >= count_there(h))
		return head_refuse(no, "that would remove all nodes: stop the DVM with pmi2x-dvm down");
	if (!names_ok(h, n, true, no))
		return false;
	for (int64_t i = 0; i < n->count; i++)
		begin_leaving(h, n->names ? head_find_node(h, n->names[i]) : idlest(h), ms);
	return true;
}

/* ---- draining ---- */

void head_drain_node(struct dvm_head *h, uint32_t node, const char *why)
{
	struct head_node *n = &h->nodes[node];

	if (n->drained || n->lost)
		return;
	n->drained = true;
	n->drained_why = why ? strdup(why) : NULL;
	ledger_close_node(h->ledger, node, true);
	h->retry = true;
	if (!why)
		return;
	log_error(h->log, "node %s gets no more tasks until pmi2x-dvm undrain: %s",
		  head_node_name(h, node), why);
	report_node(h, node, "drained", why, 0);
}

void head_undrain_node(struct dvm_head *h, uint32_t node)
{
	struct head_node *n = &h->nodes[node];

	n->drained = false;
	free(n->drained_why);
	n->drained_why = NULL;
	ledger_close_node(h->ledger, node, false);
	h->retry = true;
}
