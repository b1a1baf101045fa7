/* SPDX-License-Identifier: BSD-3-Clause */
/* Communicators on which arrivals are counted, by handle. */
#ifndef PMI2X_LEND_COMMS_H
#define PMI2X_LEND_COMMS_H

#include "lend/hooks.h"

struct comm {
	lend_arg handle;
	uint32_t group; /* of arrivals; ARRIVALS_NONE: nothing is counted */
	uint32_t n;
	uint32_t *slots; /* members on this node */
	uint32_t *ranks; /* their ranks in the communicator, which grow */
};

/* NULL: nothing is counted on it. */
struct comm *comms_find(struct hooks *h, lend_arg handle);
/* The slot of a rank of the communicator; NULL: the rank is on another node. */
const uint32_t *comms_slot(const struct comm *c, lend_arg rank);
/* The communicator ends, and another one may get its handle. */
void comms_forget(struct hooks *h, const void *handle);

#endif
