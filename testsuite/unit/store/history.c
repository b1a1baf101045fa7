/* SPDX-License-Identifier: BSD-3-Clause */
/* Looks for an order of the operations on a key: depth first, each state once. */
#include "history.h"

#include <stdlib.h>
#include <string.h>

#define STATES (1u << 16) /* that are remembered */

struct state {
	uint64_t done; /* operations, by index */
	int64_t value;
};

struct search {
	const struct history *history;
	uint64_t all;  /* operations on the key that have been answered, */
	uint64_t lost; /* ... and changes that have not, which may take effect */
	struct state *met;
	uint32_t nmet;
};

/* The operation on the one store. False: it would have had another answer. */
static bool apply(const struct history_op *o, int64_t *value)
{
	bool exists = *value != HISTORY_NONE;
	int64_t before = *value;

	switch (o->op) {
	case STORE_SET:
		*value = o->value;
		return true;
	case STORE_ADD:
		*value = (exists ? before : 0) + o->value;
		return o->result == *value;
	case STORE_DELETE:
		*value = HISTORY_NONE;
		return o->result == exists;
	case STORE_COMPARE_SET:
		if (exists && before == o->expected)
			*value = o->value;
		return o->result == (exists ? *value : o->expected);
	case STORE_FETCH:
		return exists && o->result == before;
	default:
		return o->result == before;
	}
}

static bool is_before(const struct history_op *a, const struct history_op *b)
{
	return a->answered < b->asked ||
	       (a->client == b->client && a->asked < b->asked && a->op != STORE_FETCH);
}

/* All operations that must come before it have come. */
static bool may_follow(const struct search *s, uint64_t done, uint32_t i)
{
	const struct history_op *ops = s->history->ops;

	for (uint32_t j = 0; j < s->history->n; j++)
		if (j != i && (s->all & ~done) >> j & 1 && is_before(&ops[j], &ops[i]))
			return false;
	return true;
}

/* True: the state is new. */
static bool enter(struct search *s, const struct state *now)
{
	uint64_t at = (now->done * 0x9e3779b97f4a7c15u) ^ (uint64_t)(now->value * 0x85ebca6b);
	struct state *m;

	for (at %= STATES; (m = &s->met[at])->done; at = (at + 1) % STATES)
		if (m->done == now->done && m->value == now->value)
			return false;
	if (++s->nmet == STATES)
		abort();
	*m = *now;
	return true;
}

static bool find_order(struct search *s, struct state now)
{
	if ((now.done & s->all) == s->all)
		return true;
	if (now.done && !enter(s, &now))
		return false;
	for (uint32_t i = 0; i < s->history->n; i++) {
		struct state next = { now.done | (uint64_t)1 << i, now.value };
		bool fits;

		if (!(((s->all | s->lost) & ~now.done) >> i & 1) || !may_follow(s, now.done, i))
			continue;
		fits = apply(&s->history->ops[i], &next.value) || s->lost >> i & 1;
		if (fits && find_order(s, next))
			return true;
	}
	return false;
}

static bool key_is_linearizable(const struct history *h, uint32_t key)
{
	struct search s = { .history = h, .met = calloc(STATES, sizeof(*s.met)) };
	bool found;

	if (!s.met)
		abort();
	for (uint32_t i = 0; i < h->n; i++)
		if (h->ops[i].key == key)
			*(h->ops[i].answered ? &s.all : &s.lost) |= (uint64_t)1 << i;
	found = find_order(&s, (struct state){ 0, HISTORY_NONE });
	free(s.met);
	return found;
}

bool history_is_linearizable(const struct history *h)
{
	for (uint32_t i = 0; i < h->n; i++) {
		bool first = true;

		for (uint32_t j = 0; j < i; j++)
			first &= h->ops[j].key != h->ops[i].key;
		if (first && !key_is_linearizable(h, h->ops[i].key))
			return false;
	}
	return true;
}

bool history_is_in_order(const struct history *h)
{
	uint32_t last[HISTORY_MAX] = { 0 }; /* answer, by client */

	for (uint32_t i = 0; i < h->n; i++) {
		const struct history_op *o = &h->ops[i];

		if (o->op == STORE_FETCH)
			continue;
		if (o->answered && o->answered < last[o->client])
			return false;
		last[o->client] = o->answered ? o->answered : UINT32_MAX;
	}
	return true;
}
