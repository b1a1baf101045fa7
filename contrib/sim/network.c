/* SPDX-License-Identifier: BSD-3-Clause */
/* Distances between nodes. */
#include "network.h"

/* Up to the first level whose switch has both below it, and down again. */
static uint32_t fat_tree_hops(uint64_t leaf, uint32_t a, uint32_t b)
{
	uint32_t level = 0;

	while (a != b) {
		a /= leaf;
		b /= leaf;
		level++;
	}
	return level ? 2 * level - 1 : 0;
}

static bool same_group(const struct network_params *p, uint32_t a, uint32_t b)
{
	return a / p->leaf / p->group == b / p->leaf / p->group;
}

/* A router; two in a group; else to a global link and from it. */
static uint32_t dragonfly_hops(const struct network_params *p, uint32_t a,
			       uint32_t b)
{
	if (a / p->leaf == b / p->leaf)
		return 1;
	return same_group(p, a, b) ? 2 : 4;
}

uint32_t network_hops(const struct network_params *p, uint32_t a, uint32_t b)
{
	if (a == b)
		return 0;
	switch (p->topology) {
	case TOPOLOGY_FAT_TREE:
		return fat_tree_hops(p->leaf, a, b);
	case TOPOLOGY_DRAGONFLY:
		return dragonfly_hops(p, a, b);
	default:
		return 1;
	}
}

sim_time network_latency(const struct network_params *p, uint32_t a, uint32_t b)
{
	double t = p->latency + network_hops(p, a, b) * (double)p->hop_latency;

	if (p->topology == TOPOLOGY_DRAGONFLY && !same_group(p, a, b))
		t += p->global_latency;
	return sim_time_of(t);
}

int network_slow_link(const struct scenario *s, uint32_t a, uint32_t b)
{
	for (uint32_t i = 0; i < s->nslow; i++) {
		const struct scenario_slow *f = &s->slow[i];

		if (f->link && ((f->a == a && f->b == b) ||
				(f->a == b && f->b == a)))
			return i;
	}
	return -1;
}

double network_node_factor(const struct scenario *s, uint32_t node)
{
	double factor = 1;

	for (uint32_t i = 0; i < s->nslow; i++)
		if (!s->slow[i].link && s->slow[i].a == node)
			factor *= s->slow[i].factor;
	return factor;
}
