/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The ways in which all nodes can get what all nodes contribute, and which one
 * to take. Pure functions.
 *
 * Over the tree contributions are combined once, at the root. The others have
 * no root: in round i node p gets from node p + distance(i) (modulo the number
 * of nodes) what that one holds, and every node combines everything itself.
 *
 *   ring:     one round, distance 1: what comes is passed on at once. Every node
 *             sends and gets all bytes once, in n - 1 hops.
 *   doubling: recursive doubling, in the form that takes any number of nodes:
 *             distances 1, 2, 4, ...; in a round goes what was held at its
 *             beginning. As many bytes, log2(n) hops.
 */
#ifndef PMI2X_ALGORITHM_H
#define PMI2X_ALGORITHM_H

#include <stdbool.h>
#include <stdint.h>

enum coll_algorithm {
	COLL_BY_CHOICE, /* by size and number of nodes */
	COLL_BY_TREE,
	COLL_BY_RING,
	COLL_BY_DOUBLING,
	COLL_ALGORITHMS,
};

#define COLL_ROUNDS_MAX 20 /* doubling, with LAYOUT_NODES_MAX nodes */

/* "auto", "tree", "ring", "doubling". */
const char *algorithm_name(enum coll_algorithm a);
/* The reverse: false when there is no such name. */
bool algorithm_parse(const char *name, enum coll_algorithm *out);

/* How many rounds; 0: over the tree. */
uint32_t algorithm_rounds(enum coll_algorithm a, uint32_t nodes);
uint32_t algorithm_distance(enum coll_algorithm a, uint32_t round);
/* What comes in a round goes out in the same round. */
bool algorithm_streams(enum coll_algorithm a);

/* Which one to take for so many bytes of all nodes; never COLL_BY_CHOICE. */
enum coll_algorithm algorithm_choose(uint32_t nodes, uint64_t bytes);
/* Below so many bytes it is the tree; UINT64_MAX: always. */
uint64_t algorithm_choice_min(uint32_t nodes);

#endif
