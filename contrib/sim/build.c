/* SPDX-License-Identifier: BSD-3-Clause */
/* Making a simulated step of a scenario. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "contents.h"
#include "network.h"
#include "sim.h"

/* ---- layout ---- */

static uint32_t count_of(struct sim *s, uint32_t node)
{
	uint32_t per_node = s->scenario->ranks_per_node;

	if (s->scenario->layout != RANKS_UNEVEN)
		return per_node;
	return 1 + random_below(&s->random, 2 * per_node - 1);
}

static void list_ranks(struct sim *s, const uint32_t *counts, uint32_t *ranks,
		       const uint32_t **lists)
{
	uint32_t at = 0;
	bool cyclic = s->scenario->layout == RANKS_CYCLIC;

	for (uint32_t i = 0; i < s->nnodes; i++) {
		lists[i] = ranks + at;
		for (uint32_t j = 0; j < counts[i]; j++, at++)
			ranks[at] = cyclic ? j * s->nnodes + i : at;
	}
}

static int make_layout(struct sim *s)
{
	uint32_t *counts = calloc(s->nnodes, sizeof(*counts));
	const uint32_t **lists = calloc(s->nnodes, sizeof(*lists));
	uint32_t *ranks = NULL;
	int rc = -1;

	if (!counts || !lists)
		goto out;
	for (uint32_t i = 0; i < s->nnodes; i++)
		s->nranks += counts[i] = count_of(s, i);
	ranks = calloc(s->nranks, sizeof(*ranks));
	if (!ranks)
		goto out;
	list_ranks(s, counts, ranks, lists);
	rc = layout_create(&s->layout, s->nnodes, s->nranks, counts, lists);
out:
	free(ranks);
	free(lists);
	free(counts);
	return rc;
}

/* ---- nodes ---- */

static uint32_t width_of(const struct sim *s)
{
	if (s->protocol->star)
		return s->nnodes;
	if (s->protocol->width)
		return s->protocol->width;
	if (s->scenario->tree_width != TREE_WIDTH_AUTO)
		return s->scenario->tree_width;
	return s->protocol->filled ? SLURM_TREE_WIDTH : tree_width(s->nranks);
}

static void make_node(struct sim *s, uint32_t position)
{
	struct sim_node *n = &s->nodes[position];

	n->sim = s;
	n->position = position;
	n->dead_at = SIM_NEVER;
	n->factor = 1;
	n->id = position; /* of the host */
	if (position < s->nnodes) {
		n->id = layout_node_id(s->layout, position);
		n->first = layout_ranks_at(s->layout, position, &n->nranks) -
			   layout_order(s->layout);
		n->factor = network_node_factor(s->scenario, n->id);
	}
	shape_place(n);
}

static int make_nodes(struct sim *s)
{
	s->nodes = calloc(s->nhosts, sizeof(*s->nodes));
	s->ranks = calloc(s->nranks, sizeof(*s->ranks));
	if (!s->nodes || !s->ranks ||
	    (s->protocol->open && s->protocol->open(s)))
		return -1;
	for (uint32_t p = 0; p < s->nhosts; p++)
		make_node(s, p);
	for (uint32_t p = 0; p < s->nhosts; p++)
		if (s->protocol->create(s, &s->nodes[p]))
			return -1;
	return 0;
}

static int make_counts(struct sim *s)
{
	size_t n = (size_t)s->nphases * s->nhosts;

	s->node_counts = calloc(n, sizeof(*s->node_counts));
	s->link_counts = calloc(n * LINK_SLOTS, sizeof(*s->link_counts));
	if (s->scenario->node.cores)
		s->core_free = calloc(s->scenario->node.cores,
				      sizeof(*s->core_free));
	return s->node_counts && s->link_counts &&
	       (s->core_free || !s->scenario->node.cores) ? 0 : -1;
}

/* ---- the program of the ranks ---- */

static void number_operations(struct sim *s)
{
	uint16_t next[3] = { 0 };

	for (uint32_t i = 0; i < s->scenario->nops; i++) {
		enum scenario_op_kind kind = s->scenario->ops[i].kind;

		if (kind > OP_RING)
			continue;
		s->seq_of[i] = next[kind];
		s->op_of[kind][next[kind]++] = i;
		s->unit_len[i] = contents_unit_len(s->scenario,
						   &s->scenario->ops[i]);
	}
	s->nphases = s->scenario->nops + 1;
}

/* A message has the tag of its operation, so that each operation has another key. */
void group_seen(struct sim *s, uint32_t op, const struct coll_msg *msg)
{
	if (!coll_msg_is_subset(msg) || s->group_known[op])
		return;
	s->group_known[op] = true;
	memcpy(s->group_key[op], msg->subset.key, COLL_KEY_SIZE);
}

static uint32_t phase_of_group(const struct sim *s, const struct coll_msg *msg)
{
	for (uint32_t i = 0; i < s->scenario->nops; i++)
		if (s->group_known[i] &&
		    !memcmp(s->group_key[i], msg->subset.key, COLL_KEY_SIZE))
			return i;
	return s->scenario->nops;
}

uint32_t phase_of(const struct sim *s, const struct coll_msg *msg)
{
	if (coll_msg_is_subset(msg))
		return phase_of_group(s, msg);
	return coll_msg_has_kind(msg) ? s->op_of[msg->kind][msg->seq] :
					s->scenario->nops;
}

static void start_ranks(struct sim *s)
{
	for (uint32_t p = 0; p < s->nnodes; p++) {
		sim_time node = distribution_draw(&s->scenario->skew,
						  &s->random);

		for (uint32_t i = 0; i < s->nodes[p].nranks; i++)
			sim_add(s, (struct event){
				.type = EVENT_ENTER,
				.a = s->nodes[p].first + i,
				.at = node + distribution_draw(
					&s->scenario->rank_skew, &s->random),
			});
	}
}

static const struct sim_protocol *protocol_of(const struct scenario *scenario)
{
	if (scenario->protocol == PROTOCOL_STORE)
		return &protocol_store;
	if (scenario->protocol != PROTOCOL_PMI2X)
		return protocol_stock(scenario->protocol);
	return scenario->clients == CLIENTS_NONE ? &protocol_coll :
						   &protocol_pmi;
}

static int build(struct sim *s)
{
	int rc = make_layout(s);

	if (!rc)
		rc = make_nodes(s);
	if (!rc)
		rc = make_counts(s);
	if (!rc)
		rc = faults_plan(s);
	if (rc) {
		if (!s->failed)
			sim_fail(s, "not enough memory for %u nodes and %u ranks",
				 s->nnodes, s->nranks);
		return rc;
	}
	start_ranks(s);
	return s->failed ? -1 : 0;
}

struct sim *sim_new(const struct scenario *scenario,
		    char error[SCENARIO_ERROR_MAX])
{
	struct sim *s = calloc(1, sizeof(*s));

	if (!s) {
		snprintf(error, SCENARIO_ERROR_MAX, "not enough memory");
		return NULL;
	}
	s->scenario = scenario;
	s->protocol = protocol_of(scenario);
	s->random.state = scenario->seed;
	s->work.state = ~scenario->seed;
	s->drift = random_factor(&s->work, (double)scenario->node.drift / 100);
	s->nnodes = scenario->nodes;
	s->width = width_of(s);
	s->nhosts = s->nnodes + s->protocol->host;
	number_operations(s);
	if (build(s)) {
		snprintf(error, SCENARIO_ERROR_MAX, "%s", s->error);
		sim_free(s);
		return NULL;
	}
	return s;
}

void sim_free(struct sim *s)
{
	struct event e;

	if (!s)
		return;
	while (events_take(&s->events, &e))
		if (e.type == EVENT_MESSAGE)
			message_free(s, e.message);
	for (uint32_t p = 0; s->nodes && p < s->nhosts; p++) {
		if (s->nodes[p].state)
			s->protocol->destroy(&s->nodes[p]);
		path_unref(s->nodes[p].path);
	}
	if (s->protocol->close)
		s->protocol->close(s);
	for (uint32_t i = 0; i < s->nphases; i++)
		path_unref(s->phases[i].path);
	while (s->spare) {
		struct sim_message *m = s->spare;

		s->spare = (struct sim_message *)m->path;
		free(m);
	}
	events_free(&s->events);
	layout_destroy(s->layout);
	free(s->core_free);
	free(s->link_counts);
	free(s->node_counts);
	free(s->ranks);
	free(s->nodes);
	free(s);
}
