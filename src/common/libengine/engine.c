/* SPDX-License-Identifier: BSD-3-Clause */
/* Questions of all files of the engine to its object. */
#include "libengine/engine.h"

const char *engine_node_name(const struct pmi_server *s)
{
	const struct pmi_step *step = s->step;

	return step->node_names[layout_node_id(step->layout, step->position)];
}

int engine_appnum(const struct pmi_server *s, uint32_t rank)
{
	const struct pmi_step *step = s->step;
	uint32_t end = 0;

	for (uint32_t i = 0; step->app_sizes && i < step->napps; i++) {
		end += step->app_sizes[i];
		if (rank < end)
			return step->app_numbers ? (int)step->app_numbers[i] : (int)i;
	}
	return step->spawned ? 0 : -1;
}

void engine_defer(struct pmi_server *s, enum deferred work)
{
	s->deferred |= 1u << work;
}

bool engine_is_deferred(const struct pmi_server *s, enum deferred work)
{
	return s->deferred & 1u << work;
}

bool engine_take_deferred(struct pmi_server *s, enum deferred work)
{
	bool was = engine_is_deferred(s, work);

	s->deferred &= ~(1u << work);
	return was;
}

bool engine_notices(struct pmi_server *s, enum notice notice)
{
	bool first = !(s->noticed & 1u << notice);

	s->noticed |= 1u << notice;
	return first;
}

void engine_use(struct pmi_server *s)
{
	bool first = !s->used;

	s->used = true;
	s->leaving = false;
	if (first)
		s->ops->links_wanted(s->arg);
}
