/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The atomic operations of the ledger. A test that tries all orders of them compiles the
 * ledger with LEND_EXPLORE, and has these functions itself.
 */
#ifndef PMI2X_LEND_CORE_ATOMICS_H
#define PMI2X_LEND_CORE_ATOMICS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

typedef _Atomic uint32_t lend_word;

#ifdef LEND_EXPLORE
uint32_t word_load(lend_word *word);
void word_store(lend_word *word, uint32_t value);
void word_add(lend_word *word, uint32_t value);
/* False: the word is not `from`, which becomes what it is. */
bool word_swap(lend_word *word, uint32_t *from, uint32_t to);
#else
static inline uint32_t word_load(lend_word *word)
{
	return atomic_load(word);
}

static inline void word_store(lend_word *word, uint32_t value)
{
	atomic_store(word, value);
}

static inline void word_add(lend_word *word, uint32_t value)
{
	atomic_fetch_add(word, value);
}

static inline bool word_swap(lend_word *word, uint32_t *from, uint32_t to)
{
	return atomic_compare_exchange_strong(word, from, to);
}
#endif

#endif
