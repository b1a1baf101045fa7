/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Kinds of nodes: whether a task could ever run is found without a look at each node. Only
 * where a little memory more or less decides are nodes looked at.
 */
#include "dvm/core/ledger_private.h"

#include <errno.h>

#include "libutil/array.h"

static struct kind *find(const struct ledger *l, uint32_t cores, uint32_t gpus)
{
	for (size_t i = 0; i < l->nkinds; i++)
		if (l->kinds[i].cores == cores && l->kinds[i].gpus == gpus)
			return &l->kinds[i];
	return NULL;
}

static void count_in(struct kind *k, uint64_t memory)
{
	if (!k->count++)
		k->least = k->most = memory;
	if (memory < k->least)
		k->least = memory;
	if (memory > k->most)
		k->most = memory;
}

static int make(struct ledger *l, uint32_t cores, uint32_t gpus)
{
	if (find(l, cores, gpus))
		return 0;
	if (array_grow(&l->kinds, l->nkinds, &l->kinds_cap, sizeof(*l->kinds)))
		return -ENOMEM;
	l->kinds[l->nkinds++] = (struct kind){ .cores = cores, .gpus = gpus };
	return 0;
}

int kinds_add(struct ledger *l, const struct ledger_resources *has)
{
	if (make(l, 0, 0) || make(l, has->cores, has->gpus)) /* also for kinds_lose */
		return -ENOMEM;
	count_in(find(l, has->cores, has->gpus), has->memory);
	return 0;
}

void kinds_lose(struct ledger *l, const struct ledger_resources *has)
{
	find(l, has->cores, has->gpus)->count--;
	count_in(find(l, 0, 0), 0);
}

/* With the least or the most memory that nodes of a kind have. */
static bool fit_with(const struct ledger *l, const struct ledger_shape *s, bool most)
{
	struct tally t = tally_begin(s);

	for (size_t i = 0; i < l->nkinds; i++) {
		const struct kind *k = &l->kinds[i];
		const struct room_of r = { k->cores, k->gpus, most ? k->most : k->least };

		tally_add(&t, ledger_ranks_in(s, &r), k->count);
	}
	return tally_fits(&t);
}

static bool fit_each(const struct ledger *l, const struct ledger_shape *s)
{
	struct tally t = tally_begin(s);

	for (size_t i = 0; i < l->count; i++)
		tally_add(&t, ledger_node_ranks(l->nodes[i], s, true), 1);
	return tally_fits(&t);
}

bool kinds_fit(const struct ledger *l, const struct ledger_shape *s)
{
	if (fit_with(l, s, false))
		return true;
	return fit_with(l, s, true) && fit_each(l, s);
}
