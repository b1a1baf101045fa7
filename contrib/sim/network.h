/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The network between nodes: distances of a topology, and which links are slow
 * or dead. Times of messages are made from these in message.c.
 */
#pragma once

#include "scenario.h"

/* Switches on the shortest way between two nodes, by node id. */
uint32_t network_hops(const struct network_params *p, uint32_t a, uint32_t b);
/* From the first byte's leaving to its arrival. */
sim_time network_latency(const struct network_params *p, uint32_t a,
			 uint32_t b);
/* The index in s->slow of the link between two nodes; -1: it is not slow. */
int network_slow_link(const struct scenario *s, uint32_t a, uint32_t b);
/* How many times longer a node works. */
double network_node_factor(const struct scenario *s, uint32_t node);
