/* SPDX-License-Identifier: BSD-3-Clause */
/* The words of cores and ranks, and the moves between their states. */
#include "lend/core/ledger.h"

#include "lend/core/shares.h"

/*
 * A word: owner and holder as number of the rank plus 1 (0: nobody), and whether the owner
 * wants the core back.
 */
#define PART_BITS 15
#define PART_MASK ((1u << PART_BITS) - 1)
#define WANTED (1u << 2 * PART_BITS)

static uint32_t make_word(uint32_t owner, uint32_t holder, bool wanted)
{
	return owner | holder << PART_BITS | (wanted ? WANTED : 0);
}

static uint32_t owner_of(uint32_t word)
{
	return word & PART_MASK;
}

static uint32_t holder_of(uint32_t word)
{
	return word >> PART_BITS & PART_MASK;
}

/* ---- memory ---- */

size_t ledger_size(uint32_t ranks, uint32_t cores)
{
	return ranks * sizeof(struct ledger_rank) + (cores + 1ul) * sizeof(lend_word);
}

void ledger_view(struct ledger *l, void *memory, uint32_t ranks, uint32_t cores)
{
	l->ranks = memory;
	l->cores = (lend_word *)(l->ranks + ranks);
	l->changes = l->cores + cores;
	l->nranks = ranks;
	l->ncores = cores;
}

/* ---- what a word means ---- */

/* `name` is a number of a rank plus 1, or anything. */
static uint32_t state_of(struct ledger *l, uint32_t name)
{
	return name && name <= l->nranks ? word_load(&l->ranks[name - 1].state) : LEDGER_GONE;
}

static bool is_here(struct ledger *l, uint32_t name)
{
	uint32_t state = state_of(l, name);

	return state == LEDGER_JOINS || state == LEDGER_COMPUTES || state == LEDGER_WAITS;
}

/* The word as it would be if ranks that have gone had given up what they own and hold. */
static uint32_t settle(struct ledger *l, uint32_t word)
{
	uint32_t owner = owner_of(word), holder = holder_of(word);
	bool wanted = word & WANTED, owned;

	if (!owner)
		return word;
	owned = is_here(l, owner);
	if (holder && holder != owner && !is_here(l, holder))
		holder = wanted && owned ? owner : 0;
	if (holder == owner && !owned)
		holder = 0;
	if (holder == owner || !holder || !owned)
		wanted = false;
	return make_word(owner, holder, wanted);
}

/* ---- moves of one word ---- */

typedef uint32_t move(uint32_t word, uint32_t me);

/* Repeat until no other rank has come between. Returns the word before; *after is it then. */
static uint32_t make_move(struct ledger *l, uint32_t core, move *to, uint32_t me,
			  uint32_t *after)
{
	uint32_t before = word_load(&l->cores[core]);

	do
		*after = to(settle(l, before), me);
	while (*after != before && !word_swap(&l->cores[core], &before, *after));
	return before;
}

static uint32_t lend_own(uint32_t word, uint32_t me)
{
	if (owner_of(word) != me)
		return word;
	return make_word(me, holder_of(word) == me ? 0 : holder_of(word), false);
}

/* A core that is given back becomes its owner's, not free. */
static uint32_t give_up(uint32_t word, uint32_t me)
{
	if (owner_of(word) == me || holder_of(word) != me)
		return word;
	return make_word(owner_of(word), word & WANTED ? owner_of(word) : 0, false);
}

static uint32_t give_back(uint32_t word, uint32_t me)
{
	return word & WANTED ? give_up(word, me) : word;
}

static uint32_t want_own(uint32_t word, uint32_t me)
{
	uint32_t holder = holder_of(word);

	if (owner_of(word) != me)
		return word;
	return make_word(me, holder ? holder : me, holder && holder != me);
}

static uint32_t take_lent(uint32_t word, uint32_t me)
{
	if (!owner_of(word) || owner_of(word) == me || holder_of(word))
		return word;
	return make_word(owner_of(word), me, false);
}

/* ---- joining and leaving ---- */

/* True: the core is the rank's. */
static bool claim(struct ledger *l, uint32_t core, uint32_t me)
{
	uint32_t word = word_load(&l->cores[core]);

	do
		if (owner_of(word) && owner_of(word) != me && is_here(l, owner_of(word)))
			return false;
	while (!word_swap(&l->cores[core], &word, make_word(me, me, false)));
	return true;
}

/* Words that a program of the same rank has left, before an exec. */
static void clear_own(struct ledger *l, uint32_t me)
{
	for (uint32_t core = 0; core < l->ncores; core++) {
		uint32_t word = word_load(&l->cores[core]), after;

		if (owner_of(word) == me)
			word_store(&l->cores[core], 0);
		else
			make_move(l, core, give_up, me, &after);
	}
}

bool ledger_join(struct ledger *l, uint32_t rank, const uint32_t *cores, uint32_t ncores,
		 uint32_t threads)
{
	struct ledger_rank *r = &l->ranks[rank];

	word_store(&r->state, LEDGER_GONE);
	clear_own(l, rank + 1);
	word_store(&r->state, LEDGER_JOINS);
	for (uint32_t i = 0; i < ncores; i++)
		if (cores[i] >= l->ncores || !claim(l, cores[i], rank + 1)) {
			clear_own(l, rank + 1);
			word_store(&r->state, LEDGER_GONE);
			return false;
		}
	word_store(&r->own, ncores);
	word_store(&r->threads, threads);
	word_store(&r->waited, 0);
	word_store(&r->state, LEDGER_COMPUTES);
	return true;
}

void ledger_leave(struct ledger *l, uint32_t rank)
{
	word_store(&l->ranks[rank].state, LEDGER_GONE);
	word_add(l->changes, 1);
}

/* ---- waiting and computing ---- */

/* The state comes first: a helper that has taken a core since then sees it, and gives it up. */
void ledger_wait(struct ledger *l, uint32_t rank)
{
	uint32_t after;

	word_store(&l->ranks[rank].state, LEDGER_WAITS);
	for (uint32_t core = 0; core < l->ncores; core++) {
		make_move(l, core, lend_own, rank + 1, &after);
		make_move(l, core, give_up, rank + 1, &after);
	}
	word_add(l->changes, 1);
}

/* Half of what was counted before, so that a rank that becomes late is soon known. */
static void count_wait(struct ledger_rank *r, uint32_t waited)
{
	word_store(&r->waited, word_load(&r->waited) / 2 + waited / 2);
}

uint32_t ledger_resume(struct ledger *l, uint32_t rank, uint32_t waited)
{
	uint32_t after, wanted = 0;

	count_wait(&l->ranks[rank], waited);
	word_store(&l->ranks[rank].state, LEDGER_COMPUTES);
	for (uint32_t core = 0; core < l->ncores; core++) {
		make_move(l, core, want_own, rank + 1, &after);
		wanted += owner_of(after) == rank + 1 && (after & WANTED);
	}
	word_add(l->changes, 1);
	return wanted;
}

/* ---- sharing ---- */

/* Cores whose owners wait or have gone. */
static uint32_t count_lent(struct ledger *l)
{
	uint32_t n = 0;

	for (uint32_t core = 0; core < l->ncores; core++) {
		uint32_t owner = owner_of(word_load(&l->cores[core]));
		uint32_t state = owner ? state_of(l, owner) : LEDGER_COMPUTES;

		n += state == LEDGER_WAITS || state == LEDGER_GONE;
	}
	return n;
}

static uint32_t share_of(struct ledger *l, uint32_t rank)
{
	struct share_rank ranks[LEDGER_RANKS_MAX];
	uint32_t n = 0, mine = UINT32_MAX;

	for (uint32_t i = 0; i < l->nranks && i < LEDGER_RANKS_MAX; i++) {
		struct ledger_rank *r = &l->ranks[i];

		if (word_load(&r->state) != LEDGER_COMPUTES)
			continue;
		if (i == rank)
			mine = n;
		ranks[n++] = (struct share_rank){ word_load(&r->own), word_load(&r->threads),
						  word_load(&r->waited), 0 };
	}
	if (mine == UINT32_MAX)
		return 0;
	shares_divide(ranks, n, count_lent(l));
	return ranks[mine].share;
}

static bool is_held_by(struct ledger *l, uint32_t core, uint32_t me)
{
	uint32_t word = word_load(&l->cores[core]);

	return owner_of(word) != me && holder_of(word) == me;
}

/* True: at least one core was given back. Returns in *held how many are kept. */
static bool leave_wanted(struct ledger *l, uint32_t me, uint32_t *held)
{
	bool left = false;
	uint32_t after;

	*held = 0;
	for (uint32_t core = 0; core < l->ncores; core++) {
		if (!is_held_by(l, core, me))
			continue;
		make_move(l, core, give_back, me, &after);
		left |= holder_of(after) != me;
		*held += holder_of(after) == me;
	}
	return left;
}

/* Hold `share` cores where that many are lent, the first ones of `order`. */
static bool adjust(struct ledger *l, uint32_t me, const uint32_t *order, uint32_t held,
		   uint32_t share)
{
	bool changed = false;
	uint32_t after;

	for (uint32_t i = l->ncores; i-- > 0 && held > share;)
		if (is_held_by(l, order[i], me)) {
			make_move(l, order[i], give_up, me, &after);
			word_add(l->changes, 1);
			changed = true;
			held--;
		}
	for (uint32_t i = 0; i < l->ncores && held < share; i++)
		if (!is_held_by(l, order[i], me)) {
			make_move(l, order[i], take_lent, me, &after);
			if (owner_of(after) != me && holder_of(after) == me) {
				changed = true;
				held++;
			}
		}
	return changed;
}

bool ledger_share(struct ledger *l, uint32_t rank, const uint32_t *order)
{
	uint32_t held, after;
	bool changed = leave_wanted(l, rank + 1, &held);

	if (word_load(&l->ranks[rank].state) != LEDGER_COMPUTES)
		return changed;
	changed |= adjust(l, rank + 1, order, held, share_of(l, rank));
	if (word_load(&l->ranks[rank].state) == LEDGER_COMPUTES)
		return changed;
	/* The rank has begun to wait meanwhile, and may have looked before this took. */
	for (uint32_t core = 0; core < l->ncores; core++)
		make_move(l, core, give_up, rank + 1, &after);
	return true;
}

/* ---- views ---- */

struct ledger_core ledger_core_at(struct ledger *l, uint32_t core)
{
	uint32_t word = settle(l, word_load(&l->cores[core]));

	/* Nobody becomes LEDGER_NOBODY. */
	return (struct ledger_core){ owner_of(word) - 1, holder_of(word) - 1, word & WANTED };
}

uint32_t ledger_places(struct ledger *l, uint32_t rank, const uint32_t *order,
		       uint32_t *places)
{
	uint32_t n = 0;

	for (int own = 1; own >= 0; own--)
		for (uint32_t i = 0; i < l->ncores; i++) {
			struct ledger_core c = ledger_core_at(l, order[i]);

			if (own ? c.owner == rank : c.owner != rank && c.holder == rank && !c.wanted)
				places[n++] = order[i];
		}
	return n;
}

bool ledger_is_used(struct ledger *l, uint32_t rank)
{
	for (uint32_t i = 0; i < l->ncores; i++) {
		struct ledger_core c = ledger_core_at(l, i);

		if (c.owner == rank && c.holder != rank && c.holder != LEDGER_NOBODY)
			return true;
	}
	return false;
}
