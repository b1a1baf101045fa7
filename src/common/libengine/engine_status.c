/* SPDX-License-Identifier: BSD-3-Clause */
/* Reports of a node's engine on its status, and giving up on waiting. */
#include <errno.h>
#include <stdlib.h>

#include "libcoll/subset.h"
#include "libengine/engine.h"
#include "libengine/pending.h"
#include "libengine/pmix_bridge.h"
#include "libengine/rank.h"
#include "libengine/request.h"
#include "libpmi/status.h"

static const enum status_phase PHASES[] = {
	[RANK_ABSENT] = STATUS_ABSENT,
	[RANK_FRESH] = STATUS_FRESH,
	[RANK_HANDSHAKE] = STATUS_STARTING,
	[RANK_ACTIVE] = STATUS_ACTIVE,
	[RANK_FINALIZED] = STATUS_FINALIZED,
	[RANK_CLOSING] = STATUS_GONE,
	[RANK_GONE] = STATUS_GONE,
};

/* Phases of a rank that uses PMIx only. */
static const enum status_phase PMIX_PHASES[] = {
	[RANK_PMIX_ACTIVE] = STATUS_ACTIVE,
	[RANK_PMIX_FINALIZED] = STATUS_FINALIZED,
	[RANK_PMIX_LOST] = STATUS_GONE,
};

/*
 * A rank that has left PMI may still start PMIx; where others of its node use that, it has
 * not begun.
 */
static enum status_phase phase_of(const struct rank_session *ss)
{
	if (ss->ended)
		return STATUS_GONE;
	if (ss->state == RANK_ACTIVE && ss->pmix == RANK_PMIX_NONE)
		return STATUS_IN_PMI;
	if (ss->pmix == RANK_PMIX_ACTIVE && rank_is_unused(ss))
		return STATUS_IN_PMIX;
	if (pmix_is_late(ss) && pmix_misses_rank(ss->server))
		return ss->state == RANK_ABSENT ? STATUS_ABSENT : STATUS_FRESH;
	if (ss->pmix == RANK_PMIX_ACTIVE || (ss->pmix && rank_is_unused(ss)))
		return PMIX_PHASES[ss->pmix];
	if (ss->state == RANK_GONE && ss->before != RANK_ACTIVE)
		return PHASES[ss->before];
	return PHASES[ss->state];
}

static void add_session(struct pmi_server *s, const struct rank_session *ss,
			bool stopped, struct node_status *out)
{
	struct status_run rank = {
		.first = ss->rank,
		.last = ss->rank,
		.phase = phase_of(ss),
		.stopped = stopped,
	};

	for (int kind = 0; kind < COLL_KINDS; kind++)
		rank.entered[kind] = coll_entered(s->coll, kind, ss->slot);
	status_add_rank(out, &rank);
	out->requests += ss->waits;
}

int pmi_server_status(struct pmi_server *s,
		      bool (*stopped)(void *arg, uint32_t slot), void *arg,
		      struct node_status *out)
{
	*out = (struct node_status){ 0 };
	out->runs = calloc(s->nslots + 1, sizeof(*out->runs));
	if (!out->runs)
		return -ENOMEM;
	pmi_server_slots_input(s); /* take the entries that are in the slots */
	for (uint32_t i = 0; i < s->nslots; i++)
		add_session(s, &s->sessions[i], stopped(arg, i), out);
	for (int kind = 0; kind < COLL_KINDS; kind++)
		out->ended[kind] = coll_ended(s->coll, kind);
	return 0;
}

/* For something else than what libpmix does with the clients of this node. */
static bool waits_outside(const struct pmi_server *s)
{
	return pmi_server_expires(s) || s->requests || pmix_misses_rank(s) ||
	       coll_subsets_in_flight(s->coll);
}

bool pmi_server_waits(const struct pmi_server *s)
{
	return waits_outside(s) || pmix_some_ask(s);
}

bool pmi_server_expires(const struct pmi_server *s)
{
	return pmi_server_pending(s) || s->attr_waits;
}

uint64_t pmi_server_ended(const struct pmi_server *s)
{
	uint64_t sum = coll_subsets_ended(s->coll) + s->attr_waits_ended +
		       s->requests_ended;

	for (int kind = 0; kind < COLL_KINDS; kind++)
		sum += coll_ended(s->coll, kind);
	if (!waits_outside(s)) /* a wait in libpmix has ended, or another one begins */
		sum += s->pmix.asks_told;
	return sum;
}

void pmi_server_tell_wait(struct pmi_server *s, unsigned seconds,
			  char text[PMI_WAIT_TEXT_MAX])
{
	text[0] = '\0';
	group_tell_wait(s, seconds, text);
	if (!text[0])
		attrs_tell_wait(s, seconds, text);
	if (!text[0])
		pmix_tell_wait(s, seconds, text);
	if (!text[0])
		requests_tell_wait(s, seconds, text);
	if (!text[0])
		pmix_tell_asks(s, seconds, text);
}

void pmi_server_tell_own_wait(struct pmi_server *s, unsigned seconds,
			      char text[PMI_WAIT_TEXT_MAX])
{
	text[0] = '\0';
	group_tell_own_wait(s, seconds, text);
}

void pmi_server_expire(struct pmi_server *s, enum coll_kind kind, uint32_t seq,
		       const char *why)
{
	coll_expire(s->coll, kind, seq, why);
	pmi_server_slots_input(s);
}

void pmi_server_expire_all(struct pmi_server *s, const char *why)
{
	for (int kind = 0; kind < COLL_KINDS; kind++)
		pmi_server_expire(s, kind, coll_ended(s->coll, kind), why);
	coll_expire_subsets(s->coll, why);
	attrs_expire(s, why);
	pmi_server_slots_input(s);
}
