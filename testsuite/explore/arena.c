/* SPDX-License-Identifier: BSD-3-Clause */
/* The arena: blocks of units, where each unit knows the block it belongs to. */
#include "arena.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#define UNIT 16                /* bytes */
#define UNITS (1u << 14)
#define PLACE ((void *)0x5ea0000000) /* where hardly a number looks like a
                                        pointer; any other place will do */

/* All that a snapshot keeps; what is behind `used` is not looked at. */
struct arena {
	uint32_t used;            /* units */
	uint32_t live;            /* blocks */
	uint32_t owner[UNITS];    /* first unit + 1 of its block; 0: free */
	uint32_t size[UNITS];     /* of the block that begins here, in units */
	unsigned char bytes[UNITS][UNIT] __attribute__((aligned(UNIT)));
};

struct snapshot {
	uint32_t used, live;
	unsigned char rest[]; /* owner, size, bytes */
};

static struct arena *arena;
static bool on;

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *p, size_t size);
void __real_free(void *p);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *p, size_t size);
void __wrap_free(void *p);

static void out_of_memory(void)
{
	fprintf(stderr, "explore: a state is larger than the arena\n");
	abort();
}

void arena_open(void)
{
	arena = mmap(PLACE, sizeof(*arena), PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (arena == MAP_FAILED)
		out_of_memory();
}

void arena_on(bool yes)
{
	on = yes;
}

void arena_clear(void)
{
	arena->used = 0;
	arena->live = 0;
}

size_t arena_live(void)
{
	return arena->live;
}

/* ---- blocks ---- */

static bool in_arena(const void *p)
{
	const unsigned char *at = p;

	return at >= arena->bytes[0] && at < arena->bytes[UNITS - 1];
}

static uint32_t unit_of(const void *p)
{
	return ((const unsigned char *)p - arena->bytes[0]) / UNIT;
}

/*
 * Freed units are never used again: a stale pointer to them then leads nowhere in every
 * state, and does not tell two states apart.
 */
static uint32_t take(uint32_t units)
{
	uint32_t first = arena->used;

	if (units > UNITS - 1 - first)
		out_of_memory();
	arena->used += units;
	return first;
}

static void *block_new(size_t size)
{
	uint32_t units = size / UNIT + 1, first = take(units);

	arena->size[first] = units;
	for (uint32_t i = 0; i < units; i++)
		arena->owner[first + i] = first + 1;
	arena->live++;
	memset(arena->bytes[first], 0, units * (size_t)UNIT);
	return arena->bytes[first];
}

static void block_free(void *p)
{
	uint32_t first = unit_of(p), units = arena->size[first];

	if (arena->owner[first] != first + 1) {
		fprintf(stderr, "explore: freed twice\n");
		abort();
	}
	for (uint32_t i = 0; i < units; i++)
		arena->owner[first + i] = 0;
	arena->live--;
}

void *__wrap_malloc(size_t size)
{
	return on ? block_new(size) : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
	return on ? block_new(count * size) : __real_calloc(count, size);
}

void *__wrap_realloc(void *p, size_t size)
{
	size_t old;
	void *block;

	if (!on || (p && !in_arena(p)))
		return __real_realloc(p, size);
	block = block_new(size);
	if (!p)
		return block;
	old = arena->size[unit_of(p)] * (size_t)UNIT;
	memcpy(block, p, old < size ? old : size);
	block_free(p);
	return block;
}

void __wrap_free(void *p)
{
	if (p && in_arena(p))
		block_free(p);
	else
		__real_free(p);
}

/* ---- snapshots ---- */

struct snapshot *arena_save(void)
{
	size_t n = arena->used, table = n * sizeof(uint32_t);
	struct snapshot *s = __real_malloc(sizeof(*s) + 2 * table + n * UNIT);

	if (!s)
		out_of_memory();
	s->used = arena->used;
	s->live = arena->live;
	memcpy(s->rest, arena->owner, table);
	memcpy(s->rest + table, arena->size, table);
	memcpy(s->rest + 2 * table, arena->bytes, n * UNIT);
	return s;
}

void arena_restore(const struct snapshot *s)
{
	size_t n = s->used, table = n * sizeof(uint32_t);

	arena->used = s->used;
	arena->live = s->live;
	memcpy(arena->owner, s->rest, table);
	memcpy(arena->size, s->rest + table, table);
	memcpy(arena->bytes, s->rest + 2 * table, n * UNIT);
}

void snapshot_free(struct snapshot *s)
{
	__real_free(s);
}

/* ---- comparing ---- */

/* The walk over all blocks that can be reached, in the order of finding. */
struct walk {
	uint32_t number[UNITS]; /* of the block that begins there, from 1 */
	uint32_t queue[UNITS];
	uint32_t count;
	uint64_t words[UNITS * UNIT / sizeof(uint64_t)];
	size_t nwords;
};

/* A pointer into a live block becomes the block's number and the offset. */
static uint64_t canonical(struct walk *w, uint64_t word)
{
	const unsigned char *at = (const unsigned char *)(uintptr_t)word;
	uint32_t first;

	if (!in_arena(at))
		return word;
	if (unit_of(at) >= arena->used || !arena->owner[unit_of(at)])
		return 1; /* a pointer that leads nowhere */
	first = arena->owner[unit_of(at)] - 1;
	if (!w->number[first]) {
		w->queue[w->count++] = first;
		w->number[first] = w->count;
	}
	return (uint64_t)w->number[first] << 32 |
	       (uint32_t)(at - arena->bytes[first]);
}

static void add_block(struct walk *w, uint32_t first)
{
	size_t n = arena->size[first] * (size_t)UNIT / sizeof(uint64_t);

	for (size_t i = 0; i < n; i++) {
		uint64_t word;

		memcpy(&word, arena->bytes[first] + i * sizeof(word),
		       sizeof(word));
		w->words[w->nwords++] = canonical(w, word);
	}
}

uint64_t arena_digest(const void *root)
{
	static struct walk w;

	for (uint32_t i = 0; i < w.count; i++)
		w.number[w.queue[i]] = 0;
	w.count = 0;
	w.nwords = 0;
	canonical(&w, (uintptr_t)root);
	for (uint32_t i = 0; i < w.count; i++)
		add_block(&w, w.queue[i]);
	return XXH3_64bits(w.words, w.nwords * sizeof(w.words[0]));
}
