/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Open nodes by what is free on them, in bins: so the one on which a task leaves least over
 * is found without a search, and whether a task fits without a look at each node.
 */
#include "dvm/core/ledger_private.h"

#include <errno.h>
#include <stdlib.h>

#include <utlist.h>

static struct bin *index_bin(const struct ledger *l, uint32_t cores, uint32_t gpus, bool idle)
{
	return &l->bins[2 * ((size_t)cores * (l->max_gpus + 1) + gpus) + idle];
}

static struct bin *bin_of(const struct ledger *l, const struct node *n)
{
	return index_bin(l, n->ncores, (uint32_t)__builtin_popcountll(n->gpus), !n->tasks);
}

/* ---- nodes in bins ---- */

static bool is_listed(const struct node *n)
{
	return !n->closed && !n->taken;
}

static void put(struct ledger *l, struct node *n)
{
	struct bin *b = bin_of(l, n);

	DL_PREPEND(b->nodes, n);
	b->count++;
	l->levels[n->ncores / 64] |= UINT64_C(1) << n->ncores % 64;
}

void index_add(struct ledger *l, struct node *n)
{
	n->listed = l->listed++;
	if (!n->closed)
		l->free_cores += n->ncores;
	if (is_listed(n))
		put(l, n);
}

/* No bin of this level has a node. */
static bool is_empty(const struct ledger *l, uint32_t cores)
{
	for (uint32_t g = 0; g <= l->max_gpus; g++)
		if (index_bin(l, cores, g, false)->count || index_bin(l, cores, g, true)->count)
			return false;
	return true;
}

void index_remove(struct ledger *l, struct node *n)
{
	struct bin *b;

	if (!n->closed)
		l->free_cores -= n->ncores;
	if (!is_listed(n))
		return;
	b = bin_of(l, n);
	DL_DELETE(b->nodes, n);
	if (!--b->count && is_empty(l, n->ncores))
		l->levels[n->ncores / 64] &= ~(UINT64_C(1) << n->ncores % 64);
}

static void copy_bins(struct ledger *to, const struct ledger *from)
{
	for (uint32_t c = 0; c <= from->max_cores; c++)
		for (uint32_t g = 0; g <= from->max_gpus; g++)
			for (int idle = 0; idle < 2; idle++)
				*index_bin(to, c, g, idle) = *index_bin(from, c, g, idle);
}

int index_make_room(struct ledger *l, const struct ledger_resources *has)
{
	struct ledger more = *l;

	if (l->bins && has->cores <= l->max_cores && has->gpus <= l->max_gpus)
		return 0;
	if (has->cores > l->max_cores)
		more.max_cores = has->cores;
	if (has->gpus > l->max_gpus)
		more.max_gpus = has->gpus;
	more.bins = calloc((size_t)2 * (more.max_cores + 1) * (more.max_gpus + 1),
			   sizeof(*more.bins));
	if (!more.bins)
		return -ENOMEM;
	if (l->bins)
		copy_bins(&more, l);
	free(l->bins);
	*l = more;
	return 0;
}

/* ---- searching ---- */

/* The first level at or above this one that has nodes; DVM_CORES_MAX + 1: none. */
static uint32_t next_level(const struct ledger *l, uint32_t from)
{
	uint32_t word = from / 64;
	uint64_t bits = l->levels[word] >> from % 64 << from % 64;

	while (!bits && ++word < LEVEL_WORDS)
		bits = l->levels[word];
	return bits ? word * 64 + (uint32_t)__builtin_ctzll(bits) : DVM_CORES_MAX + 1;
}

/* The first node of the bin that takes all ranks: only memory tells them apart. */
static const struct node *best_in_bin(const struct bin *b, const struct ledger_shape *s)
{
	const struct node *n;

	DL_FOREACH(b->nodes, n)
		if (ledger_node_ranks(n, s, false) == s->ranks)
			return n;
	return NULL;
}

/* The node that was listed last, among those that fit. */
static const struct node *best_in_level(const struct ledger *l, uint32_t cores,
					const struct ledger_shape *s)
{
	uint64_t gpus = (uint64_t)s->ranks * s->gpus;
	const struct node *best = NULL, *n;

	for (uint64_t g = gpus; g <= l->max_gpus; g++)
		for (int idle = s->exclusive; idle < 2; idle++) {
			n = best_in_bin(index_bin(l, cores, (uint32_t)g, idle), s);
			if (n && (!best || n->listed > best->listed))
				best = n;
		}
	return best;
}

const struct node *index_best(const struct ledger *l, const struct ledger_shape *s)
{
	uint64_t needed = (uint64_t)s->ranks * s->cores;
	const struct node *best = NULL;

	if (needed > l->max_cores || (s->per_node && s->per_node < s->ranks) ||
	    s->ranks > LEDGER_RANKS_MAX)
		return NULL;
	for (uint32_t c = next_level(l, (uint32_t)needed); !best && c <= l->max_cores;
	     c = next_level(l, c + 1))
		best = best_in_level(l, c, s);
	return best;
}

/* ---- fitting ---- */

static void add_bin(struct tally *t, const struct bin *b, const struct ledger_shape *s)
{
	const struct node *n;

	if (!s->memory && b->count)
		tally_add(t, ledger_node_ranks(b->nodes, s, false), b->count);
	if (s->memory)
		DL_FOREACH(b->nodes, n)
			tally_add(t, ledger_node_ranks(n, s, false), 1);
}

bool index_fits(const struct ledger *l, const struct ledger_shape *s)
{
	struct tally t = tally_begin(s);

	for (uint32_t c = next_level(l, 0); l->bins && c <= l->max_cores;
	     c = next_level(l, c + 1))
		for (uint32_t g = 0; g <= l->max_gpus; g++)
			for (int idle = 0; idle < 2; idle++)
				add_bin(&t, index_bin(l, c, g, idle), s);
	return tally_fits(&t);
}
