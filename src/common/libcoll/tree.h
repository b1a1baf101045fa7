/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Arithmetic of the k-ary tree over positions 0..n-1. Pure functions.
 *
 * The root is position 0. The subtree of a position p is a contiguous range
 * [p, end): p itself first, then the ranges of its children in ascending
 * order. So concatenating a node's own data and its children's data in order
 * gives tree order without sorting. The positions below a node are divided
 * as evenly as possible over at most k children.
 */
#pragma once

#include <stdint.h>

#define TREE_NONE UINT32_MAX
#define TREE_WIDTH_MIN 2
#define TREE_WIDTH_MAX 1024
#define TREE_WIDTH_AUTO 0 /* tree_width() chooses */

struct tree_range {
	uint32_t first; /* the position whose subtree this is */
	uint32_t end;   /* one past its last position */
};

struct tree_place {
	uint32_t parent; /* TREE_NONE at the root */
	uint32_t depth;  /* 0 at the root */
	struct tree_range range;
	uint32_t width;
	uint32_t children; /* how many */
};

/*
 * The width of a step's tree. Links are made before sizes are known, so it follows from
 * how many ranks contribute: little is soonest over a wide tree, much, which travels in
 * pieces, over a narrow one. From measurements, see doc/performance.md.
 */
uint32_t tree_width(uint32_t ranks);

/* The place of node `position` (< n) in the tree of n nodes and width k > 0. */
struct tree_place tree_place(uint32_t n, uint32_t k, uint32_t position);

/* The range of child `i` (< place->children) of a place. */
struct tree_range tree_child(const struct tree_place *place, uint32_t i);

/* Which child's range holds `position`; TREE_NONE when none does. */
uint32_t tree_child_index(const struct tree_place *place, uint32_t position);

/* The lowest position with both `first` <= `last` (< n) in its subtree. */
uint32_t tree_meet(uint32_t n, uint32_t k, uint32_t first, uint32_t last);

/*
 * The next hop from `place` towards `target`: a child's position, the parent,
 * or `place` itself when it is the target.
 */
uint32_t tree_next_hop(const struct tree_place *place, uint32_t target);
