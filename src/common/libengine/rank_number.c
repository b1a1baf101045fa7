/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The number that a program of PMI-1 takes from PMI_RANK in its environment: no message of
 * PMI-1 has the number of a rank. Two ranks with one number wait for each other in MPI, where
 * nobody sees it.
 */
#include <stdio.h>

#include "libengine/engine.h"
#include "libengine/pending.h"
#include "libengine/rank.h"
#include "libengine/request.h"

#define NODES_NOTED 4 /* whose ranks srun names; the others are in their logs */

static bool uses_number(const struct rank_session *ss, uint32_t number)
{
	return ss->numbered && ss->number == number && ss->state == RANK_ACTIVE;
}

static const struct rank_session *find_double(const struct rank_session *ss)
{
	const struct pmi_server *s = ss->server;

	for (uint32_t i = 0; i < s->nslots; i++)
		if (&s->sessions[i] != ss && uses_number(&s->sessions[i], ss->number))
			return &s->sessions[i];
	return NULL;
}

static void end_doubles(struct rank_session *ss, const struct rank_session *other)
{
	char text[ANSWER_TEXT_MAX];

	snprintf(text, sizeof(text),
		 "ranks %u and %u (node %.64s): the programs of both have PMI_RANK=%u in the environment, so each takes itself for rank %u: no script may set PMI_RANK",
		 ss->rank < other->rank ? ss->rank : other->rank,
		 ss->rank < other->rank ? other->rank : ss->rank,
		 engine_node_name(ss->server), ss->number, ss->number);
	collective_end_step(ss->server, text, text);
}

/* Ranks whose numbers a script exchanges can work. */
static void note_other_number(struct rank_session *ss)
{
	struct pmi_server *s = ss->server;
	char text[ANSWER_TEXT_MAX];

	if (!engine_notices(s, NOTICE_OTHER_NUMBER))
		return;
	snprintf(text, sizeof(text),
		 "rank %u (node %.64s): its program has PMI_RANK=%u in the environment, and takes itself for rank %u: a step with two such programs hangs, so no script should set PMI_RANK",
		 ss->rank, engine_node_name(s), ss->number, ss->number);
	if (s->step->position < NODES_NOTED)
		requests_note(s, text);
	else
		log_error(s->log, "%s", text);
}

void rank_look_at_number(struct rank_session *ss)
{
	struct pmi_server *s = ss->server;
	const struct rank_session *other;

	ss->numbered = s->ops->pmi_rank && ss->owner &&
		       s->ops->pmi_rank(s->arg, ss->owner, &ss->number);
	if (!ss->numbered)
		return;
	other = find_double(ss);
	if (other)
		end_doubles(ss, other);
	else if (ss->number != ss->rank)
		note_other_number(ss);
}
