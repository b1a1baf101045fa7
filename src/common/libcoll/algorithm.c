/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of algorithms, and the table by which one is chosen. */
#include "libcoll/algorithm.h"

#include <string.h>

static uint32_t no_round(uint32_t nodes)
{
	return 0;
}

static uint32_t one_round(uint32_t nodes)
{
	return nodes > 1;
}

static uint32_t log_rounds(uint32_t nodes)
{
	uint32_t rounds = 0;

	while (rounds < COLL_ROUNDS_MAX && (UINT64_C(1) << rounds) < nodes)
		rounds++;
	return rounds;
}

static uint32_t next_node(uint32_t round)
{
	return 1;
}

static uint32_t power_of_two(uint32_t round)
{
	return UINT32_C(1) << round;
}

static const struct {
	const char *name;
	uint32_t (*rounds)(uint32_t nodes);
	uint32_t (*distance)(uint32_t round);
	bool streams;
} algorithms[COLL_ALGORITHMS] = {
	[COLL_BY_CHOICE] = { "auto", no_round, next_node, false },
	[COLL_BY_TREE] = { "tree", no_round, next_node, false },
	[COLL_BY_RING] = { "ring", one_round, next_node, true },
	[COLL_BY_DOUBLING] = { "doubling", log_rounds, power_of_two, false },
};

/*
 * The first row that fits; what fits none goes over the tree. A ring sends a
 * message of a node's bytes over each link for each node: they must be worth it.
 */
static const struct choice {
	uint32_t nodes_min;
	uint64_t bytes_min;      /* of all nodes */
	uint64_t node_bytes_min; /* of a node, in the mean */
	enum coll_algorithm algorithm;
} choices[] = {
	{ 3, UINT64_C(64) << 20, UINT64_C(64) << 10, COLL_BY_RING },
};

#define CHOICES (sizeof(choices) / sizeof(choices[0]))

const char *algorithm_name(enum coll_algorithm a)
{
	return (unsigned int)a < COLL_ALGORITHMS ? algorithms[a].name : "?";
}

bool algorithm_parse(const char *name, enum coll_algorithm *out)
{
	for (int a = 0; a < COLL_ALGORITHMS; a++)
		if (strcmp(name, algorithms[a].name) == 0) {
			*out = a;
			return true;
		}
	return false;
}

uint32_t algorithm_rounds(enum coll_algorithm a, uint32_t nodes)
{
	return algorithms[a].rounds(nodes);
}

uint32_t algorithm_distance(enum coll_algorithm a, uint32_t round)
{
	return algorithms[a].distance(round);
}

bool algorithm_streams(enum coll_algorithm a)
{
	return algorithms[a].streams;
}

/* Bytes of so many nodes from which on the row fits. */
static uint64_t least_bytes(const struct choice *row, uint32_t nodes)
{
	uint64_t bytes = row->node_bytes_min * nodes;

	if (nodes < row->nodes_min)
		return UINT64_MAX;
	return bytes > row->bytes_min ? bytes : row->bytes_min;
}

enum coll_algorithm algorithm_choose(uint32_t nodes, uint64_t bytes)
{
	for (uint32_t i = 0; i < CHOICES; i++)
		if (bytes >= least_bytes(&choices[i], nodes))
			return choices[i].algorithm;
	return COLL_BY_TREE;
}

uint64_t algorithm_choice_min(uint32_t nodes)
{
	uint64_t min = UINT64_MAX;

	for (uint32_t i = 0; i < CHOICES; i++)
		if (least_bytes(&choices[i], nodes) < min)
			min = least_bytes(&choices[i], nodes);
	return min;
}
