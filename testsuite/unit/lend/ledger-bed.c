/* SPDX-License-Identifier: BSD-3-Clause */
/* A ledger for tests, and its invariants. */
#include "ledger-bed.h"

#include "lend/core/shares.h"
#include "unit.h"

#define TURNS_MAX 8

struct ledger bed_ledger(struct ledger_bed *b)
{
	struct ledger l;

	ledger_view(&l, b->memory, b->ranks, b->ranks * b->each);
	return l;
}

void bed_make(struct ledger_bed *b, uint32_t ranks, uint32_t each, uint32_t factor)
{
	uint32_t cores[BED_CORES_MAX];
	struct ledger l;

	memset(b, 0, sizeof(*b));
	b->ranks = ranks;
	b->each = each;
	assert_true(ledger_size(ranks, ranks * each) <= sizeof(b->memory));
	l = bed_ledger(b);
	for (uint32_t r = 0; r < ranks; r++) {
		for (uint32_t i = 0; i < each; i++)
			cores[i] = r * each + i;
		assert_true(ledger_join(&l, r, cores, each, factor * each));
	}
}

bool bed_share(struct ledger_bed *b, uint32_t rank)
{
	struct ledger l = bed_ledger(b);
	uint32_t order[BED_CORES_MAX];

	for (uint32_t i = 0; i < l.ncores; i++)
		order[i] = (rank * b->each + i) % l.ncores;
	return ledger_share(&l, rank, order);
}

enum ledger_state bed_state(struct ledger_bed *b, uint32_t rank)
{
	struct ledger l = bed_ledger(b);

	return (enum ledger_state)word_load(&l.ranks[rank].state);
}

uint32_t bed_held(struct ledger_bed *b, uint32_t rank)
{
	struct ledger l = bed_ledger(b);
	uint32_t n = 0;

	for (uint32_t i = 0; i < l.ncores; i++) {
		struct ledger_core c = ledger_core_at(&l, i);

		n += c.owner != rank && c.holder == rank;
	}
	return n;
}

static void check_core(struct ledger_bed *b, struct ledger_core c, uint32_t core)
{
	enum ledger_state state;

	if (c.owner == LEDGER_NOBODY)
		return;
	assert_int_equal(c.owner, core / b->each);
	state = bed_state(b, c.owner);
	if (state == LEDGER_COMPUTES)
		assert_true(c.holder == c.owner || c.wanted);
	else
		assert_true(c.holder != c.owner && !c.wanted);
	if (c.holder != LEDGER_NOBODY)
		assert_int_equal(bed_state(b, c.holder), LEDGER_COMPUTES);
}

void bed_check(struct ledger_bed *b)
{
	struct ledger l = bed_ledger(b);

	for (uint32_t i = 0; i < l.ncores; i++)
		check_core(b, ledger_core_at(&l, i), i);
}

/* The helpers' turns, until none has anything to do. */
static void settle_all(struct ledger_bed *b)
{
	bool changed = true;

	for (int turn = 0; changed; turn++) {
		assert_true(turn < TURNS_MAX);
		changed = false;
		for (uint32_t r = 0; r < b->ranks; r++)
			changed |= bed_share(b, r);
	}
}

static void check_shares(struct ledger_bed *b)
{
	struct share_rank ranks[BED_RANKS_MAX];
	uint32_t names[BED_RANKS_MAX], n = 0, lent = 0;
	struct ledger l = bed_ledger(b);

	for (uint32_t r = 0; r < b->ranks; r++) {
		if (bed_state(b, r) != LEDGER_COMPUTES) {
			lent += b->each;
			continue;
		}
		names[n] = r;
		ranks[n++] = (struct share_rank){ b->each, word_load(&l.ranks[r].threads),
						  word_load(&l.ranks[r].waited), 0 };
	}
	shares_divide(ranks, n, lent);
	for (uint32_t i = 0; i < n; i++)
		assert_int_equal(bed_held(b, names[i]), ranks[i].share);
}

void bed_check_settled(const struct ledger_bed *b)
{
	struct ledger_bed copy = *b;
	struct ledger l = bed_ledger(&copy);

	settle_all(&copy);
	bed_check(&copy);
	for (uint32_t i = 0; i < l.ncores; i++)
		assert_false(ledger_core_at(&l, i).wanted);
	check_shares(&copy);
}
