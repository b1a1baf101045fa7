/* SPDX-License-Identifier: BSD-3-Clause */
/* Sets of cores as words of bits. */
#include "lend/cores.h"

#include <stdio.h>
#include <string.h>

#define WORDS (LEND_CORES_MAX / LEND_WORD_BITS)
#define ENDING "..."

uint32_t lend_cores_count(const struct lend_cores *set)
{
	uint32_t n = 0;

	for (size_t i = 0; i < WORDS; i++)
		n += (uint32_t)__builtin_popcountll(set->words[i]);
	return n;
}

bool lend_cores_overlap(const struct lend_cores *a, const struct lend_cores *b)
{
	for (size_t i = 0; i < WORDS; i++)
		if (a->words[i] & b->words[i])
			return true;
	return false;
}

void lend_cores_join(struct lend_cores *set, const struct lend_cores *other)
{
	for (size_t i = 0; i < WORDS; i++)
		set->words[i] |= other->words[i];
}

void lend_cores_add(struct lend_cores *set, uint32_t core)
{
	if (core < LEND_CORES_MAX)
		set->words[core / LEND_WORD_BITS] |= 1ull << core % LEND_WORD_BITS;
}

static bool has(const struct lend_cores *set, uint32_t core)
{
	return core < LEND_CORES_MAX &&
	       (set->words[core / LEND_WORD_BITS] >> core % LEND_WORD_BITS & 1);
}

void lend_cores_text(const struct lend_cores *set, char *out, size_t size)
{
	char range[24];
	size_t used = 0;

	out[0] = '\0';
	for (uint32_t first = 0, last; first < LEND_CORES_MAX; first = last + 1) {
		last = first;
		if (!has(set, first))
			continue;
		while (has(set, last + 1))
			last++;
		snprintf(range, sizeof(range), last > first ? "%s%u-%u" : "%s%u",
			 used ? "," : "", first, last);
		if (used + strlen(range) + sizeof(ENDING) > size) {
			strcpy(out + used, ENDING);
			return;
		}
		used += (size_t)sprintf(out + used, "%s", range);
	}
}
