/* SPDX-License-Identifier: BSD-3-Clause */
/* What the engine of a node tells about its state, and giving up on waiting. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libpmi/server_private.h"
#include "libpmi/state.h"

static const enum state_phase PHASES[] = {
	[SESSION_ABSENT] = STATE_ABSENT,
	[SESSION_FRESH] = STATE_FRESH,
	[SESSION_HANDSHAKE] = STATE_STARTING,
	[SESSION_ACTIVE] = STATE_ACTIVE,
	[SESSION_FINALIZED] = STATE_FINALIZED,
	[SESSION_CLOSING] = STATE_GONE,
	[SESSION_GONE] = STATE_GONE,
};

static void add_session(struct pmi_server *s, struct session *ss, bool stopped,
			struct node_state *out)
{
	struct state_run rank = {
		.first = ss->rank,
		.last = ss->rank,
		.phase = PHASES[ss->state],
		.stopped = stopped,
	};

	for (int kind = 0; kind < COLL_KINDS; kind++)
		rank.entered[kind] = coll_entered(s->coll, kind, ss->slot);
	state_add_rank(out, &rank);
	out->requests += ss->waits;
}

int pmi_server_state(struct pmi_server *s, const bool *stopped,
		     struct node_state *out)
{
	memset(out, 0, sizeof(*out));
	out->runs = calloc(s->nslots + 1, sizeof(*out->runs));
	if (!out->runs)
		return -ENOMEM;
	for (uint32_t i = 0; i < s->nslots; i++)
		add_session(s, &s->sessions[i], stopped[i], out);
	for (int kind = 0; kind < COLL_KINDS; kind++)
		out->ended[kind] = coll_ended(s->coll, kind);
	return 0;
}

uint64_t pmi_server_ended(const struct pmi_server *s)
{
	uint64_t sum = 0;

	for (int kind = 0; kind < COLL_KINDS; kind++)
		sum += coll_ended(s->coll, kind);
	return sum;
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
}
