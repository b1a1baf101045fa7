/* SPDX-License-Identifier: BSD-3-Clause */
/* The keys that agents set and fetch for PyTorch. */
#include "agent/step/torch_tree.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libstore/store.h"

#define NO_PORTS "off" /* instead of ports: PMI2X_TORCH is off on the first node */
#define FAILED_MAX (NODE_WHY_MAX + 16) /* bytes of a code and a reason */

/* Tokens of requests, by key. */
enum topic { TOPIC_PORTS, TOPIC_FAILED, TOPIC_USED };

static const char *const keys[] = {
	[TOPIC_PORTS] = "ports", [TOPIC_FAILED] = "failed", [TOPIC_USED] = "used",
};

struct torch_tree {
	struct service *service;
	torch_failed_fn *failed;
	torch_used_fn *used;
	struct store_client *client;
	bool waits; /* for the ports */
	uint16_t port; /* of the store on the first node; 0: unknown */
};

/* ---- in ---- */

static void report_ports(struct torch_tree *t, const uint16_t ports[TORCH_PORTS])
{
	const struct agent_host *host = t->service->node->host;

	t->waits = false;
	t->port = ports[TORCH_PORT_STORE];
	if (host->torch_ports_known)
		host->torch_ports_known(host->arg, ports);
}

static void take_ports(struct torch_tree *t, const char *text)
{
	unsigned ports[TORCH_PORTS];
	uint16_t known[TORCH_PORTS];

	t->waits = false;
	if (sscanf(text, "%5u %5u", &ports[0], &ports[1]) != TORCH_PORTS)
		return;
	for (int i = 0; i < TORCH_PORTS; i++)
		known[i] = (uint16_t)ports[i];
	report_ports(t, known);
}

/*
 * The ranks of the first node, or of one on the way to it, ended before this node was connected.
 * So they use no meeting point, and the ranks of this node may not, either: they begin.
 */
static void miss_ports(struct torch_tree *t)
{
	static const uint16_t unknown[TORCH_PORTS];
	const struct service *s = t->service;

	log_info(s->node->log, "node %s does not know the ports of PMI2X_TORCH: the first node has left the step",
		 node_own_name(s->node));
	report_ports(t, unknown);
}

/* Without the ports no rank of this node begins. */
static void fail_ports(struct torch_tree *t)
{
	const struct node *n = t->service->node;
	char why[NODE_WHY_MAX];

	t->waits = false;
	snprintf(why, sizeof(why),
		 "Pmi2xTorch is set on node %.64s and off on node %.64s, the first one: give all nodes the same mpi.conf, then run \"scontrol reconfigure\"",
		 node_own_name(n), node_name(n, 0));
	node_kill_step(n, why);
}

static void take_failed(const struct torch_tree *t, const char *text)
{
	char why[NODE_WHY_MAX];
	int code, at = 0;

	if (sscanf(text, "%d %n", &code, &at) != 1 || !at)
		return;
	snprintf(why, sizeof(why), "%s", text + at);
	t->failed(t->service, why, code);
}

/* A request fails when the parent has gone. If that ends the step, others report it. */
static void on_answer(void *arg, uint64_t topic, const struct store_answer *a)
{
	struct torch_tree *t = arg;
	char text[FAILED_MAX];
	const struct payload *value;

	if (a->status == STORE_FAILED && topic == TOPIC_PORTS && t->waits)
		miss_ports(t);
	if (a->status != STORE_OK || !a->nvalues || !(value = a->values[0]))
		return;
	snprintf(text, sizeof(text), "%.*s", (int)value->len, value->data);
	if (topic == TOPIC_PORTS && !strcmp(text, NO_PORTS))
		fail_ports(t);
	else if (topic == TOPIC_PORTS)
		take_ports(t, text);
	else if (topic == TOPIC_FAILED)
		take_failed(t, text);
	else
		t->used(t->service);
}

/* ---- out ---- */

static void ask(const struct torch_tree *t, enum store_op op, enum topic topic, const char *value)
{
	const struct store_bytes key = { keys[topic], strlen(keys[topic]) };
	const struct store_request rq = {
		.op = op, .keys = &key, .nkeys = 1, .value = { value, strlen(value) },
	};

	store_ask(t->client, topic, &rq);
}

static void tell_ports(const struct torch_tree *t)
{
	const uint16_t *ports = t->service->node->options->torch_ports;
	char text[32];

	snprintf(text, sizeof(text), "%u %u", ports[0], ports[1]);
	ask(t, STORE_SET, TOPIC_PORTS, text);
}

bool torch_tree_waits(const struct service *s)
{
	return s->torch_tree && s->torch_tree->waits;
}

uint16_t torch_tree_port(const struct service *s)
{
	return s->torch_tree ? s->torch_tree->port : 0;
}

void torch_tree_used(struct service *s)
{
	const struct torch_tree *t = s->torch_tree;

	if (t && t->used && !s->step->position)
		t->used(s);
	else if (t)
		ask(t, STORE_SET, TOPIC_USED, "1");
}

void torch_tree_rank_failed(struct service *s, const char *why, int code)
{
	const struct torch_tree *t = s->torch_tree;
	char text[FAILED_MAX];

	snprintf(text, sizeof(text), "%d %s", code, why);
	if (t && t->failed && !s->step->position)
		t->failed(s, why, code);
	else if (t)
		ask(t, STORE_SET, TOPIC_FAILED, text);
}

/* ---- life ---- */

/* The first node of several tells its ports; the others wait for these. */
static void begin(struct torch_tree *t)
{
	const struct service *s = t->service;

	if (t->waits) {
		ask(t, STORE_FETCH, TOPIC_PORTS, "");
		return;
	}
	if (layout_nodes(s->step->layout) > 1) {
		tell_ports(t);
		ask(t, STORE_FETCH, TOPIC_FAILED, "");
		ask(t, STORE_FETCH, TOPIC_USED, "");
	}
}

static struct torch_tree *make_tree(struct service *s)
{
	static const struct store_client_ops ops = { .answer = on_answer };
	struct torch_tree *t = calloc(1, sizeof(*t));

	s->torch_tree = t;
	if (!t)
		return NULL;
	t->service = s;
	t->client = store_client_open(s->store, STORE_AGENT, &ops, t);
	return t->client ? t : NULL;
}

void torch_tree_asked(struct service *s)
{
	struct torch_tree *t;

	if (s->step->position || s->torch_tree)
		return;
	t = make_tree(s);
	if (t)
		ask(t, STORE_SET, TOPIC_PORTS, NO_PORTS);
}

int torch_tree_open(struct service *s, torch_failed_fn *failed, torch_used_fn *used)
{
	const struct agent_options *o = s->node->options;
	struct torch_tree *t;

	if (!o->torch_ports[0] && !o->torch_ports_wanted)
		return 0;
	t = make_tree(s);
	if (!t)
		return -ENOMEM;
	t->failed = failed;
	t->used = used;
	t->waits = o->torch_ports_wanted;
	begin(t);
	return 0;
}

void torch_tree_close(struct service *s)
{
	if (!s->torch_tree)
		return;
	store_client_close(s->torch_tree->client);
	s->torch_tree->client = NULL;
	s->torch_tree->waits = false;
}

void torch_tree_free(struct service *s)
{
	free(s->torch_tree);
}
