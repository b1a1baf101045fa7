/* SPDX-License-Identifier: BSD-3-Clause */
/* Facts of the calling process: its cores, its OpenMP, its environment. */
#pragma once

#include "lend/facts.h"

void lend_own_facts(struct lend_facts *facts, uint32_t rank);
