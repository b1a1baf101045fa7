/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Faults of simulated DVMs. A node that is lost is gone with its ranks, and its head
 * notices it later. The daemons of a head that is lost end with it, as without --orphan.
 * If the head had a journal, another one may follow on the nodes that live.
 */
#include "dvm_sim.h"

static void lose_node(struct dvm_sim *s, struct sim_dvm_node *n)
{
	struct dvm_frame *f;

	n->lost = true;
	if (!n->node)
		return; /* its head is lost, too */
	sim_node_die(n);
	if (n->head->tree)
		sim_tree_node_lost(n);
	if (n->head->tree && n->parent != TREE_HEAD)
		return;
	f = dvm_frame_new(s, n->head->number, n->position, NULL, 0);
	if (f)
		f->lost = true;
	dvm_sim_send(s, s->now + s->scenario->dvm.detect, EVENT_DVM_TO_HEAD, f);
}

static void lose_head(struct dvm_sim *s, struct sim_head *h, const struct scenario_fault *f)
{
	if (!h->head)
		return;
	for (uint32_t i = h->first; i < h->first + h->nodes; i++)
		if (s->nodes[i].node)
			sim_node_die(&s->nodes[i]);
	sim_head_die(h);
	if (f->resumes)
		dvm_sim_add(s, s->now + f->resume, EVENT_DVM_FOLLOWS, h->number);
	else
		sim_client_give_up(s, h);
}

void sim_fault_happens(struct dvm_sim *s, uint32_t fault)
{
	const struct scenario_fault *f = &s->scenario->faults[fault];

	if (f->kind == FAULT_NODE)
		lose_node(s, &s->nodes[f->a]);
	else
		lose_head(s, &s->heads[f->a - 1], f);
}

void sim_head_follows(struct dvm_sim *s, uint32_t head)
{
	struct sim_head *h = &s->heads[head];

	if (h->head || sim_head_begin(h))
		return;
	for (uint32_t i = 0; i < h->nmembers; i++) {
		struct sim_dvm_node *n = &s->nodes[h->members[i]];

		n->position = i;
		if (sim_node_begin(n))
			return;
	}
}

int sim_faults_plan(struct dvm_sim *s)
{
	const struct scenario *c = s->scenario;

	for (uint32_t i = 0; i < c->nslow; i++)
		s->nodes[c->slow[i].a].factor *= c->slow[i].factor;
	for (uint32_t i = 0; i < c->nfaults; i++)
		dvm_sim_add(s, c->faults[i].at, EVENT_DVM_FAULT, i);
	return s->error[0] ? -1 : 0;
}
