/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The nodes of a task with PMI: their positions in the DVM, ranks and names, and the
 * addresses of this node's neighbours in the task's tree. Ranks follow one another from node
 * to node, so the index of a node is its node id and its position in the layout.
 */
#pragma once

#include "dvm/core/dvm_places.h"
#include "libcoll/layout.h"

struct task_nodes {
	uint32_t count;
	struct task_run *runs; /* in order */
	size_t nruns;
	struct dvm_neighbour *neighbours;
	size_t nneighbours;
	char **names;          /* by index; in `texts` */
	char *texts;
	struct layout *layout;
};

/* Write the name of a node of the DVM: dvm_node_name. */
typedef bool task_nodes_name_fn(void *arg, uint32_t node, char out[DVM_TEXT_MAX]);

/*
 * Read the nodes of a task; a task on one node is on this one, called `own`. 0, -EPROTO or
 * -ENOMEM. Call task_nodes_free, also after a failure.
 */
int task_nodes_read(struct task_nodes *t, const struct dvm_launch *m, const char *own,
		    task_nodes_name_fn *name, void *arg);
void task_nodes_free(struct task_nodes *t);
/* The position in the DVM of a node of the task. */
uint32_t task_nodes_node(const struct task_nodes *t, uint32_t index);
/* The index of a node of the DVM, or UINT32_MAX: it is none of the task's. */
uint32_t task_nodes_index(const struct task_nodes *t, uint32_t node);
/* The address of a neighbour; NULL: the node is none. */
const struct dvm_address *task_nodes_address(const struct task_nodes *t, uint32_t index);
