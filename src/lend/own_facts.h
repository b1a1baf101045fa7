/* SPDX-License-Identifier: BSD-3-Clause */
/* Facts of the calling process: its cores, its OpenMP, its environment. */
#ifndef PMI2X_LEND_OWN_FACTS_H
#define PMI2X_LEND_OWN_FACTS_H

#include "lend/facts.h"

void lend_own_facts(struct lend_facts *facts, uint32_t rank);

#endif
