/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A rank that uses PMI to the server of its node: it writes what a library of
 * PMI-1, PMI-2 or the pmi2x extension writes, and reads the answers, byte for
 * byte. A wrong answer stops the simulation.
 */
#pragma once

#include "libutil/buf.h"
#include "sim.h"

struct client {
	struct buf input; /* from the server, not yet read */
	enum scenario_clients speaks; /* one of the three */
	bool started;     /* has sent init */
	bool asking;      /* for something that is answered at once */
	bool entered;     /* a collective, which has not ended for it */
	bool succeeded;   /* the last one */
	bool gathered;    /* there is a result at offset, not given back */
	uint64_t offset;
};

void client_init(struct client *c, enum scenario_clients speaks);
void client_free(struct client *c);

/* The rank in `slot` puts what belongs to the operation, and enters it. */
void client_enter(struct sim_node *n, uint32_t slot, uint32_t op);
/* The rank asks for values and compares them. */
void client_look(struct sim_node *n, uint32_t slot, uint32_t op);
void client_finalize(struct sim_node *n, uint32_t slot);
/* Bytes from the server; does not call the server. */
void client_receive(struct sim_node *n, uint32_t slot, const void *data,
		    size_t len);
