/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The tree of control of a DVM: the head is its root, and the nodes are numbered level by
 * level. A node that joins never moves another one. `width` is at least 1.
 */
#pragma once

#include <stdint.h>

#define TREE_HEAD UINT32_MAX /* position of the head */
#define TREE_STAR_MAX 512    /* nodes: more are a tree if the user does not say */

/*
 * The width where the user does not say: 0 for few nodes, else the root of their number.
 * With a wider tree the head has more links; with a narrower one all nodes get the addresses
 * of more relays.
 */
static inline uint32_t tree_default_width(uint32_t nodes)
{
	uint32_t width = 1;

	if (nodes <= TREE_STAR_MAX)
		return 0;
	while ((uint64_t)width * width < nodes)
		width++;
	return width;
}

/* The parent of the node at a position, or TREE_HEAD. */
static inline uint32_t tree_parent(uint32_t position, uint32_t width)
{
	return position < width ? TREE_HEAD : position / width - 1;
}

/* The number of nodes that have children, among `nodes`: those of the first positions. */
static inline uint32_t tree_relays(uint32_t nodes, uint32_t width)
{
	return nodes ? (nodes - 1) / width : 0;
}
