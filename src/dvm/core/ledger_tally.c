/* SPDX-License-Identifier: BSD-3-Clause */
/* The fit of a task on nodes, which are counted by the number of its ranks that they take. */
#include "dvm/core/ledger_private.h"

struct tally tally_begin(const struct ledger_shape *s)
{
	return (struct tally){ .ranks = s->ranks, .nodes = s->nodes };
}

void tally_add(struct tally *t, uint32_t ranks, uint32_t count)
{
	uint32_t each = t->nodes ? t->ranks / t->nodes : 0;

	t->all += (uint64_t)ranks * count;
	t->with_each += ranks >= each ? count : 0;
	t->with_more += ranks > each ? count : 0;
}

/* Where ranks cannot be shared out evenly, some nodes take one more than the others. */
bool tally_fits(const struct tally *t)
{
	if (!t->nodes)
		return t->all && t->all >= t->ranks;
	return t->ranks >= t->nodes && t->with_each >= t->nodes &&
	       t->with_more >= t->ranks % t->nodes;
}
