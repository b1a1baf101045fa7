/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The place of nodes in a design's tree. Places count from its root: the host, if there is
 * one, and then the nodes. A tree is divided evenly, as libcoll's, or filled as Slurm's:
 * each child has a whole subtree below it before the next one gets any, and the last child
 * gets the rest.
 */
#include "sim.h"

/* A place and all below it; each child of it begins a range of `size` places. */
struct filled {
	uint32_t first, end, size;
};

static uint32_t place_of(const struct sim *s, uint32_t position)
{
	return s->protocol->host ? (position + 1) % s->nhosts : position;
}

static uint32_t position_at(const struct sim *s, uint32_t place)
{
	if (place == TREE_NONE || !s->protocol->host)
		return place;
	return (place + s->nhosts - 1) % s->nhosts;
}

/* The tree with the fewest levels that have room for all. */
static struct filled filled_root(uint32_t places, uint32_t width)
{
	uint64_t below = width;

	while (below < places - 1)
		below = width * (below + 1);
	return (struct filled){ .end = places, .size = below / width };
}

static struct filled filled_child(const struct filled *at, uint32_t width,
				  uint32_t i)
{
	struct filled child = { .first = at->first + 1 + i * at->size };

	child.end = child.first + at->size;
	if (child.end > at->end)
		child.end = at->end;
	child.size = (at->size - 1) / width;
	return child;
}

static uint32_t filled_children(const struct filled *at)
{
	uint32_t below = at->end - at->first - 1;

	return below ? (below + at->size - 1) / at->size : 0;
}

/* Writes the parent's place as well. */
static struct filled filled_place(uint32_t places, uint32_t width,
				  uint32_t place, uint32_t *parent)
{
	struct filled at = filled_root(places, width);

	*parent = TREE_NONE;
	while (at.first != place) {
		*parent = at.first;
		at = filled_child(&at, width, (place - at.first - 1) / at.size);
	}
	return at;
}

void shape_place(struct sim_node *n)
{
	const struct sim *s = n->sim;
	uint32_t parent, at = place_of(s, n->position);

	if (s->protocol->filled) {
		struct filled f = filled_place(s->nhosts, s->width, at, &parent);

		n->children = filled_children(&f);
	} else {
		struct tree_place p = tree_place(s->nhosts, s->width, at);

		parent = p.parent;
		n->children = p.children;
	}
	n->parent = position_at(s, parent);
}

uint32_t shape_child(const struct sim_node *n, uint32_t i)
{
	const struct sim *s = n->sim;
	uint32_t parent, at = place_of(s, n->position);
	struct filled f;
	struct tree_place p;

	if (s->protocol->filled) {
		f = filled_place(s->nhosts, s->width, at, &parent);
		at = filled_child(&f, s->width, i).first;
	} else {
		p = tree_place(s->nhosts, s->width, at);
		at = tree_child(&p, i).first;
	}
	return position_at(s, at);
}
