/* SPDX-License-Identifier: BSD-3-Clause */
/* Allgather with nothing but put, fence and get of plain PMI-2. */
#pragma once

#include "ring.h"

/* Carry out an operation, blocking. An error code of pmi2.h. */
int pmi_keys_gather(struct pmi2x_ring *r, struct op *op);
