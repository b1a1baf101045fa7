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
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "dvm/core/cores.h"

#define LEDGER_GPUS_MAX 64     /* limit of the GPUs of a node */
#define LEDGER_RANKS_MAX 65536 /* limit of the ranks of a task on a node */
#define LEDGER_COUNTERS_MAX 8  /* limit of the different counters */
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
	uint64_t gpus;   /* bits of the GPUs' numbers */
	bool ended;      /* its ranks have ended: noted by the head, unused by the ledger */
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
	uint32_t cores, gpus; /* number for each rank */
	uint64_t memory;      /* bytes for each rank */
	uint32_t nodes;       /* exactly this number of nodes; 0: as few as possible */
	uint32_t per_node;    /* limit of the ranks on a node; 0: none */
	bool exclusive;       /* the task is alone on its nodes */
	uint32_t counters[LEDGER_COUNTERS_MAX]; /* for the whole task, by index */
	/* The only place for the task; NULL: any. Memory and counters as above. */
	const struct ledger_placement *placed;
	bool named;           /* of `placed` only the nodes count: any cores and GPUs there */
};

struct ledger;

/* Create a ledger. 0 or -ENOMEM. */
int ledger_create(struct ledger **out);
void ledger_destroy(struct ledger *l);

/*
 * Add a node; it gets the next number. 0, -EINVAL (more cores or GPUs than the limits, or
 * no core), -ENOSPC (LEDGER_NODES_MAX) or -ENOMEM.
 */
int ledger_add_node(struct ledger *l, const struct ledger_resources *has);
uint32_t ledger_nodes(const struct ledger *l);
/* Close a node to new tasks, or open it again. Running tasks go on there. */
void ledger_close_node(struct ledger *l, uint32_t node, bool closed);
const struct ledger_resources *ledger_node_has(const struct ledger *l, uint32_t node);
uint32_t ledger_node_free_cores(const struct ledger *l, uint32_t node);
/*
 * The free resources of a node. False, and nothing: the node is closed, or has an exclusive
 * task.
 */
bool ledger_node_free(const struct ledger *l, uint32_t node,
		      struct ledger_resources *out);
uint32_t ledger_node_tasks(const struct ledger *l, uint32_t node);
/* Sums over all nodes that are not closed. */
uint32_t ledger_free_cores(const struct ledger *l);
uint32_t ledger_all_cores(const struct ledger *l);

/*
 * The number of changes that freed or added resources. While it stays the same, a shape
 * that did not fit does not fit.
 */
uint64_t ledger_freed(const struct ledger *l);

/* Name a counter, with its amount. Its index, -EEXIST or -ENOSPC. */
int ledger_add_counter(struct ledger *l, const char *name, uint32_t amount);
/* The counter's index, or -ENOENT. */
int ledger_find_counter(const struct ledger *l, const char *name);
/* The name of a counter, and the amount that is free; NULL: no counter has this index. */
const char *ledger_counter(const struct ledger *l, uint32_t index, uint32_t *left);

/*
 * Place a task. Give *out to ledger_release, and then to free(). 0; -EAGAIN: the task does
 * not fit now; -ENOMEM.
 */
int ledger_place(struct ledger *l, const struct ledger_shape *shape,
		 struct ledger_placement **out);
/* Place a task that runs already, where `placed` says: like ledger_place, and on closed nodes. */
int ledger_place_running(struct ledger *l, const struct ledger_shape *shape,
			 struct ledger_placement **out);
void ledger_release(struct ledger *l, const struct ledger_shape *shape,
		    const struct ledger_placement *placement);
/* True: the shape fits now. */
bool ledger_fits(const struct ledger *l, const struct ledger_shape *shape);
/* True: the shape may use this node, if there is room. */
bool ledger_may_use(const struct ledger_shape *shape, uint32_t node);
/* The number of the shape's ranks that the node would take now. */
uint32_t ledger_node_takes(const struct ledger *l, const struct ledger_shape *shape,
			   uint32_t node);
/* True, for a placed shape: its resources on the ith of its nodes are free now. */
bool ledger_place_is_free(const struct ledger *l, const struct ledger_shape *shape,
			  uint32_t i);
/*
 * The node will not come back: no task can run there any more. Its tasks are released as
 * usual.
 */
void ledger_lose_node(struct ledger *l, uint32_t node);
/* True: the shape would fit if nothing else ran. Closed nodes count, for they may open. */
bool ledger_can_ever(const struct ledger *l, const struct ledger_shape *shape);
