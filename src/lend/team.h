/* SPDX-License-Identifier: BSD-3-Clause */
/* The threads of the process's OpenMP team, which a rank binds to its cores. */
#ifndef PMI2X_LEND_TEAM_H
#define PMI2X_LEND_TEAM_H

#include <stdint.h>

#include "lend/facts.h"

/*
 * In the constructor: let the program see factor * cores threads. Returns that number, or 0
 * with a reason in *why: the program keeps its threads, and its rank only lends.
 */
uint32_t team_widen(const struct lend_facts *facts, uint32_t factor, const char **why);
/*
 * Bind thread i of all to core i * n / all, now and when the team gets a thread. Threads that
 * are not of the team begin on `own`.
 */
void team_place(const uint32_t *cores, uint32_t n, const struct lend_cores *own);
/*
 * Bind threads once more that have begun a moment ago: a new thread of libomp lets itself run on
 * all cores of its process. For a turn every few milliseconds.
 */
void team_settle(void);
/* Let all threads that team_place has bound run on `own` again. */
void team_release(const struct lend_cores *own);
/* In a child of fork: the same for its only thread. */
void team_forked(void);

#endif
