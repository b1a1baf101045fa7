/* SPDX-License-Identifier: BSD-3-Clause */
/* News of a spawned step's ranks for srun: the first one has started, or one has ended. */
#include "libengine/engine.h"
#include "libengine/rank.h"
#include "libengine/request.h"

void engine_started(struct pmi_server *s, const struct rank_session *ss)
{
	engine_event(s, PMI_EVENT_INIT, ss->slot, 0, 0);
	engine_use(s);
	if (ss->rank == 0 && s->step->spawned && !s->ready) {
		s->ready = true;
		requests_ready(s, NULL);
	}
}

/*
 * Reports an end in a spawned step: its spawners wait until its first rank starts, and
 * may then connect with all. They must hear of it also where nobody has used PMI yet.
 */
void engine_tell_spawner(struct rank_session *ss, bool well)
{
	struct pmi_server *s = ss->server;

	if (!s->used)
		engine_use(s);
	requests_ended(ss);
	if (ss->rank || s->ready)
		return;
	s->ready = true;
	requests_ready(s, well ? NULL : ss->why);
}
