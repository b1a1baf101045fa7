/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * PMI_hwloc_xmlfile: where the node's topology lies as a file, so that its ranks need
 * not each find it out. The host makes the file when the first rank asks, and says
 * how long that may take.
 */
#include <stdlib.h>
#include <string.h>

#include <utlist.h>

#include "libengine/engine.h"
#include "libengine/rank.h"
#include "libengine/request.h"

#define UNAVAILABLE "unavailable" /* clients take this value as "no file" */

/* A request for it, while the host has not answered. */
struct topology_wait {
	struct topology_wait *prev, *next;
	struct rank_session *ss;
	struct rank_request rq;
};

static void answer(struct rank_session *ss, const struct rank_request *rq)
{
	const char *path = ss->server->topology.path;

	if (!path)
		path = UNAVAILABLE;
	answer_found(ss, rq, path, strlen(path));
}

static void remove_wait(struct pmi_server *s, struct topology_wait *wait)
{
	DL_DELETE(s->topology.waits, wait);
	wait->ss->waits--;
	free(wait);
}

/* Alone on its node a rank would wait for no less work than its own. */
static bool is_shared(const struct pmi_server *s)
{
	return s->nslots > 1 && s->ops->topology_wanted;
}

bool topology_want(struct pmi_server *s)
{
	if (s->topology.answered || !is_shared(s))
		return false;
	if (!s->topology.wanted)
		s->ops->topology_wanted(s->arg);
	s->topology.wanted = true;
	return true;
}

static void wait_for_host(struct rank_session *ss, const struct rank_request *rq)
{
	struct pmi_server *s = ss->server;
	struct topology_wait *wait;

	if (!rank_may_wait(ss, rq))
		return;
	wait = calloc(1, sizeof(*wait));
	if (!wait) {
		answer(ss, rq);
		return;
	}
	wait->ss = ss;
	wait->rq = *rq;
	ss->waits++;
	DL_APPEND(s->topology.waits, wait);
	(void)topology_want(s);
}

bool topology_get(struct rank_session *ss, const struct rank_request *rq,
		  const struct pmi_field *key)
{
	const struct pmi_server *s = ss->server;

	if (strcmp(key->value, TOPOLOGY_KEY))
		return false;
	if (s->topology.answered || !is_shared(s))
		answer(ss, rq);
	else
		wait_for_host(ss, rq);
	return true;
}

void topology_drop(struct rank_session *ss)
{
	struct topology_wait *wait, *next;

	DL_FOREACH_SAFE(ss->server->topology.waits, wait, next)
		if (wait->ss == ss)
			remove_wait(ss->server, wait);
}

void topology_known(struct pmi_server *s, const char *path)
{
	struct topology_wait *wait, *next;

	s->topology.answered = true;
	if (path) {
		free(s->topology.path);
		s->topology.path = strdup(path);
	}
	DL_FOREACH_SAFE(s->topology.waits, wait, next) {
		answer(wait->ss, &wait->rq);
		remove_wait(s, wait);
	}
}
