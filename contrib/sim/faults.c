/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ranks, nodes and links that die, and how their neighbours learn of it: a node
 * that has a link to what is gone notices after the scenario's `detect`, and so
 * does one that sends there later. Messages that were sent before and have not arrived by
 * then are lost.
 */
#include <stdio.h>

#include "sim.h"

static uint32_t position_of(const struct sim *s, uint32_t id)
{
	return layout_position(s->layout, id);
}

/* ---- planning ---- */

static bool are_peers(const struct sim *s, uint32_t a, uint32_t b)
{
	const struct sim_node *n = &s->nodes[a];

	return n->parent == b || s->nodes[b].parent == a;
}

/* The parent of a node, to which the node has a link that it could lose instead. */
static uint32_t parent_id(const struct sim *s, uint32_t id)
{
	uint32_t parent = s->nodes[position_of(s, id)].parent;

	return parent == TREE_NONE ? id : layout_node_id(s->layout, parent);
}

static int check(struct sim *s, const struct scenario_fault *f)
{
	char at[SCENARIO_AT_MAX];

	scenario_at(at, s->scenario->name, f->line);
	if (!s->protocol->faults)
		sim_fail(s, "%s: %s: only protocol = pmi2x knows what to do when something dies; the others would wait forever",
			 at, scenario_fault_name(f->kind));
	else if (f->kind == FAULT_RANK && f->a >= s->nranks)
		sim_fail(s, "%s: rank: there is no rank %u, allowed is 0 to %u",
			 at, f->a, s->nranks - 1);
	else if (f->kind == FAULT_LINK &&
		 !are_peers(s, position_of(s, f->a), position_of(s, f->b)))
		sim_fail(s, "%s: link: nodes %u and %u have no link; allowed are a node and its parent in the tree (of node %u: %u)",
			 at, f->a, f->b, f->b, parent_id(s, f->b));
	return s->failed ? -1 : 0;
}

int faults_plan(struct sim *s)
{
	for (uint32_t i = 0; i < s->scenario->nfaults; i++) {
		const struct scenario_fault *f = &s->scenario->faults[i];

		s->broken_at[i] = SIM_NEVER;
		if (check(s, f))
			return -1;
		if (!f->in_phase)
			sim_add(s, (struct event){
				.type = EVENT_FAULT, .a = i, .at = f->at,
			});
	}
	return 0;
}

/* ---- what takes messages ---- */

bool fault_takes(const struct sim *s, const struct sim_node *from,
		 const struct sim_node *to, sim_time at)
{
	if (at >= to->dead_at ||
	    (from->dead && at >= from->dead_at + s->scenario->network.detect))
		return true;
	for (uint32_t i = 0; i < s->scenario->nfaults; i++) {
		const struct scenario_fault *f = &s->scenario->faults[i];

		if (f->kind == FAULT_LINK && at >= s->broken_at[i] &&
		    ((f->a == from->id && f->b == to->id) ||
		     (f->a == to->id && f->b == from->id)))
			return true;
	}
	return false;
}

/* ---- dying ---- */

static void will_notice(struct sim *s, uint32_t position, uint32_t peer)
{
	sim_add(s, (struct event){
		.type = EVENT_LOST, .a = position, .b = peer,
		.at = s->now + s->scenario->network.detect,
	});
}

static void rank_dies(struct sim *s, uint32_t rank)
{
	struct sim_node *n =
		&s->nodes[layout_rank_position(s->layout, rank)];
	char why[64];
	uint32_t count, slot = 0;
	const uint32_t *ranks = layout_ranks_at(s->layout, n->position, &count);

	while (ranks[slot] != rank)
		slot++;
	if (n->dead || s->ranks[n->first + slot].gone)
		return;
	snprintf(why, sizeof(why), "rank %u (node %u) was killed", rank, n->id);
	node_begin(n, s->now, NULL, rank);
	rank_leaves(n, slot, why);
	node_end(n);
}

/* The nodes that have a link to it. */
static void tell_peers(struct sim *s, const struct sim_node *n)
{
	if (n->parent != TREE_NONE)
		will_notice(s, n->parent, n->position);
	for (uint32_t i = 0; i < n->children; i++) {
		const struct tree_place place = tree_place(
			s->nnodes, s->width, n->position);

		will_notice(s, tree_child(&place, i).first,
			    n->position);
	}
}

static void node_dies(struct sim *s, uint32_t id)
{
	struct sim_node *n = &s->nodes[position_of(s, id)];

	if (n->dead)
		return;
	tell_peers(s, n);
	n->dead = true;
	n->dead_at = s->now;
	s->protocol->destroy(n);
	n->state = NULL;
}

static void link_breaks(struct sim *s, uint32_t index, uint32_t a, uint32_t b)
{
	s->broken_at[index] = s->now;
	if (s->nodes[a].dead || s->nodes[b].dead)
		return;
	will_notice(s, a, b);
	will_notice(s, b, a);
}

void fault_happens(struct sim *s, uint32_t index)
{
	const struct scenario_fault *f = &s->scenario->faults[index];

	if (s->fault_done[index])
		return;
	s->fault_done[index] = true;
	s->faulty = true;
	if (f->kind == FAULT_RANK)
		rank_dies(s, f->a);
	else if (f->kind == FAULT_NODE)
		node_dies(s, f->a);
	else
		link_breaks(s, index, position_of(s, f->a),
			    position_of(s, f->b));
}

void faults_in_phase(struct sim_node *n, uint32_t slot, uint32_t op)
{
	const struct scenario *sc = n->sim->scenario;

	for (uint32_t i = 0; i < sc->nfaults; i++) {
		const struct scenario_fault *f = &sc->faults[i];
		uint32_t rank = rank_number(n->sim, n->first + slot);

		if (f->in_phase && f->phase == op &&
		    f->a == (f->kind == FAULT_RANK ? rank : n->id))
			fault_happens(n->sim, i);
	}
}

void fault_noticed(struct sim *s, uint32_t position, uint32_t peer)
{
	struct sim_node *n = &s->nodes[position];
	char why[64];

	if (n->dead)
		return;
	snprintf(why, sizeof(why), "node %u lost its link to node %u", n->id,
		 s->nodes[peer].id);
	node_begin(n, s->now, NULL, PATH_NO_RANK);
	s->protocol->link_lost(n, peer, why);
	node_end(n);
}
