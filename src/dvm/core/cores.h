/* SPDX-License-Identifier: BSD-3-Clause */
/* Sets of a node's cores (or GPUs), by number from 0. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define DVM_CORES_MAX 1024 /* of a node: hardware threads, where those are slots */
#define DVM_CORES_WORDS (DVM_CORES_MAX / 64)

struct dvm_cores {
	uint64_t words[DVM_CORES_WORDS];
};

static inline bool cores_has(const struct dvm_cores *c, uint32_t i)
{
	return c->words[i / 64] >> i % 64 & 1;
}

static inline void cores_add(struct dvm_cores *c, uint32_t i)
{
	c->words[i / 64] |= UINT64_C(1) << i % 64;
}

static inline void cores_remove(struct dvm_cores *c, uint32_t i)
{
	c->words[i / 64] &= ~(UINT64_C(1) << i % 64);
}

/* The first number at or after `from`; DVM_CORES_MAX: none. */
uint32_t cores_next(const struct dvm_cores *c, uint32_t from);
uint32_t cores_count(const struct dvm_cores *c);
/* True: all of `b` are in `a`. */
bool cores_contain(const struct dvm_cores *a, const struct dvm_cores *b);
void cores_add_all(struct dvm_cores *c, const struct dvm_cores *more);
void cores_remove_all(struct dvm_cores *c, const struct dvm_cores *less);
/* Fill the set with 0 to count - 1. */
void cores_fill(struct dvm_cores *c, uint32_t count);
/* Move the `count` lowest of `from`, which has as many, to `to`. */
void cores_move(struct dvm_cores *to, struct dvm_cores *from, uint32_t count);
