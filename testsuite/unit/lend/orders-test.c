/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tries all orders of the atomic operations of ranks that use the ledger at the same time,
 * also of one that is killed between two of them. The ledger is compiled with LEND_EXPLORE,
 * and its atomic operations are here.
 *
 * An actor is a function that a rank's thread would run. The values that the actor has read
 * decide which operation comes next. So an actor is continued by running it from its start:
 * operations of before return what they returned, the next one is made, and the one behind
 * it ends the run. A state is the memory and what each actor has read.
 *
 * Scenarios that have too many orders are bounded: an actor that could go on is interrupted
 * BOUND times at most, by any other at any operation.
 */
#include "unit.h"

#include <stdbool.h>
#include <stdio.h>

#include "ledger-bed.h"

#define ACTORS_MAX 5
#define STEPS_MAX 160
#define SEEN_BITS 21
#define BOUND 3
#define ALL_ORDERS UINT32_MAX
#define FNV_START 14695981039346656037ull
#define FNV_PRIME 1099511628211ull

struct step {
	uint32_t value;
	bool done;
};

struct actor {
	uint32_t rank;
	uint32_t nsteps;
	bool over;  /* it has returned, or is killed */
	bool result; /* of a join */
	struct step steps[STEPS_MAX];
};

struct world {
	struct ledger_bed bed;
	struct actor actors[ACTORS_MAX];
};

typedef void program(struct world *w, struct actor *a);

struct scenario {
	uint32_t ranks;
	uint32_t nactors;
	struct {
		program *run;
		uint32_t rank;
	} actors[ACTORS_MAX];
};

/* ---- one operation of one actor ---- */

static struct {
	struct actor *actor; /* NULL: operations are made at once */
	uint32_t at;
	bool made;
	jmp_buf over;
} turn;

/* The operation of before, or NULL: it is to be made, and recorded in *record. */
static const struct step *repeated(struct step **record)
{
	static struct step unrecorded;

	*record = &unrecorded;
	if (!turn.actor)
		return NULL;
	if (turn.at < turn.actor->nsteps)
		return &turn.actor->steps[turn.at++];
	if (turn.made)
		longjmp(turn.over, 1);
	turn.made = true;
	assert_true(turn.actor->nsteps < STEPS_MAX);
	*record = &turn.actor->steps[turn.actor->nsteps++];
	**record = (struct step){ 0 };
	turn.at++;
	return NULL;
}

uint32_t word_load(lend_word *word)
{
	struct step *record;
	const struct step *before = repeated(&record);

	if (before)
		return before->value;
	return record->value = atomic_load(word);
}

void word_store(lend_word *word, uint32_t value)
{
	struct step *record;

	if (!repeated(&record))
		atomic_store(word, value);
}

void word_add(lend_word *word, uint32_t value)
{
	struct step *record;

	(void)word;
	(void)value;
	/* A state that differs in this count only is the same state. */
	repeated(&record);
}

bool word_swap(lend_word *word, uint32_t *from, uint32_t to)
{
	struct step *record;
	const struct step *before = repeated(&record);

	if (!before) {
		record->value = *from;
		record->done = atomic_compare_exchange_strong(word, &record->value, to);
		before = record;
	}
	*from = before->value;
	return before->done;
}

static void continue_actor(struct world *w, struct actor *a, program *run)
{
	turn.actor = a;
	turn.at = 0;
	turn.made = false;
	if (!setjmp(turn.over)) {
		run(w, a);
		a->over = true;
	}
	turn.actor = NULL;
}

/* ---- what ranks do ---- */

static void waits_once(struct world *w, struct actor *a)
{
	struct ledger l = bed_ledger(&w->bed);

	ledger_wait(&l, a->rank);
}

static void waits_and_resumes(struct world *w, struct actor *a)
{
	struct ledger l = bed_ledger(&w->bed);

	ledger_wait(&l, a->rank);
	ledger_resume(&l, a->rank, 0);
}

static void resumes_and_waits(struct world *w, struct actor *a)
{
	struct ledger l = bed_ledger(&w->bed);

	ledger_resume(&l, a->rank, 0);
	ledger_wait(&l, a->rank);
}

static void shares(struct world *w, struct actor *a)
{
	bed_share(&w->bed, a->rank);
}

static void shares_twice(struct world *w, struct actor *a)
{
	bed_share(&w->bed, a->rank);
	bed_share(&w->bed, a->rank);
}

static void joins(struct world *w, struct actor *a)
{
	const uint32_t cores[] = { 0, 1 };
	struct ledger l = bed_ledger(&w->bed);

	a->result = ledger_join(&l, a->rank, cores, 2, 4);
}

/* Another rank finds that the process has ended; its threads make no more operations. */
static void is_killed(struct world *w, struct actor *a)
{
	struct ledger l = bed_ledger(&w->bed);

	for (int i = 0; i < ACTORS_MAX; i++)
		if (&w->actors[i] != a && w->actors[i].rank == a->rank)
			w->actors[i].over = true;
	ledger_leave(&l, a->rank);
}

/* The rank has lost its lock, and its threads go on. */
static void counts_as_gone(struct world *w, struct actor *a)
{
	struct ledger l = bed_ledger(&w->bed);

	ledger_leave(&l, a->rank);
}

/* ---- all orders ---- */

static struct {
	uint64_t *seen;
	uint32_t n, ends;
	const struct scenario *scenario;
	void (*at_end)(struct world *w);
} search;

static uint64_t hash(uint64_t sum, uint32_t value)
{
	sum = (sum ^ value) * FNV_PRIME;
	return sum ^ sum >> 29;
}

static bool is_new(const struct world *w, uint32_t last, uint32_t left)
{
	size_t at, words = ledger_size(w->bed.ranks, w->bed.ranks * w->bed.each) / sizeof(uint32_t);
	uint64_t sum = hash(FNV_START, left);

	if (left != ALL_ORDERS)
		sum = hash(sum, last);
	for (size_t i = 0; i < words; i++)
		sum = hash(sum, w->bed.memory[i]);

	for (uint32_t i = 0; i < search.scenario->nactors; i++) {
		const struct actor *a = &w->actors[i];

		sum = hash(sum, a->over + 2u * a->result);
		for (uint32_t k = 0; !a->over && k < a->nsteps; k++)
			sum = hash(hash(sum, a->steps[k].value), a->steps[k].done);
	}
	sum |= !sum;
	for (at = sum >> (64 - SEEN_BITS); search.seen[at]; at = (at + 1) % (1u << SEEN_BITS))
		if (search.seen[at] == sum)
			return false;
	search.seen[at] = sum;
	assert_true(++search.n < 3u << (SEEN_BITS - 2));
	return true;
}

/* `last`: the actor that was continued last; `left`: interruptions that are left. */
static void explore(const struct world *w, uint32_t last, uint32_t left)
{
	bool more = false;
	struct world next;

	for (uint32_t i = 0; i < search.scenario->nactors; i++) {
		bool cuts = left != ALL_ORDERS && i != last && !w->actors[last].over;

		if (w->actors[i].over)
			continue;
		more = true;
		if (cuts && !left)
			continue;
		next = *w;
		continue_actor(&next, &next.actors[i], search.scenario->actors[i].run);
		if (is_new(&next, i, left - cuts))
			explore(&next, i, left - cuts);
	}
	if (more)
		return;
	search.ends++;
	next = *w;
	search.at_end(&next);
}

static void check_end(struct world *w)
{
	bed_check_settled(&w->bed);
}

static void search_from(const struct world *w, const struct scenario *s, uint32_t bound,
			void (*at_end)(struct world *w))
{
	search.seen = calloc(1u << SEEN_BITS, sizeof(*search.seen));
	assert_non_null(search.seen);
	search.n = search.ends = 0;
	search.scenario = s;
	search.at_end = at_end;
	for (uint32_t first = 0; first < (bound == ALL_ORDERS ? 1 : s->nactors); first++)
		explore(w, first, bound);
	free(search.seen);
	if (getenv("LEND_VERBOSE"))
		printf("%u states, %u ends\n", search.n, search.ends);
	assert_true(search.ends > 0);
}

/* `lent`: rank 0 has lent its core, and rank 1 has taken it. */
static void try_all(const struct scenario *s, bool lent, uint32_t bound)
{
	struct world w;
	struct ledger l;

	memset(&w, 0, sizeof(w));
	bed_make(&w.bed, s->ranks, 1, 2);
	l = bed_ledger(&w.bed);
	if (lent) {
		ledger_wait(&l, 0);
		bed_share(&w.bed, 1);
		assert_int_equal(bed_held(&w.bed, 1), 1);
	}
	for (uint32_t i = 0; i < s->nactors; i++)
		w.actors[i].rank = s->actors[i].rank;
	search_from(&w, s, bound, check_end);
}

TEST(owner_comes_back_while_another_takes)
{
	const struct scenario s = { 2, 3, { { waits_and_resumes, 0 }, { shares_twice, 1 },
					    { shares, 0 } } };

	try_all(&s, false, BOUND);
}

TEST(owner_waits_again_while_another_gives_back)
{
	const struct scenario s = { 2, 2, { { resumes_and_waits, 0 }, { shares_twice, 1 } } };

	try_all(&s, true, ALL_ORDERS);
}

TEST(taker_begins_to_wait_while_its_helper_takes)
{
	const struct scenario s = { 2, 3, { { waits_and_resumes, 0 }, { waits_and_resumes, 1 },
					    { shares, 1 } } };

	try_all(&s, false, BOUND);
}

TEST(taker_that_waits_holds_nothing_whenever_its_helper_takes)
{
	const struct scenario s = { 2, 3, { { waits_once, 0 }, { waits_once, 1 }, { shares, 1 } } };

	try_all(&s, false, ALL_ORDERS);
}

TEST(two_ranks_wait_and_come_back_with_both_helpers)
{
	const struct scenario s = { 2, 3, { { resumes_and_waits, 0 }, { waits_and_resumes, 1 },
					    { shares, 1 } } };

	try_all(&s, true, BOUND);
}

TEST(taker_dies_between_any_two_operations)
{
	const struct scenario takes = { 2, 3, { { waits_and_resumes, 0 }, { shares_twice, 1 },
						{ is_killed, 1 } } };
	const struct scenario holds = { 2, 3, { { resumes_and_waits, 0 }, { shares_twice, 1 },
						{ is_killed, 1 } } };

	try_all(&takes, false, ALL_ORDERS);
	try_all(&holds, true, ALL_ORDERS);
}

TEST(owner_dies_between_any_two_operations)
{
	const struct scenario lends = { 2, 3, { { waits_and_resumes, 0 }, { shares_twice, 1 },
						{ is_killed, 0 } } };
	const struct scenario wants = { 2, 3, { { resumes_and_waits, 0 }, { shares_twice, 1 },
						{ is_killed, 0 } } };

	try_all(&lends, false, ALL_ORDERS);
	try_all(&wants, true, ALL_ORDERS);
}

/* Its own calls would make it compute again: libpmi2x-lend makes none after that. */
TEST(helper_of_a_rank_that_counts_as_gone_goes_on)
{
	const struct scenario s = { 2, 3, { { waits_and_resumes, 0 }, { shares_twice, 1 },
					    { counts_as_gone, 1 } } };

	try_all(&s, false, BOUND);
}

TEST(two_take_what_a_third_lends_and_wants_back)
{
	const struct scenario s = { 3, 3, { { waits_and_resumes, 0 }, { shares, 1 },
					    { shares, 2 } } };

	try_all(&s, false, BOUND);
}

TEST(third_rank_takes_what_a_dead_one_held)
{
	const struct scenario s = { 3, 3, { { waits_once, 0 }, { is_killed, 1 }, { shares, 2 } } };

	try_all(&s, false, ALL_ORDERS);
	try_all(&s, true, ALL_ORDERS);
}

/* Both want both cores, so at most one of them may take part. */
static void check_one_joined(struct world *w)
{
	assert_false(w->actors[0].result && w->actors[1].result);
	for (int i = 0; i < 2; i++)
		assert_int_equal(bed_state(&w->bed, w->actors[i].rank),
				 w->actors[i].result ? LEDGER_COMPUTES : LEDGER_GONE);
}

static void forget(struct world *w)
{
	memset(w->bed.memory, 0, sizeof(w->bed.memory));
}

TEST(ranks_of_the_same_cores_never_both_join)
{
	const struct scenario s = { 2, 2, { { joins, 0 }, { joins, 1 } } };
	struct world w = { .bed = { .ranks = 2, .each = 1 } };

	forget(&w);
	w.actors[1].rank = 1;
	search_from(&w, &s, ALL_ORDERS, check_one_joined);
}
