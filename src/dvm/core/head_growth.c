/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Nodes that come later, that go before the end, and that get no more tasks.
 *
 * Nodes of a growth have the positions behind all others. They belong to the DVM when all
 * of them have registered; when one cannot, none does, and the client is told why.
 *
 * A node that is to go is given nothing more. When nothing runs there, or what still does
 * after a time has been ended, to be run again, its daemon is told to leave: head_nodes.c.
 */
#include "dvm/core/head_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define NAMES_MAX ((size_t)16 << 20) /* bytes of a request's "nodes" */
#define SECONDS_MAX 1000000000 /* of a request's "grace" */

/* ---- growing ---- */

static void end_growth(struct dvm_head *h, json_t *event)
{
	const struct head_client *c = client_find(h, h->growth.client);

	if (c)
		client_answer(h, c, h->growth.request, event);
	else
		json_decref(event);
	head_growth_forget(h);
}

void head_growth_forget(struct dvm_head *h)
{
	json_decref(h->growth.request);
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
	end_growth(h, json_pack("{s:s,s:o}", "ev", "error", "why", report_name(why)));
}

static bool was_lost(const struct dvm_head *h, const char *name)
{
	for (uint32_t i = 0; i < h->options.nodes; i++)
		if (h->nodes[i].lost && !strcmp(h->nodes[i].name, name))
			return true;
	return false;
}

/* 0 or a negative errno. */
static int adopt_next(struct dvm_head *h)
{
	struct head_node *n = &h->nodes[h->options.nodes];
	int rc = ledger_add_node(h->ledger, &n->has);

	if (rc)
		return rc;
	report_node(h, h->options.nodes, was_lost(h, n->name) ? "returned" : "joined", "", 0);
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
		end_growth(h, json_pack("{s:s,s:i}", "ev", "ok", "nodes",
					(int)h->growth.registered));
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

/* May the DVM grow by `count` nodes? LEDGER_NODES_MAX bounds all of them. */
static bool count_ok(const struct dvm_head *h, json_int_t count)
{
	return count >= 1 && count <= (json_int_t)(LEDGER_NODES_MAX -
						   h->options.nodes);
}

/* The size of a request's "nodes", which are names or a number. */
static json_int_t count_of(json_t *nodes)
{
	return json_is_array(nodes) ? (json_int_t)json_array_size(nodes) :
				      json_integer_value(nodes);
}

/* Nodes of these names can come: a node that is lost, or has left, may come back. */
static bool are_new(struct dvm_head *h, const struct head_client *c, json_t *request,
		    json_t *names)
{
	json_t *name;
	size_t i;

	json_array_foreach(names, i, name) {
		const char *text = json_string_value(name);
		uint32_t node = text ? head_find_node(h, text) : NODE_NONE;

		if (!text || (node != NODE_NONE && !h->nodes[node].lost)) {
			client_refuse(h, c, request, text ? "node %s is here already" :
				      "a node has no %s", text ? text : "name");
			return false;
		}
	}
	return true;
}

/* With commas between them. 0 or -ENOMEM; nothing when these are no names. */
static int join(struct buf *out, json_t *names)
{
	json_t *name;
	size_t i;
	int rc = 0;

	json_array_foreach(names, i, name)
		rc = rc ? rc : buf_printf(out, "%s%s", i ? "," : "",
					  json_string_value(name));
	return rc || !i ? rc : buf_append(out, "", 1);
}

static const char *why_not(int rc)
{
	if (rc == -EBUSY)
		return "the daemons of the last attempt have not ended yet";
	if (rc == -ENOTSUP)
		return "only a DVM in a Slurm job can grow by a job or by names of nodes";
	return strerror(-rc);
}

static int begin_growth(struct dvm_head *h, const struct head_client *c,
			json_t *request, uint32_t count)
{
	json_t *job = json_object_get(request, "job");
	struct buf names;
	int rc = h->ops.grow ? make_room(h, count) : -ENOTSUP;

	if (rc)
		return rc;
	h->growth.nodes = count;
	h->growth.client = c->number;
	h->growth.request = json_incref(request);
	buf_init(&names, NAMES_MAX);
	rc = join(&names, json_object_get(request, "nodes"));
	rc = rc ? rc : h->ops.grow(h->arg, count, (uint64_t)json_integer_value(job),
				   names.data);
	buf_free(&names);
	if (rc)
		head_growth_forget(h);
	return rc;
}

/* "nodes": names, or how many; "job": of which, where it is another one. */
void head_grow_request(struct dvm_head *h, struct head_client *c, json_t *request)
{
	json_t *nodes = json_object_get(request, "nodes");
	json_int_t count = count_of(nodes);
	json_int_t job = json_integer_value(json_object_get(request, "job"));
	int rc;

	if (h->phase != HEAD_SERVES || !head_is_ready(h) || h->growth.nodes) {
		client_refuse(h, c, request, h->growth.nodes ?
			      "this DVM is growing already" :
			      "this DVM is starting or stopping");
		return;
	}
	if (!count_ok(h, count) || job < 0) {
		client_refuse(h, c, request, "\"nodes\" is a list of names or a number, up to %u altogether, and \"job\" the number of a job",
			      LEDGER_NODES_MAX);
		return;
	}
	if (!are_new(h, c, request, nodes))
		return;
	rc = begin_growth(h, c, request, (uint32_t)count);
	if (rc)
		client_refuse(h, c, request, "no more daemons can be started: %s",
			      why_not(rc));
}

/* ---- shrinking ---- */

static bool is_there(const struct head_node *n)
{
	return !n->lost && !n->leaving;
}

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

/* The names are of different nodes that are there. */
static bool names_ok(struct dvm_head *h, const struct head_client *c,
		     json_t *request, json_t *names)
{
	json_t *name;
	size_t i;

	json_array_foreach(names, i, name) {
		const char *text = json_string_value(name);
		uint32_t node = text ? head_find_node(h, text) : NODE_NONE;

		if (node == NODE_NONE || !is_there(&h->nodes[node])) {
			client_refuse(h, c, request, "there is no node %s here",
				      text ? text : "without a name");
			return false;
		}
	}
	return true;
}

/* "nodes": names, or how many; "grace": seconds that what runs there has. */
void head_shrink_request(struct dvm_head *h, struct head_client *c, json_t *request)
{
	json_t *nodes = json_object_get(request, "nodes"), *name;
	json_t *grace = json_object_get(request, "grace");
	json_int_t seconds = json_integer_value(grace);
	json_int_t count = count_of(nodes);
	uint64_t ms = grace ? (uint64_t)seconds * 1000 : UINT64_MAX;
	size_t i;

	if (count < 1 || seconds < 0 || seconds > SECONDS_MAX) {
		client_refuse(h, c, request, "\"nodes\" is a list of names or a number, and \"grace\" one of seconds");
		return;
	}
	if (count >= count_there(h)) {
		client_refuse(h, c, request, "that would remove all nodes: stop the DVM with pmi2x-dvm down");
		return;
	}
	if (!names_ok(h, c, request, nodes))
		return;
	json_array_foreach(nodes, i, name)
		begin_leaving(h, head_find_node(h, json_string_value(name)), ms);
	for (json_int_t n = json_is_array(nodes) ? count : 0; n < count; n++)
		begin_leaving(h, idlest(h), ms);
	client_answer(h, c, request, json_pack("{s:s,s:I}", "ev", "ok", "nodes",
					       count));
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
