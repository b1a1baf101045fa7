/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests of the ranks of the explored step, and the answers that they expect. */
#include "world_private.h"

#include <stdio.h>
#include <string.h>

void must(const struct world *w, bool promise, const char *what)
{
	if (!promise)
		w->broken(what);
}

bool is_fetch(char c)
{
	return c == 'x';
}

uint32_t owner_for(const struct world *w, uint32_t rank)
{
	return (rank + w->s->ranks / 2) % w->s->ranks;
}

uint32_t subset_of(char c)
{
	return c == 'e' ? 0 : c == 'u' ? 1 : SUBSETS;
}

bool is_member(const struct world *w, uint32_t subset, uint32_t rank)
{
	return subset == 0 ? rank % 2 == 0 : rank >= w->s->ranks / 2;
}

uint32_t members_of(const struct world *w, uint32_t subset,
		    uint32_t ranks[WORLD_RANKS])
{
	uint32_t n = 0;

	for (uint32_t r = 0; r < w->s->ranks; r++)
		if (is_member(w, subset, r))
			ranks[n++] = r;
	return n;
}

bool is_of_all(char c)
{
	return !is_fetch(c) && subset_of(c) == SUBSETS;
}

enum coll_kind kind_of(char c)
{
	return c == 'f' ? COLL_FENCE : c == 'g' ? COLL_GATHER : COLL_RING;
}

const char *value_of(char out[VALUE_MAX], enum coll_kind kind,
		     uint32_t rank, uint32_t seq)
{
	snprintf(out, VALUE_MAX, "%c%u%u", "fgr"[kind], rank, seq);
	return out;
}

bool is_text(const struct payload *p, const char *text)
{
	size_t len = strlen(text);

	return p && p->len == len && !memcmp(p->data, text, len);
}

bool result_is_right(const struct world *w, enum coll_kind kind,
		     uint32_t seq, const struct payload *result)
{
	char all[WORLD_RANKS * VALUE_MAX] = "", value[VALUE_MAX];

	for (uint32_t r = 0; r < w->s->ranks; r++)
		strcat(all, value_of(value, kind, r, seq));
	return is_text(result, all);
}

bool subset_is_right(const struct world *w, uint32_t subset,
		     uint32_t seq, const struct payload *result)
{
	char all[WORLD_RANKS * VALUE_MAX] = "", value[VALUE_MAX];
	uint32_t ranks[WORLD_RANKS], n = members_of(w, subset, ranks);

	for (uint32_t i = 0; i < n; i++)
		strcat(all, value_of(value, COLL_FENCE, ranks[i], seq));
	return is_text(result, all);
}

bool ring_is_right(const struct world *w, uint32_t seq, uint32_t rank,
		   const struct coll_ring_result *result)
{
	uint32_t n = w->s->ranks;
	char left[VALUE_MAX], right[VALUE_MAX];

	value_of(left, COLL_RING, (rank + n - 1) % n, seq);
	value_of(right, COLL_RING, (rank + 1) % n, seq);
	return result->rank == rank && result->size == n &&
	       is_text(result->left, left) && is_text(result->right, right);
}
