/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A test's host of a node keeps here what it owes the node: which ranks it has started, and
 * for which parts PMI is over.
 */
#pragma once

#include <stdlib.h>

#include "dvm/core/node.h"

#define STARTS_MAX 64 /* a node asks for no more at once */
#define OVER_MAX 4096

struct start {
	uint32_t part, count;
	uint64_t first; /* number of the first process; the others follow */
	int error;
};

struct starts {
	struct start items[STARTS_MAX];
	uint32_t count;
	uint32_t over[OVER_MAX];
	uint32_t overs;
};

/* The node hears of it later. */
static inline void starts_add(struct starts *s, struct start start)
{
	if (s->count == STARTS_MAX)
		abort();
	s->items[s->count++] = start;
}

static inline void starts_add_over(struct starts *s, uint32_t part)
{
	if (s->overs == OVER_MAX)
		abort();
	s->over[s->overs++] = part;
}

static inline void starts_tell(struct starts *s, struct dvm_node *node, struct dvm_time now)
{
	uint64_t processes[LEDGER_RANKS_MAX];

	for (uint32_t i = 0; i < s->count; i++) {
		const struct start *t = &s->items[i];

		for (uint32_t k = 0; k < t->count; k++)
			processes[k] = t->first + k;
		dvm_node_started(node, t->part, processes, t->count, t->error, now);
	}
	s->count = 0;
	while (s->overs)
		dvm_node_pmi_over(node, s->over[--s->overs], now);
}
