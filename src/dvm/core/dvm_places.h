/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where a task is, as LAUNCH has it, in bytes that do not grow with the number of nodes if
 * these follow each other: runs of nodes, and the addresses of a node's neighbours in the
 * task's tree. Names of nodes are sent once for all tasks: runs of names that differ by a
 * number. Functions return 0 or the error of buf_append, and readers 0 or -EPROTO.
 */
#pragma once

#include "dvm/core/dvm_msg.h"

/*
 * The next nodes of a task: their positions in the DVM follow each other, and each has as
 * many of the next ranks.
 */
struct dvm_run {
	uint32_t node;  /* the first one's position in the DVM */
	uint32_t count;
	uint32_t ranks; /* of each node */
};

int dvm_runs_pack(struct buf *b, const struct ledger_placement *p);
int dvm_run_unpack(struct cursor *c, struct dvm_run *r);
/* True: the runs of a task on this number of nodes, which has this number of ranks. */
bool dvm_runs_ok(const struct dvm_bytes *runs, uint32_t nodes, uint32_t ranks);

/* A node that another one of the task exchanges messages with. */
struct dvm_neighbour {
	uint32_t index; /* among the nodes of the task */
	struct dvm_address address;
};

int dvm_neighbour_pack(struct buf *b, const struct dvm_neighbour *n);
int dvm_neighbour_unpack(struct cursor *c, struct dvm_neighbour *n);

/* The most neighbours that a node has, in a tree of any width of tree_width(). */
#define DVM_NEIGHBOURS_MAX 16

/*
 * Find the neighbours of a task's node: indices among the nodes of the task, in order of
 * their part in the tree. Returns their number.
 */
uint32_t dvm_neighbours(uint32_t nodes, uint32_t ranks, uint32_t index,
			uint32_t out[DVM_NEIGHBOURS_MAX]);

/* Names of nodes whose positions follow each other. */
struct dvm_name_run {
	uint32_t count;
	struct dvm_bytes first; /* the first name; the number at its end is counted up */
};

/* Write name `i` of a run, with its NUL. False: the run has no such name. */
bool dvm_name_of_run(const struct dvm_name_run *r, uint32_t i, char out[DVM_TEXT_MAX]);
int dvm_name_run_pack(struct buf *b, const struct dvm_name_run *r);
/* Reads a run all of whose names are valid. */
int dvm_name_run_unpack(struct cursor *c, struct dvm_name_run *r);
/* The number of names in packed runs; 0: there is none, or some run is invalid. */
uint32_t dvm_names_count(const struct dvm_bytes *names);
