/* SPDX-License-Identifier: BSD-3-Clause */
/* Ends of a rank's program, of its session of PMI, and of the rank. */
#include <stdio.h>

#include "libengine/engine.h"
#include "libengine/pending.h"
#include "libengine/pmix_bridge.h"
#include "libengine/rank.h"
#include "libengine/request.h"

void rank_drop(struct rank_session *ss)
{
	collective_drop(ss);
	requests_drop(ss, false);
	fetch_drop(ss);
	attrs_drop(ss);
	topology_drop(ss);
	spawn_free(ss->spawn);
	ss->spawn = NULL;
	ss->skip_spawns = false;
	ss->put += ss->pending.len;
	buf_free(&ss->pending);
}

void rank_restart(struct rank_session *ss)
{
	rank_drop(ss);
	ss->extension = 0;
	ss->slot_use = RANK_SLOT_NONE;
	ss->finalized = false;
	payload_vec_clear(&ss->kept); /* puts of the program before */
	ss->kept_cut = false;
	ss->protocol = PMI_PROTOCOL_NONE;
}

/* Values that a rank has put before it finalized can still be fetched. */
static void keep_pending(struct rank_session *ss)
{
	struct payload *records;

	if (!ss->finalized || !ss->pending.len)
		return;
	ss->put += ss->pending.len;
	records = payload_take(&ss->pending);
	fetch_keep(ss, records);
	payload_unref(records);
}

/*
 * A finalized session is told to libcoll only when its connection ends and not when it
 * finalizes: another program of the rank may still send init on the same connection and
 * take part in later collectives, and for libcoll a rank that is gone stays
 * gone. So who fences while another rank has finalized, but lives on and never
 * comes back, waits until that rank's connection or process ends.
 */
static void close_pmi(struct rank_session *ss)
{
	ss->before = ss->state;
	ss->state = RANK_GONE;
	ss->server->leaving = true;
	keep_pending(ss);
	rank_drop(ss);
	buf_free(&ss->input);
	buf_free(&ss->aside);
}

/* How the rank left what it used last; nothing when that is known better. */
static void describe_end(const struct rank_session *ss, const char *how,
			 char why[WHY_MAX])
{
	bool unused = rank_is_unused(ss);
	bool unstarted = unused && ss->pmix == RANK_PMIX_NONE;
	bool pmix = unused || ss->pmix == RANK_PMIX_ACTIVE ||
		    ss->pmix == RANK_PMIX_LOST;

	if (why[0])
		return;
	snprintf(why, WHY_MAX, "rank %u (node %s) %s %s %s", ss->rank,
		 engine_node_name(ss->server), how,
		 unstarted ? "without starting" :
		 rank_is_finalized(ss) ? "after finalizing" : "without finalizing",
		 pmix && !unstarted ? "PMIx" : "PMI");
}

/* PMIx, which the rank may still use, is none of its business. */
void rank_leave_pmi(struct rank_session *ss, const char *how)
{
	struct pmi_server *s = ss->server;
	bool finalized = ss->state == RANK_FINALIZED;

	if (ss->state == RANK_GONE)
		return;
	if (!ss->pmi_why[0] && ss->why[0])
		snprintf(ss->pmi_why, sizeof(ss->pmi_why), "%s", ss->why);
	else if (!ss->pmi_why[0])
		snprintf(ss->pmi_why, sizeof(ss->pmi_why), "rank %u (node %s) %s %s PMI",
			 ss->rank, engine_node_name(s), how,
			 rank_is_unused(ss) ? "without starting" :
			 finalized ? "after finalizing" : "without finalizing");
	close_pmi(ss);
	coll_rank_gone(s->coll, ss->slot, COLL_OF_PMI, ss->pmi_why);
	fetch_rank_gone(ss);
	attrs_fail_hopeless(s);
}

/* If PMI has ended before, that end's reason is the one for PMI's collectives. */
void rank_end(struct rank_session *ss, const char *how)
{
	struct pmi_server *s = ss->server;

	if (ss->ended)
		return;
	ss->ended = true;
	ss->unstarted = rank_is_unused(ss) && ss->pmix == RANK_PMIX_NONE;
	s->unstarted += ss->unstarted;
	describe_end(ss, how, ss->why);
	if (ss->state == RANK_CLOSING)
		rank_leave_pmi(ss, how);
	if (ss->state != RANK_GONE) {
		snprintf(ss->pmi_why, sizeof(ss->pmi_why), "%s", ss->why);
		close_pmi(ss);
	}
	requests_drop(ss, true);
	pmix_rank_gone(ss);
	coll_rank_gone(s->coll, ss->slot, COLL_OF_ALL, ss->why);
	fetch_rank_gone(ss);
	attrs_fail_hopeless(s);
}
