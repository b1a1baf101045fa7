/* SPDX-License-Identifier: BSD-3-Clause */
/* Says how many ranks each node of the floor program has. */
#include "floor.h"

#include <stdio.h>

bool floor_layout(const struct floor_options *o, uint32_t *first)
{
	uint32_t left = floor_size(o) - o->nodes, most = floor_most(o);

	first[0] = 0;
	for (uint32_t i = 0; i < o->nodes; i++) {
		uint32_t more = left < most - 1 ? left : most - 1;

		first[i + 1] = first[i] + 1 + more;
		left -= more;
	}
	if (left)
		fprintf(stderr, "floor: %u nodes of %u ranks do not hold %u x "
			"%u\n", o->nodes, most, o->nodes, o->ranks);
	return left == 0;
}
