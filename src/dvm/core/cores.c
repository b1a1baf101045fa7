/* SPDX-License-Identifier: BSD-3-Clause */
/* Sets of small numbers as bits. */
#include "dvm/core/cores.h"

uint32_t cores_next(const struct dvm_cores *c, uint32_t from)
{
	uint32_t word = from / 64;
	uint64_t bits;

	if (from >= DVM_CORES_MAX)
		return DVM_CORES_MAX;
	bits = c->words[word] >> from % 64 << from % 64;
	while (!bits && ++word < DVM_CORES_WORDS)
		bits = c->words[word];
	return bits ? word * 64 + (uint32_t)__builtin_ctzll(bits) :
		      DVM_CORES_MAX;
}

uint32_t cores_count(const struct dvm_cores *c)
{
	uint32_t n = 0;

	for (int i = 0; i < DVM_CORES_WORDS; i++)
		n += (uint32_t)__builtin_popcountll(c->words[i]);
	return n;
}

bool cores_contain(const struct dvm_cores *a, const struct dvm_cores *b)
{
	for (int i = 0; i < DVM_CORES_WORDS; i++)
		if (b->words[i] & ~a->words[i])
			return false;
	return true;
}

void cores_add_all(struct dvm_cores *c, const struct dvm_cores *more)
{
	for (int i = 0; i < DVM_CORES_WORDS; i++)
		c->words[i] |= more->words[i];
}

void cores_remove_all(struct dvm_cores *c, const struct dvm_cores *less)
{
	for (int i = 0; i < DVM_CORES_WORDS; i++)
		c->words[i] &= ~less->words[i];
}

void cores_fill(struct dvm_cores *c, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		cores_add(c, i);
}

void cores_move(struct dvm_cores *to, struct dvm_cores *from, uint32_t count)
{
	for (uint32_t i = cores_next(from, 0); count; count--) {
		cores_add(to, i);
		cores_remove(from, i);
		i = cores_next(from, i + 1);
	}
}
