/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The layout of a step: which ranks run on which node, and the order in which
 * nodes form the tree.
 *
 * A node has two numbers. Its *node id* is its index in the step's node list.
 * Its *position* is its place in tree order: nodes sorted by their lowest
 * rank. Everything in libcoll speaks of positions.
 *
 * Immutable after creation, so any number of threads and agents may share it.
 */
#pragma once

#include <stdint.h>

#define LAYOUT_NODES_MAX (1u << 20) /* sanity limits, checked on creation */
#define LAYOUT_RANKS_MAX (1u << 26)

struct layout;

/*
 * Create a layout. `counts[i]` ranks run on node id i, listed in `ranks[i]` in
 * any order; together they are exactly 0..nranks-1 and no node is empty. The
 * arrays are copied. 0, -EINVAL (not such a partition, or over the limits) or
 * -ENOMEM.
 */
int layout_create(struct layout **out, uint32_t nnodes, uint32_t nranks,
		  const uint32_t *counts, const uint32_t *const *ranks);
void layout_destroy(struct layout *l);

uint32_t layout_nodes(const struct layout *l);
uint32_t layout_ranks(const struct layout *l);

uint32_t layout_position(const struct layout *l, uint32_t node_id);
uint32_t layout_node_id(const struct layout *l, uint32_t position);
/* The position on which `rank` runs. */
uint32_t layout_rank_position(const struct layout *l, uint32_t rank);

/* The ranks of a position, ascending; the index in it is the *slot*. */
const uint32_t *layout_ranks_at(const struct layout *l, uint32_t position,
				uint32_t *count);

/*
 * All ranks in tree order: position by position, ascending within each. The
 * data that the tree concatenates for an allgather comes in this order.
 */
const uint32_t *layout_order(const struct layout *l);
