/* SPDX-License-Identifier: BSD-3-Clause */
/* Arithmetic of the k-ary tree. */
#include "libcoll/tree.h"

uint32_t tree_width(uint32_t ranks)
{
	return ranks < 1024 ? 8 : ranks < 16384 ? 4 : 3;
}

/* How many positions are below the one at the start of a range. */
static uint32_t below(struct tree_range range)
{
	return range.end - range.first - 1;
}

static uint32_t fan_out(struct tree_range range, uint32_t k)
{
	return below(range) < k ? below(range) : k;
}

struct tree_place tree_place(uint32_t n, uint32_t k, uint32_t position)
{
	struct tree_place place = {
		.parent = TREE_NONE,
		.range = { .first = 0, .end = n },
		.width = k,
	};

	place.children = fan_out(place.range, k);
	while (place.range.first != position) {
		uint32_t i = tree_child_index(&place, position);

		place.parent = place.range.first;
		place.range = tree_child(&place, i);
		place.children = fan_out(place.range, k);
		place.depth++;
	}
	return place;
}

/* The first below % fan_out children have one position more than the others. */
struct tree_range tree_child(const struct tree_place *place, uint32_t i)
{
	uint32_t fan = place->children;
	uint32_t size = below(place->range) / fan;
	uint32_t larger = below(place->range) % fan;
	struct tree_range child;

	child.first = place->range.first + 1 + i * size +
		      (i < larger ? i : larger);
	child.end = child.first + size + (i < larger);
	return child;
}

uint32_t tree_child_index(const struct tree_place *place, uint32_t position)
{
	uint32_t fan, size, larger, offset;

	if (position <= place->range.first || position >= place->range.end)
		return TREE_NONE;
	fan = place->children;
	size = below(place->range) / fan;
	larger = below(place->range) % fan;
	offset = position - place->range.first - 1;
	if (offset < larger * (size + 1))
		return offset / (size + 1);
	return (offset - larger) / size;
}

uint32_t tree_meet(uint32_t n, uint32_t k, uint32_t first, uint32_t last)
{
	struct tree_place place = tree_place(n, k, 0);

	while (place.range.first != first) {
		uint32_t i = tree_child_index(&place, first);

		if (tree_child_index(&place, last) != i)
			break;
		place = tree_place(n, k, tree_child(&place, i).first);
	}
	return place.range.first;
}

uint32_t tree_next_hop(const struct tree_place *place, uint32_t target)
{
	uint32_t i;

	if (target == place->range.first)
		return target;
	i = tree_child_index(place, target);
	return i == TREE_NONE ? place->parent : tree_child(place, i).first;
}
