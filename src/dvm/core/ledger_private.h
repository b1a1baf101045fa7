/* SPDX-License-Identifier: BSD-3-Clause */
/* Definitions that the files of the ledger share. */
#pragma once

#include "dvm/core/ledger.h"

#define NAME_MAX_BYTES 64
#define LEVEL_WORDS (DVM_CORES_MAX / 64 + 1)

struct node {
	uint32_t number;
	struct ledger_resources has;
	struct dvm_cores cores; /* free ones, and so on */
	uint32_t ncores;
	uint64_t gpus;
	uint64_t memory;
	uint32_t tasks;         /* tasks on the node */
	bool taken;             /* by an exclusive task */
	bool closed;
	uint64_t listed;        /* later than nodes of a lower number */
	struct node *prev, *next; /* of its bin */
};

/* Open nodes with the same numbers of free cores and GPUs, all idle or all in use. */
struct bin {
	struct node *nodes; /* the one that came last first */
	uint32_t count;
};

/* Nodes that have the same cores and GPUs, and about the same memory. */
struct kind {
	uint32_t cores, gpus;
	uint32_t count;
	uint64_t least, most; /* bytes of memory: bounds of what they have */
};

struct counter {
	char name[NAME_MAX_BYTES];
	uint32_t has, left;
};

struct ledger {
	struct node **nodes;
	size_t count, cap;
	struct bin *bins;           /* index_bin() */
	uint32_t max_cores, max_gpus; /* of a node: the bins that there are */
	uint64_t levels[LEVEL_WORDS]; /* bit i: a bin of i free cores has nodes */
	uint64_t listed;
	struct kind *kinds;
	size_t nkinds, kinds_cap;
	uint32_t free_cores, all_cores; /* of open nodes */
	struct counter counters[LEDGER_COUNTERS_MAX];
	uint32_t ncounters;
	uint64_t freed;
};

/* The resources of a node, all or free ones. */
struct room_of {
	uint64_t cores, gpus, memory;
};

/* The number of ranks of a task for which these resources suffice. */
uint32_t ledger_ranks_in(const struct ledger_shape *s, const struct room_of *r);
/* The node as it is, or as if nothing ran on it. */
uint32_t ledger_node_ranks(const struct node *n, const struct ledger_shape *s, bool ever);

/* ---- ledger_named.c ---- */

/* The user has chosen the cores and GPUs, too. */
static inline bool is_placed(const struct ledger_shape *s)
{
	return s->placed && !s->named;
}

/* The nodes that a shape may use: their number, and the ith of them. */
size_t named_count(const struct ledger *l, const struct ledger_shape *s);
const struct node *named_node(const struct ledger *l, const struct ledger_shape *s, size_t i);
/* True, for a shape with named nodes: it fits now, or would if nothing else ran. */
bool named_fit(const struct ledger *l, const struct ledger_shape *s, bool ever);

/* ---- ledger_index.c ---- */

/* Make room for a node that has this. 0 or -ENOMEM. */
int index_make_room(struct ledger *l, const struct ledger_resources *has);
/* Around each change of a node's free resources, tasks or `taken`. */
void index_add(struct ledger *l, struct node *n);
void index_remove(struct ledger *l, struct node *n);
/* The open node that takes all ranks and has the fewest free cores, or NULL. */
const struct node *index_best(const struct ledger *l, const struct ledger_shape *s);
/* True: the task fits now. */
bool index_fits(const struct ledger *l, const struct ledger_shape *s);

/* ---- ledger_kinds.c ---- */

/* Add a node with these resources to its kind. 0 or -ENOMEM. */
int kinds_add(struct ledger *l, const struct ledger_resources *has);
/* A node with these resources is lost. */
void kinds_lose(struct ledger *l, const struct ledger_resources *has);
/* True: the task would fit if nothing else ran. */
bool kinds_fit(const struct ledger *l, const struct ledger_shape *s);

/* ---- ledger_tally.c ---- */

/* Nodes, counted by how many ranks of a task they take. */
struct tally {
	uint32_t ranks, nodes; /* of the task: all, and on as many, or 0 */
	uint64_t all;          /* ranks that they take together */
	uint64_t with_each;    /* nodes that take their share of ranks */
	uint64_t with_more;    /* nodes that take one rank more */
};

struct tally tally_begin(const struct ledger_shape *s);
/* `count` nodes that take `ranks` each. */
void tally_add(struct tally *t, uint32_t ranks, uint32_t count);
bool tally_fits(const struct tally *t);
