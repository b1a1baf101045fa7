/* SPDX-License-Identifier: BSD-3-Clause */
/* The report of PMI2X_LEND=report about the ranks of one node, as text. */
#pragma once

#include "lend/facts.h"

/*
 * The report about `n` of the `ranks` ranks of a node, in the order of the slots; the other
 * ranks have not called MPI_Init. malloc'ed; NULL: no memory. `facts` may hold anything.
 */
char *lend_report(const struct lend_facts *facts, uint32_t n, uint32_t ranks,
		  const char *node);
