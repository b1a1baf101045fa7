/* SPDX-License-Identifier: BSD-3-Clause */
/* Chains of what determined a time. */
#include "path.h"

#include <stdlib.h>

struct path *path_new(uint32_t position, uint32_t rank, sim_time at,
		      struct path *from)
{
	struct path *p = malloc(sizeof(*p));

	if (!p)
		return NULL;
	if (from && from->steps >= PATH_STEPS_MAX)
		from = NULL;
	p->refs = 1;
	p->steps = from ? from->steps + 1 : 1;
	p->position = position;
	p->rank = rank;
	p->at = at;
	p->from = path_ref(from);
	return p;
}

struct path *path_ref(struct path *p)
{
	if (p)
		p->refs++;
	return p;
}

void path_unref(struct path *p)
{
	while (p && --p->refs == 0) {
		struct path *from = p->from;

		free(p);
		p = from;
	}
}

uint32_t path_steps_since(const struct path *p, sim_time since)
{
	uint32_t n = 0;

	for (; p && p->at >= since; p = p->from)
		n++;
	return n;
}
