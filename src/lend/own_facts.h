/* SPDX-License-Identifier: BSD-3-Clause */
/* Facts of the calling process: its cores, its OpenMP, its environment. */
#pragma once

#include "lend/facts.h"

/* The OpenMP library, by its file's name, in which an address is. */
enum lend_openmp lend_openmp_of(const void *code);
void lend_own_facts(struct lend_facts *facts, uint32_t rank);
