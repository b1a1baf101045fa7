/* SPDX-License-Identifier: BSD-3-Clause */
/* The ranks that share a node, computed from PMI_process_mapping. Pure functions. */
#pragma once

/*
 * The number of ranks (of 0..size-1) on the node of `rank`, itself included;
 * the first `max` of them are written to `ranks` in ascending order. -EPROTO: not
 * a mapping.
 */
int clique_find(const char *mapping, int rank, int size, int ranks[], int max);

/* The number of nodes that ranks 0..size-1 are on. -EPROTO or -ENOMEM. */
int clique_nodes(const char *mapping, int size);
