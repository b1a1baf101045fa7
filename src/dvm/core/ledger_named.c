/* SPDX-License-Identifier: BSD-3-Clause */
/* Nodes that a task may use: all, or those that the user has named. */
#include "dvm/core/ledger_private.h"

bool ledger_may_use(const struct ledger_shape *s, uint32_t node)
{
	if (!s->named)
		return true;
	for (uint32_t i = 0; i < s->placed->count; i++)
		if (s->placed->parts[i].node == node)
			return true;
	return false;
}

size_t named_count(const struct ledger *l, const struct ledger_shape *s)
{
	return s->named ? s->placed->count : l->count;
}

const struct node *named_node(const struct ledger *l, const struct ledger_shape *s, size_t i)
{
	return l->nodes[s->named ? s->placed->parts[i].node : i];
}

bool named_fit(const struct ledger *l, const struct ledger_shape *s, bool ever)
{
	struct tally t = tally_begin(s);

	for (size_t i = 0; i < named_count(l, s); i++)
		tally_add(&t, ledger_node_ranks(named_node(l, s, i), s, ever), 1);
	return tally_fits(&t);
}
