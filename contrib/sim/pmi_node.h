/* SPDX-License-Identifier: BSD-3-Clause */
/* A node that is libengine's server, as its clients see it. */
#pragma once

#include "client.h"
#include "libengine/pmi_server.h"

#define PMI_NODE_JOBID "1.0" /* of the step: also what its KVS is called */

struct pmi_node {
	struct pmi_step step;
	struct pmi_server *server;
	struct client *clients; /* by slot */
	bool result_comes;      /* with the message that is being received */
	uint32_t published[COLL_KINDS]; /* collectives that have been paid for */
};

static inline struct pmi_node *pmi_node_of(const struct sim_node *n)
{
	return n->state;
}

/* The first of the node's ranks has the result: what publishing it costs. */
void pmi_node_publishes(struct sim_node *n, uint32_t op);
