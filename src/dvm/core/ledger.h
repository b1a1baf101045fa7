/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Resources of the nodes, free or in use: cores, GPUs, memory, and counters that belong
 * to no node, such as licences. A task is placed when all of it is free at once;
 * nothing is ever given twice.
 *
 * Calls no system function. One thread at a time. Placing a task that fits on one node
 * takes a time that does not grow with the number of nodes, unless memory decides, and so
 * does finding that a task does not fit; placing over several nodes O(n log n).
 */
#ifndef PMI2X_DVM_LEDGER_H
#define PMI2X_DVM_LEDGER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "dvm/core/cores.h"

#define LEDGER_GPUS_MAX 64     /* of a node */
#define LEDGER_RANKS_MAX 65536 /* of a task on a node */
#define LEDGER_COUNTERS_MAX 8  /* different ones */
#define LEDGER_NODES_MAX (1u << 20)

struct ledger_resources {
	uint32_t cores;
	uint32_t gpus;
	uint64_t memory; /* bytes */
};

/* The part of a task on one node. Its ranks share the resources in order. */
struct ledger_part {
	uint32_t node;
	uint32_t first_rank;
	uint32_t ranks;
	struct dvm_cores cores;
	uint64_t gpus;   /* bits */
	bool ended;      /* its ranks have: the head's note, not the ledger's */
};

struct ledger_placement {
	uint32_t count;
	struct ledger_part parts[];
};

/*
 * The resources that a task needs. All 0 but ranks: it needs nothing and always fits.
 */
struct ledger_shape {
	uint32_t ranks;
	uint32_t cores, gpus; /* of each rank */
	uint64_t memory;      /* bytes, of each rank */
	uint32_t nodes;       /* on exactly this number; 0: on as few as can be */
	uint32_t per_node;    /* ranks on a node at most; 0: any number */
	bool exclusive;       /* nothing else on its nodes */
	uint32_t counters[LEDGER_COUNTERS_MAX]; /* of the whole task, by index */
	/* The only place for it; NULL: any. Memory and counters as above. */
	const struct ledger_placement *placed;
};

struct ledger;

/* 0 or -ENOMEM. */
int ledger_create(struct ledger **out);
void ledger_destroy(struct ledger *l);

/*
 * The node of the next number. 0, -EINVAL (more cores or GPUs than can be told apart,
 * or no core), -ENOSPC (LEDGER_NODES_MAX) or -ENOMEM.
 */
int ledger_add_node(struct ledger *l, const struct ledger_resources *has);
uint32_t ledger_nodes(const struct ledger *l);
/* No task is placed on it from now on, or again. Running tasks go on there. */
void ledger_close_node(struct ledger *l, uint32_t node, bool closed);
const struct ledger_resources *ledger_node_has(const struct ledger *l, uint32_t node);
uint32_t ledger_node_free_cores(const struct ledger *l, uint32_t node);
/*
 * The free resources of a node. False, and nothing: it is closed, or has a task that
 * wants to be alone.
 */
bool ledger_node_free(const struct ledger *l, uint32_t node,
		      struct ledger_resources *out);
uint32_t ledger_node_tasks(const struct ledger *l, uint32_t node);
/* Sums over all nodes that are not closed. */
uint32_t ledger_free_cores(const struct ledger *l);
uint32_t ledger_all_cores(const struct ledger *l);

/*
 * How often something was freed or added. While it stays the same, a shape that did not
 * fit does not.
 */
uint64_t ledger_freed(const struct ledger *l);

/* Name a counter and say how much there is. Its index, -EEXIST or -ENOSPC. */
int ledger_add_counter(struct ledger *l, const char *name, uint32_t amount);
/* The counter's index, or -ENOENT. */
int ledger_find_counter(const struct ledger *l, const char *name);
/* The name of one, and how much of it is left; NULL: there is none of this index. */
const char *ledger_counter(const struct ledger *l, uint32_t index, uint32_t *left);

/*
 * Place a task, of which *out is to be given to ledger_release and then free(). 0;
 * -EAGAIN: it does not fit now; -ENOMEM.
 */
int ledger_place(struct ledger *l, const struct ledger_shape *shape,
		 struct ledger_placement **out);
void ledger_release(struct ledger *l, const struct ledger_shape *shape,
		    const struct ledger_placement *placement);
/* True: it fits now. */
bool ledger_fits(const struct ledger *l, const struct ledger_shape *shape);
/* How many of its ranks the node would take now. */
uint32_t ledger_node_takes(const struct ledger *l, const struct ledger_shape *shape,
			   uint32_t node);
/* For a placed shape: are its resources on the ith of its nodes free now? */
bool ledger_place_is_free(const struct ledger *l, const struct ledger_shape *shape,
			  uint32_t i);
/*
 * The node will not come back: no task can ever run there. Tasks that ran are released
 * as usual.
 */
void ledger_lose_node(struct ledger *l, uint32_t node);
/* Would it fit if nothing else ran? With closed nodes, too, for they may open. */
bool ledger_can_ever(const struct ledger *l, const struct ledger_shape *shape);

#endif
