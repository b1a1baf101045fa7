/* SPDX-License-Identifier: BSD-3-Clause */
/* The line at the end of a step: what lending has brought. */
#ifndef PMI2X_LEND_SUMMARY_H
#define PMI2X_LEND_SUMMARY_H

#include "lend/core/accounts.h"
#include "lend/table.h"

#define LEND_SUMMARY_MAX 2048 /* bytes, NUL included */

/* Accounts of all ranks of the node, whose numbers in the step are in the table. */
void lend_summary(struct account *accounts, struct lend_table *table, uint32_t ranks,
		  const char *node, char out[LEND_SUMMARY_MAX]);

#endif
