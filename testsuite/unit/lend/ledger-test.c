/* SPDX-License-Identifier: BSD-3-Clause */
/* The ledger of cores, and arrivals: each move, and all orders of whole calls. */
#include "unit.h"

#include <stdbool.h>

#include "ledger-bed.h"
#include "lend/core/arrivals.h"

#define GROUPS 4

static struct ledger_core core_of(struct ledger_bed *b, uint32_t core)
{
	struct ledger l = bed_ledger(b);

	return ledger_core_at(&l, core);
}

TEST(lent_core_is_held_until_its_owner_computes)
{
	struct ledger_bed b;
	struct ledger l;

	bed_make(&b, 2, 1, 2);
	l = bed_ledger(&b);
	assert_false(bed_share(&b, 1));
	ledger_wait(&l, 0);
	assert_false(ledger_is_used(&l, 0));
	assert_true(bed_share(&b, 1));
	assert_int_equal(core_of(&b, 0).holder, 1);
	assert_true(ledger_is_used(&l, 0));
	assert_int_equal(ledger_resume(&l, 0, 10), 1);
	assert_true(core_of(&b, 0).wanted);
	assert_true(bed_share(&b, 1));
	assert_int_equal(core_of(&b, 0).holder, 0);
	assert_false(bed_share(&b, 1));
}

TEST(owner_that_nobody_has_helped_computes_at_once)
{
	struct ledger_bed b;
	struct ledger l;

	bed_make(&b, 2, 2, 2);
	l = bed_ledger(&b);
	ledger_wait(&l, 0);
	assert_int_equal(ledger_resume(&l, 0, 10), 0);
	assert_int_equal(core_of(&b, 1).holder, 0);
}

TEST(rank_that_waits_holds_none_of_others)
{
	struct ledger_bed b;
	struct ledger l;

	bed_make(&b, 3, 1, 2);
	l = bed_ledger(&b);
	ledger_wait(&l, 0);
	assert_true(bed_share(&b, 1));
	ledger_wait(&l, 1);
	assert_int_equal(core_of(&b, 0).holder, LEDGER_NOBODY);
	assert_true(bed_share(&b, 2));
	assert_int_equal(bed_held(&b, 2), 1);
	assert_false(bed_share(&b, 1));
}

TEST(places_are_own_cores_and_then_held_ones)
{
	const uint32_t order[] = { 3, 2, 1, 0 };
	struct ledger_bed b;
	uint32_t places[4];
	struct ledger l;

	bed_make(&b, 2, 2, 2);
	l = bed_ledger(&b);
	ledger_wait(&l, 1);
	assert_true(ledger_share(&l, 0, order));
	assert_int_equal(ledger_places(&l, 0, order, places), 4);
	assert_memory_equal(places, ((uint32_t[]){ 1, 0, 3, 2 }), sizeof(places));
	ledger_resume(&l, 1, 0);
	assert_int_equal(ledger_places(&l, 0, order, places), 2);
}

TEST(cores_of_a_rank_that_has_gone_are_lent_for_good)
{
	struct ledger_bed b;
	struct ledger l;

	bed_make(&b, 2, 1, 2);
	l = bed_ledger(&b);
	ledger_leave(&l, 0);
	assert_true(bed_share(&b, 1));
	assert_int_equal(core_of(&b, 0).holder, 1);
	bed_check(&b);
}

TEST(cores_that_a_rank_held_when_it_died_are_free)
{
	struct ledger_bed b;
	struct ledger l;

	bed_make(&b, 3, 1, 2);
	l = bed_ledger(&b);
	ledger_wait(&l, 0);
	bed_share(&b, 1);
	ledger_leave(&l, 1);
	assert_int_equal(core_of(&b, 0).holder, LEDGER_NOBODY);
	assert_true(bed_share(&b, 2));
	ledger_resume(&l, 0, 0);
	ledger_leave(&l, 2);
	assert_int_equal(core_of(&b, 0).holder, 0);
	bed_check_settled(&b);
}

TEST(rank_that_joins_again_has_its_cores)
{
	struct ledger_bed b;
	struct ledger l;

	bed_make(&b, 2, 1, 2);
	l = bed_ledger(&b);
	ledger_leave(&l, 0);
	bed_share(&b, 1);
	assert_true(ledger_join(&l, 0, (uint32_t[]){ 0 }, 1, 2));
	bed_check(&b);
	bed_check_settled(&b);
}

TEST(ranks_with_cores_of_others_take_no_part)
{
	struct ledger_bed b;
	struct ledger l;

	bed_make(&b, 3, 1, 2);
	l = bed_ledger(&b);
	ledger_leave(&l, 2);
	assert_false(ledger_join(&l, 2, (uint32_t[]){ 2, 1 }, 2, 4));
	assert_int_equal(bed_state(&b, 2), LEDGER_GONE);
	assert_int_equal(core_of(&b, 1).owner, 1);
	assert_int_equal(core_of(&b, 2).owner, LEDGER_NOBODY);
	assert_false(ledger_join(&l, 2, (uint32_t[]){ 3 }, 1, 2));
}

/* Any process of the user can write there. */
TEST(any_bytes_harm_nobody)
{
	const uint32_t order[] = { 0, 1, 2, 3 };
	struct ledger_bed b;
	uint32_t places[4];
	struct ledger l;

	for (unsigned seed = 1; seed < 500; seed++) {
		bed_make(&b, 2, 2, 2);
		l = bed_ledger(&b);
		srand(seed);
		for (size_t i = 0; i < ledger_size(2, 4) / sizeof(uint32_t); i++)
			b.memory[i] = (uint32_t)rand() * (rand() % 2 ? 3u : 0u) +
				      (uint32_t)rand() % 8;
		ledger_wait(&l, 0);
		ledger_share(&l, 1, order);
		ledger_resume(&l, 0, 1);
		ledger_share(&l, 0, order);
		assert_true(ledger_places(&l, 0, order, places) <= 4);
	}
}

/* ---- all orders of whole calls ---- */

#define SEEN_MAX (1u << 16)

struct seen {
	struct ledger_bed states[SEEN_MAX];
	uint32_t n;
};

/* True: the state is new. Words that only count do not make it another one. */
static bool add_state(struct seen *s, struct ledger_bed *b)
{
	struct ledger l = bed_ledger(b);

	word_store(l.changes, 0);
	for (uint32_t i = 0; i < s->n; i++)
		if (!memcmp(&s->states[i], b, sizeof(*b)))
			return false;
	assert_true(s->n < SEEN_MAX);
	s->states[s->n++] = *b;
	return true;
}

enum call { CALL_WAIT, CALL_RESUME, CALL_SHARE, CALL_DIE, CALLS };

/* False: the rank cannot make this call now. */
static bool make_call(struct ledger_bed *b, uint32_t rank, enum call call)
{
	enum ledger_state state = bed_state(b, rank);
	struct ledger l = bed_ledger(b);

	switch (call) {
	case CALL_WAIT:
		ledger_wait(&l, rank);
		return state == LEDGER_COMPUTES;
	case CALL_RESUME:
		ledger_resume(&l, rank, 0);
		return state == LEDGER_WAITS;
	case CALL_SHARE:
		bed_share(b, rank);
		return state != LEDGER_GONE;
	default:
		ledger_leave(&l, rank);
		return state != LEDGER_GONE;
	}
}

static uint32_t try_all(uint32_t ranks, uint32_t each, uint32_t factor)
{
	struct seen *seen = unit_at_end(free, calloc(1, sizeof(*seen)));
	struct ledger_bed b;

	bed_make(&b, ranks, each, factor);
	add_state(seen, &b);
	for (uint32_t i = 0; i < seen->n; i++)
		for (uint32_t rank = 0; rank < ranks; rank++)
			for (int call = 0; call < CALLS; call++) {
				b = seen->states[i];
				if (!make_call(&b, rank, (enum call)call) || !add_state(seen, &b))
					continue;
				bed_check(&b);
				bed_check_settled(&b);
			}
	return seen->n;
}

TEST(all_orders_of_calls_of_two_ranks_keep_the_rules)
{
	assert_in_range(try_all(2, 1, 2), 10, SEEN_MAX);
	assert_in_range(try_all(2, 2, 2), 10, SEEN_MAX);
	assert_in_range(try_all(2, 2, 4), 10, SEEN_MAX);
}

TEST(all_orders_of_calls_of_three_ranks_keep_the_rules)
{
	assert_in_range(try_all(3, 1, 2), 30, SEEN_MAX);
	assert_in_range(try_all(3, 1, 4), 30, SEEN_MAX);
	assert_in_range(try_all(3, 2, 2), 30, SEEN_MAX);
}

/* ---- arrivals ---- */

struct meeting {
	struct ledger_bed bed;
	struct ledger ledger;
	struct arrivals arrivals;
	uint32_t memory[GROUPS * (BED_RANKS_MAX + 1)];
};

static void make_meeting(struct meeting *m, uint32_t ranks)
{
	memset(m, 0, sizeof(*m));
	bed_make(&m->bed, ranks, 1, 2);
	m->ledger = bed_ledger(&m->bed);
	assert_true(arrivals_size(ranks, GROUPS) <= sizeof(m->memory));
	arrivals_view(&m->arrivals, m->memory, ranks, GROUPS);
}

TEST(collective_is_complete_when_all_have_come)
{
	const uint32_t all[] = { 0, 1, 2 };
	struct meeting m;
	uint32_t group, calls;

	make_meeting(&m, 3);
	group = arrivals_group(&m.arrivals, arrivals_key(all, 3));
	for (int round = 0; round < 3; round++) {
		calls = arrivals_enter(&m.arrivals, group, 0);
		assert_false(arrivals_complete(&m.arrivals, &m.ledger, group, calls, all, 3));
		arrivals_enter(&m.arrivals, group, 1);
		assert_false(arrivals_complete(&m.arrivals, &m.ledger, group, calls, all, 3));
		arrivals_enter(&m.arrivals, group, 2);
		assert_true(arrivals_complete(&m.arrivals, &m.ledger, group, calls, all, 3));
	}
	/* One that is ahead is there, too. */
	arrivals_enter(&m.arrivals, group, 2);
	assert_true(arrivals_complete(&m.arrivals, &m.ledger, group, calls, all, 3));
}

TEST(ranks_that_have_gone_are_not_waited_for)
{
	const uint32_t all[] = { 0, 1 };
	struct meeting m;
	uint32_t group, calls;

	make_meeting(&m, 2);
	group = arrivals_group(&m.arrivals, 7);
	calls = arrivals_enter(&m.arrivals, group, 0);
	assert_false(arrivals_complete(&m.arrivals, &m.ledger, group, calls, all, 2));
	ledger_leave(&m.ledger, 1);
	assert_true(arrivals_complete(&m.arrivals, &m.ledger, group, calls, all, 2));
}

TEST(counts_pass_their_largest_number)
{
	const uint32_t all[] = { 0, 1 };
	struct meeting m;
	uint32_t group, calls;

	make_meeting(&m, 2);
	memset(m.memory, 0xff, sizeof(m.memory));
	group = arrivals_group(&m.arrivals, UINT32_MAX);
	calls = arrivals_enter(&m.arrivals, group, 0);
	assert_int_equal(calls, 0);
	assert_false(arrivals_complete(&m.arrivals, &m.ledger, group, calls, all, 2));
	arrivals_enter(&m.arrivals, group, 1);
	assert_true(arrivals_complete(&m.arrivals, &m.ledger, group, calls, all, 2));
}

TEST(groups_are_found_again_until_there_is_no_room)
{
	struct meeting m;
	uint32_t groups[GROUPS];

	make_meeting(&m, 2);
	for (uint32_t i = 0; i < GROUPS; i++)
		groups[i] = arrivals_group(&m.arrivals, 100 + 4 * i);
	for (uint32_t i = 0; i < GROUPS; i++) {
		assert_int_equal(arrivals_group(&m.arrivals, 100 + 4 * i), groups[i]);
		for (uint32_t k = 0; k < i; k++)
			assert_int_not_equal(groups[i], groups[k]);
	}
	assert_int_equal(arrivals_group(&m.arrivals, 99), ARRIVALS_NONE);
	assert_int_not_equal(arrivals_key((uint32_t[]){ 0, 1 }, 2),
			     arrivals_key((uint32_t[]){ 1, 0 }, 2));
}
