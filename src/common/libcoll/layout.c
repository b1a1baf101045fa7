/* SPDX-License-Identifier: BSD-3-Clause */
/* Builds the layout of a step from its ranks per node, in linear time. */
#include "libcoll/layout.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#define UNSEEN UINT32_MAX

struct layout {
	uint32_t nnodes;
	uint32_t nranks;
	uint32_t *position;      /* by node id */
	uint32_t *node_id;       /* by position */
	uint32_t *first;         /* by position, nnodes + 1: index into order */
	uint32_t *order;         /* ranks in tree order */
	uint32_t *rank_position; /* by rank; node ids while it is built */
};

static uint32_t *array_of(uint32_t count, uint32_t value)
{
	uint32_t *array = malloc(count * sizeof(*array));

	for (uint32_t i = 0; array && i < count; i++)
		array[i] = value;
	return array;
}

static struct layout *layout_new(uint32_t nnodes, uint32_t nranks)
{
	struct layout *l = calloc(1, sizeof(*l));

	if (!l)
		return NULL;
	l->nnodes = nnodes;
	l->nranks = nranks;
	l->position = array_of(nnodes, UNSEEN);
	l->node_id = array_of(nnodes, UNSEEN);
	l->first = array_of(nnodes + 1, 0);
	l->order = array_of(nranks, UNSEEN);
	l->rank_position = array_of(nranks, UNSEEN);
	if (l->position && l->node_id && l->first && l->order &&
	    l->rank_position)
		return l;
	layout_destroy(l);
	return NULL;
}

/* Note the node of every rank. False unless each rank comes exactly once. */
static bool assign_ranks(struct layout *l, const uint32_t *counts,
			 const uint32_t *const *ranks)
{
	uint64_t total = 0;

	for (uint32_t node = 0; node < l->nnodes; node++) {
		total += counts[node];
		if (counts[node] == 0 || total > l->nranks)
			return false;
		for (uint32_t i = 0; i < counts[node]; i++) {
			uint32_t rank = ranks[node][i];

			if (rank >= l->nranks ||
			    l->rank_position[rank] != UNSEEN)
				return false;
			l->rank_position[rank] = node;
		}
	}
	return total == l->nranks;
}

/* Walking the ranks upwards meets the nodes in the order of their lowest. */
static void assign_positions(struct layout *l)
{
	uint32_t next = 0;

	for (uint32_t rank = 0; rank < l->nranks; rank++) {
		uint32_t node = l->rank_position[rank];

		if (l->position[node] == UNSEEN) {
			l->position[node] = next;
			l->node_id[next++] = node;
		}
		l->rank_position[rank] = l->position[node];
	}
}

/*
 * Sort the ranks by position. While they are filed, first[p] is where the next
 * rank of p goes, so it ends up where p + 1 begins: hence the shift.
 */
static void sort_ranks(struct layout *l, const uint32_t *counts)
{
	uint32_t start = 0;

	for (uint32_t p = 0; p < l->nnodes; p++) {
		l->first[p] = start;
		start += counts[l->node_id[p]];
	}
	for (uint32_t rank = 0; rank < l->nranks; rank++)
		l->order[l->first[l->rank_position[rank]]++] = rank;
	for (uint32_t p = l->nnodes; p > 0; p--)
		l->first[p] = l->first[p - 1];
	l->first[0] = 0;
}

int layout_create(struct layout **out, uint32_t nnodes, uint32_t nranks,
		  const uint32_t *counts, const uint32_t *const *ranks)
{
	struct layout *l;

	if (nnodes == 0 || nnodes > LAYOUT_NODES_MAX || nranks < nnodes ||
	    nranks > LAYOUT_RANKS_MAX)
		return -EINVAL;
	l = layout_new(nnodes, nranks);
	if (!l)
		return -ENOMEM;
	if (!assign_ranks(l, counts, ranks)) {
		layout_destroy(l);
		return -EINVAL;
	}
	assign_positions(l);
	sort_ranks(l, counts);
	*out = l;
	return 0;
}

void layout_destroy(struct layout *l)
{
	if (!l)
		return;
	free(l->position);
	free(l->node_id);
	free(l->first);
	free(l->order);
	free(l->rank_position);
	free(l);
}

uint32_t layout_nodes(const struct layout *l)
{
	return l->nnodes;
}

uint32_t layout_ranks(const struct layout *l)
{
	return l->nranks;
}

uint32_t layout_position(const struct layout *l, uint32_t node_id)
{
	return l->position[node_id];
}

uint32_t layout_node_id(const struct layout *l, uint32_t position)
{
	return l->node_id[position];
}

uint32_t layout_rank_position(const struct layout *l, uint32_t rank)
{
	return l->rank_position[rank];
}

const uint32_t *layout_ranks_at(const struct layout *l, uint32_t position,
				uint32_t *count)
{
	*count = l->first[position + 1] - l->first[position];
	return l->order + l->first[position];
}

const uint32_t *layout_order(const struct layout *l)
{
	return l->order;
}
