/* SPDX-License-Identifier: BSD-3-Clause */
/* Ranks of the node as clients of PMIx: which there are, which are missed, and their ends. */
#include <stdio.h>
#include <stdlib.h>

#include "libengine/engine.h"
#include "libengine/pending.h"
#include "libengine/pmix_bridge.h"
#include "libengine/rank.h"
#include "libengine/request.h"
#include "libpmi/status.h"
#include "libutil/rankset.h"

#define LATE_LIST_MAX 256 /* bytes of a list of ranks */

static int by_rank(const void *a, const void *b)
{
	const uint32_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

const uint32_t *pmix_find_rank(const uint32_t *ranks, uint32_t count, uint32_t rank)
{
	return bsearch(&rank, ranks, count, sizeof(*ranks), by_rank);
}

struct rank_session *pmix_own_rank(const struct pmi_server *s, uint32_t rank)
{
	uint32_t count;
	const uint32_t *ranks = layout_ranks_at(s->step->layout, s->step->position,
						&count);
	const uint32_t *at = pmix_find_rank(ranks, count, rank);

	return at ? &s->sessions[at - ranks] : NULL;
}

struct rank_session *pmix_rank_of(struct pmi_server *s, const struct pmix_msg *m)
{
	struct rank_session *ss = pmix_own_rank(s, m->rank);

	if (!ss)
		log_error(s->log, "ignored a message of pmi2x-pmixd of node %s about rank %u, which runs on another node",
			  engine_node_name(s), m->rank);
	return ss;
}

void pmix_lose_rank(struct rank_session *ss, const char *why)
{
	struct pmi_server *s = ss->server;

	ss->pmix = RANK_PMIX_LOST;
	requests_drop(ss, true);
	coll_rank_gone(s->coll, ss->slot, COLL_OF_PMIX, why);
}

void pmix_rank_gone(struct rank_session *ss)
{
	const struct pmix_msg m = {
		.type = PMIX_MSG_GONE, .rank = ss->rank, .text = ss->why,
		.number = ss->pmix == RANK_PMIX_ACTIVE && !ss->server->ops->end_step,
		.text_len = pmix_text_len(ss->why),
	};

	if (ss->pmix != RANK_PMIX_FINALIZED)
		pmix_send_message(ss->server, &m, NULL);
}

const struct rank_session *pmix_find_client(const struct pmi_server *s)
{
	for (uint32_t i = 0; i < s->nslots; i++)
		if (s->sessions[i].pmix == RANK_PMIX_ACTIVE && !s->sessions[i].ended)
			return &s->sessions[i];
	return NULL;
}

/* The number of the latest program that a rank of this node runs. */
static uint32_t latest_series(const struct pmi_server *s)
{
	uint32_t latest = 0;

	for (uint32_t i = 0; i < s->nslots; i++)
		if (s->sessions[i].pmix == RANK_PMIX_ACTIVE && !s->sessions[i].ended &&
		    coll_series(s->coll, i) > latest)
			latest = coll_series(s->coll, i);
	return latest;
}

/* How many programs the rank that runs the latest one has started. */
static uint32_t most_programs(const struct pmi_server *s)
{
	uint32_t most = 0;

	for (uint32_t i = 0; i < s->nslots; i++)
		if (s->sessions[i].pmix == RANK_PMIX_ACTIVE && !s->sessions[i].ended &&
		    s->sessions[i].pmix_programs > most)
			most = s->sessions[i].pmix_programs;
	return most;
}

/*
 * A rank that has ended before it started the program that others run. A program that
 * has entered no fence begins no series, so their number counts, too.
 */
static const struct rank_session *find_missed(const struct pmi_server *s)
{
	uint32_t latest = latest_series(s), most = most_programs(s);

	for (uint32_t i = 0; i < s->nslots; i++) {
		const struct rank_session *ss = &s->sessions[i];

		if (ss->unstarted || (ss->ended && (coll_series(s->coll, i) < latest ||
						    ss->pmix_programs < most)))
			return ss;
	}
	return NULL;
}

/* Other ranks may wait for this one in MPI, and never enter a fence. */
void pmix_rank_failed(struct rank_session *ss, bool known)
{
	struct pmi_server *s = ss->server;

	ss->failed = known;
	if (s->ops->end_step && (ss->pmix == RANK_PMIX_ACTIVE ||
				 (known && ss->unstarted && pmix_find_client(s))))
		collective_report(s, ss->why, ss->why);
}

bool pmix_is_late(const struct rank_session *ss)
{
	return ss->pmix == RANK_PMIX_NONE && !ss->ended;
}

/* Live ranks that have not started PMIx, into `ranks` (NULL: count only). */
static uint32_t list_late(const struct pmi_server *s, uint32_t *ranks)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < s->nslots; i++) {
		if (!pmix_is_late(&s->sessions[i]))
			continue;
		if (ranks)
			ranks[count] = s->sessions[i].rank;
		count++;
	}
	return count;
}

bool pmix_misses_rank(const struct pmi_server *s)
{
	return s->pmix.service >= PMIX_SERVICE_HERE && pmix_find_client(s) && (find_missed(s) || list_late(s, NULL));
}

/* All ranks that have not started PMIx use PMI. */
static bool late_use_pmi(const struct pmi_server *s)
{
	for (uint32_t i = 0; i < s->nslots; i++)
		if (pmix_is_late(&s->sessions[i]) && s->sessions[i].state != RANK_ACTIVE)
			return false;
	return true;
}

static void tell_late(const struct pmi_server *s, unsigned seconds,
		      char text[PMI_WAIT_TEXT_MAX])
{
	uint32_t *ranks = calloc(s->nslots, sizeof(*ranks));
	uint32_t count = ranks ? list_late(s, ranks) : 0;
	const char *what = late_use_pmi(s) ?
		"started PMI, not PMIx: " STATUS_ONE_INTERFACE : "not started PMIx";
	char list[LATE_LIST_MAX];

	if (count) {
		rankset_format(ranks, count, list, sizeof(list));
		snprintf(text, PMI_WAIT_TEXT_MAX,
			 "PMIx on node %s: %u s, clients may wait: rank%s %s %s %s",
			 engine_node_name(s), seconds, count > 1 ? "s" : "", list,
			 count > 1 ? "have" : "has", what);
	}
	free(ranks);
}

void pmix_tell_wait(const struct pmi_server *s, unsigned seconds,
		    char text[PMI_WAIT_TEXT_MAX])
{
	const struct rank_session *missed;

	if (!pmix_misses_rank(s))
		return;
	missed = find_missed(s);
	if (!missed) {
		tell_late(s, seconds, text);
		return;
	}
	snprintf(text, PMI_WAIT_TEXT_MAX,
		 "PMIx on node %s: %u s, clients may wait in a fence of all ranks: %s",
		 engine_node_name(s), seconds, missed->why);
}
