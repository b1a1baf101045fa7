/* SPDX-License-Identifier: BSD-3-Clause */
/* The arithmetic of the ring: places, steps, halves. */
#include "schedule.h"

uint32_t schedule_steps(uint32_t n)
{
	return n / 2;
}

/* The place that is `distance` (at most n) places away on that side. */
static uint32_t away(uint32_t n, uint32_t place, enum ring_side side,
		     uint32_t distance)
{
	return (place + (side == SIDE_RIGHT ? distance : n - distance)) % n;
}

uint32_t schedule_sends(uint32_t n, uint32_t place, enum ring_side side,
			uint32_t step)
{
	return away(n, place, other_side(side), step);
}

uint32_t schedule_receives(uint32_t n, uint32_t place, enum ring_side side,
			   uint32_t step)
{
	return away(n, place, side, step + 1);
}

struct schedule_range schedule_bytes(uint32_t n, enum ring_side towards,
				     uint32_t step, uint64_t total)
{
	struct schedule_range whole = { 0, total };
	uint64_t half = total - total / 2;

	if (n % 2 || step + 1 < schedule_steps(n))
		return whole;
	if (towards == SIDE_RIGHT)
		whole.end = half;
	else
		whole.first = half;
	return whole;
}
