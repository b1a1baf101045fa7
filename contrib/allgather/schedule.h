/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The schedule of an allgather over a ring of n places: which place sends which bytes
 * in which step.
 *
 * Every place starts with its own block, which travels in both directions at
 * once. In step s a place sends to the right the block that has come s places
 * from the left, and to the left the one that has come s places from the right;
 * so after n/2 steps (rounded down) everybody has everything. With an even n
 * the block of the opposite place would come from both sides in the last step:
 * one half comes from each.
 *
 * Pure arithmetic: no system call, no state.
 */
#pragma once

#include <stdint.h>

#include "transport.h"

/* Which bytes of a block. */
struct schedule_range {
	uint64_t first, end;
};

/* Steps for n places (n > 0); the first is step 0. */
uint32_t schedule_steps(uint32_t n);

/* The block that `place` sends to that side in a step, as its owner's place. */
uint32_t schedule_sends(uint32_t n, uint32_t place, enum ring_side side,
			uint32_t step);

/* The block that `place` gets from that side in a step. */
uint32_t schedule_receives(uint32_t n, uint32_t place, enum ring_side side,
			   uint32_t step);

/*
 * The bytes of a block of `total` bytes that travel in a step towards `side`
 * (that is: sent to it, or received from the other one).
 */
struct schedule_range schedule_bytes(uint32_t n, enum ring_side towards,
				     uint32_t step, uint64_t total);
