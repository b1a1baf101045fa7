/* SPDX-License-Identifier: BSD-3-Clause */
/* The calls of MPI that lend. */
#ifndef PMI2X_LEND_CALLS_H
#define PMI2X_LEND_CALLS_H

#include "lend/abi.h"
#include "lend/lender.h"

/*
 * After MPI_Init, in its thread: calls of this thread lend from now on, while `l` is active,
 * unless the program has asked for MPI_THREAD_MULTIPLE.
 */
void calls_begin(struct lender *l, const struct lend_abi *abi, const void *caller);

#endif
