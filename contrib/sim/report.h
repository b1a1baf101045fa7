/* SPDX-License-Identifier: BSD-3-Clause */
/* The results of a simulation: a table for people, CSV for programs. */
#pragma once

#include <stdio.h>

#include "sim.h"

/* All of it is written to streams; 0, or -1 (no memory). */
int report_table(const struct sim *s, FILE *out);
/* The chains that determined the ends, at most `most` lines for each. */
void report_paths(const struct sim *s, FILE *out, uint32_t most);
/* With a line of names first. A scenario always gives the same bytes. */
int report_csv(const struct sim *s, FILE *out);
/* As above, for each node and link; of a dead node's links those of the tree. */
int report_details(const struct sim *s, FILE *out);
/* Bytes of this process at its largest. */
uint64_t report_own_memory(void);
