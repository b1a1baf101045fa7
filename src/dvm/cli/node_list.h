/* SPDX-License-Identifier: BSD-3-Clause */
/* Lists of nodes as Slurm writes them: n1, n[3-5,08], m[1-2]-ib, with commas between them. */
#pragma once

#include <jansson.h>
#include <stdbool.h>

/*
 * Append the names to an array of JSON. False: the list is empty or wrong, has more than
 * LEDGER_NODES_MAX names, or one with two pairs of brackets.
 */
bool node_list_expand(const char *text, json_t *names);
