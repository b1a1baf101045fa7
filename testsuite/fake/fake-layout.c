/* SPDX-License-Identifier: BSD-3-Clause */
/* Task layouts as srun's -m makes them, for the fake server. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fake.h"

/* The node of each rank, by distribution. */
static void assign_block(uint32_t *node_of, const struct fake_options *o)
{
	uint32_t base = o->ranks / o->nodes, extra = o->ranks % o->nodes;
	uint32_t rank = 0;

	for (uint32_t n = 0; n < o->nodes; n++)
		for (uint32_t i = 0; i < base + (n < extra); i++)
			node_of[rank++] = n;
}

static void assign_plane(uint32_t *node_of, const struct fake_options *o,
			 uint32_t plane)
{
	for (uint32_t r = 0; r < o->ranks; r++)
		node_of[r] = (r / plane) % o->nodes;
}

/* "list=2,0,0,1": the node of every rank, spelled out. */
static int assign_list(uint32_t *node_of, const struct fake_options *o,
		       const char *list)
{
	for (uint32_t r = 0; r < o->ranks; r++) {
		char *end;

		node_of[r] = strtoul(list, &end, 10);
		if (end == list || node_of[r] >= o->nodes)
			return -EINVAL;
		list = *end == ',' ? end + 1 : end;
	}
	return *list ? -EINVAL : 0;
}

static int assign(uint32_t *node_of, const struct fake_options *o)
{
	const char *m = o->distribution;

	if (!strcmp(m, "block"))
		assign_block(node_of, o);
	else if (!strcmp(m, "cyclic"))
		assign_plane(node_of, o, 1);
	else if (!strncmp(m, "plane=", 6) && atoi(m + 6) > 0)
		assign_plane(node_of, o, atoi(m + 6));
	else if (!strncmp(m, "list=", 5))
		return assign_list(node_of, o, m + 5);
	else
		return -EINVAL;
	return 0;
}

/* Turn node_of into the per-node lists that layout_create wants. */
static int create(struct layout **out, const struct fake_options *o,
		  const uint32_t *node_of, uint32_t *ranks)
{
	uint32_t *counts = calloc(o->nodes, sizeof(*counts));
	const uint32_t **lists = calloc(o->nodes, sizeof(*lists));
	uint32_t at = 0;
	int rc = -ENOMEM;

	if (!counts || !lists)
		goto out;
	for (uint32_t n = 0; n < o->nodes; n++) {
		lists[n] = ranks + at;
		for (uint32_t r = 0; r < o->ranks; r++)
			if (node_of[r] == n)
				ranks[at++] = r;
		counts[n] = ranks + at - lists[n];
	}
	rc = layout_create(out, o->nodes, o->ranks, counts, lists);
out:
	free(lists);
	free(counts);
	return rc;
}

int fake_layout(struct layout **out, const struct fake_options *o)
{
	uint32_t *node_of = calloc(o->ranks, sizeof(*node_of));
	uint32_t *ranks = calloc(o->ranks, sizeof(*ranks));
	int rc = -ENOMEM;

	if (node_of && ranks)
		rc = assign(node_of, o);
	if (!rc)
		rc = create(out, o, node_of, ranks);
	free(ranks);
	free(node_of);
	return rc;
}
