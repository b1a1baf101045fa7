/* SPDX-License-Identifier: BSD-3-Clause */
/* The state of a rank's session of PMI, without what depends on it. */
#include <stdio.h>

#include "libengine/engine.h"
#include "libengine/rank.h"

bool rank_is_live(const struct rank_session *ss)
{
	return IN(ss->state) & IN_LIVE;
}

/* The state of a session; if that is over, its last state before. */
static enum rank_state last_state(const struct rank_session *ss)
{
	return ss->state == RANK_GONE ? ss->before : ss->state;
}

bool rank_is_unused(const struct rank_session *ss)
{
	enum rank_state state = last_state(ss);

	return state == RANK_ABSENT || state == RANK_FRESH;
}

bool rank_is_finalized(const struct rank_session *ss)
{
	bool left_pmix = ss->pmix == RANK_PMIX_FINALIZED;

	if (last_state(ss) == RANK_FINALIZED)
		return left_pmix || ss->pmix == RANK_PMIX_NONE;
	return left_pmix && rank_is_unused(ss);
}

size_t rank_room(const struct rank_session *ss)
{
	size_t used = ss->pending.len + ss->in_flight;

	return used < PMI_PENDING_MAX ? PMI_PENDING_MAX - used : 0;
}

void rank_fail(struct rank_session *ss, const char *why)
{
	struct pmi_server *s = ss->server;

	if (!rank_is_live(ss))
		return;
	snprintf(ss->pmi_why, sizeof(ss->pmi_why), "rank %u (node %s) %s", ss->rank,
		 engine_node_name(s), why);
	log_error(s->log, "%s; its PMI connection is closed", ss->pmi_why);
	ss->state = RANK_CLOSING;
	engine_defer(s, DEFER_LEAVE);
	s->ops->client_close(s->arg, ss->slot);
}
