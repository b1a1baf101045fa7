/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An allgather of the ring's interface over PMI, for jobs whose processes have no
 * transport in common: PMIX_Iallgather_n where the PMI library has it, else put,
 * fence and get.
 */
#pragma once

#include "ring.h"

#define PMI_GATHER_AGAIN (-1000) /* no error code of pmi2.h */

/* Enter. PMI_GATHER_AGAIN, or the result when it is over already. */
int pmi_gather_start(struct pmi2x_ring *r, struct op *op);

/* Go on, waiting when told to; the same results. */
int pmi_gather_step(struct pmi2x_ring *r, struct op *op, bool wait);

/*
 * PMI has failed with `code`: so has the ring, for good, as it is not known how far
 * the others are. PMI2_FAIL.
 */
int pmi_gather_fail(struct pmi2x_ring *r, int code);

/* Free what an operation has left; it may be under way. */
void pmi_gather_free(struct op *op);
