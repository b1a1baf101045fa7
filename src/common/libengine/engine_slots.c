/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Collectives that ranks enter through shared memory instead of their socket. An entry
 * becomes a request like any other, with its answer on the board of the slots.
 *
 * When to look: the ranks count what they put into their slots, and who brings
 * the count of a kind to `need` wakes the agent. `need` is how many slotted
 * ranks of this node have not yet entered the oldest collective of that kind, as
 * far as the agent has looked. So whatever the ranks' order, the last of those
 * sees a count of `need` or more. Whenever the agent looks, or a rank comes,
 * goes, or enters over its socket, it looks into all slots and says anew how
 * many it needs.
 */

#include "libengine/engine.h"
#include "libengine/pending.h"
#include "libengine/rank.h"
#include "libengine/request.h"
#include "libshm/records.h"

#define SLOTS_TURNS_MAX 4 /* looks in a row, then other work has its turn */

static const struct command SLOT_COMMAND = {.name = "slot", .response = "slot"};

static const enum coll_kind COLL_KIND[SLOT_KINDS] = {
	[SLOT_FENCE] = COLL_FENCE,
	[SLOT_GATHER] = COLL_GATHER,
	[SLOT_RING] = COLL_RING,
};

static bool is_slotted(const struct rank_session *ss)
{
	return ss->slot_use == RANK_SLOT_ENTERS && ss->state == RANK_ACTIVE;
}

void slots_attach(struct rank_session *ss)
{
	slots_reset(ss->server->slots, ss->slot);
	ss->slot_use = RANK_SLOT_ENTERS;
	ss->ticket = slot_ticket_after(0);
}

/* ---- entries ---- */

static void enter_fence(struct rank_session *ss, const struct rank_request *rq,
			const struct slot_entry *e)
{
	void *at;

	if (e->len) {
		at = rank_room_for_records(ss, rq, e->len);
		if (!at)
			return;
		slots_copy(e, at);
		if (!rank_take_records(ss, rq, e->len))
			return;
	}
	collective_fence(ss, rq);
}

static void enter_gather(struct rank_session *ss, const struct rank_request *rq,
			 const struct slot_entry *e)
{
	struct payload *p;

	if (e->stride > RECORD_VALUE_MAX) {
		answer_error(ss, rq, PMI_RC_INVALID_SIZE,
			     "stride is not a number up to %u", RECORD_VALUE_MAX);
		return;
	}
	p = gather_contribution(ss->server->step->budget, NULL, e->len);
	if (p)
		slots_copy(e, GATHER_VALUE(p));
	for (uint32_t i = 0; i < e->ndone; i++)
		collective_done(ss, slots_done(e, i));
	collective_gather(ss, rq, p, e->stride);
}

/* Both neighbours get the same value. */
static void enter_ring(struct rank_session *ss, const struct rank_request *rq,
		       const struct slot_entry *e)
{
	struct payload *p = payload_new_in(ss->server->step->budget, e->len);

	if (p)
		slots_copy(e, p->data);
	collective_ring(ss, rq, 1, p, payload_ref(p));
}

static void enter(struct rank_session *ss, const struct slot_entry *e, int error)
{
	const struct rank_request rq = {
		.command = &SLOT_COMMAND,
		.protocol = PMI_PROTOCOL_2,
		.ticket = e->ticket,
		.cell = e->cell,
	};

	if (error)
		answer_error(ss, &rq, answer_rc(error), "%s",
			     answer_text(error));
	else if (e->kind == SLOT_FENCE)
		enter_fence(ss, &rq, e);
	else if (e->kind == SLOT_RING)
		enter_ring(ss, &rq, e);
	else
		enter_gather(ss, &rq, e);
}

/* Take what a slot holds, at most a slot full; adds up how many of each kind. */
static void take(struct rank_session *ss, uint32_t taken[SLOT_KINDS])
{
	struct slot_entry e;

	for (int i = 0; i < SLOT_CELLS && is_slotted(ss); i++) {
		int rc = slots_take(ss->server->slots, ss->slot, ss->ticket,
				    &e);

		if (rc == 0)
			return;
		ss->ticket = slot_ticket_after(ss->ticket);
		taken[e.kind]++;
		enter(ss, &e, rc < 0 ? rc : 0);
	}
}

static void count_taken(struct pmi_server *s, const uint32_t taken[SLOT_KINDS])
{
	for (int kind = 0; kind < SLOT_KINDS; kind++)
		slots_taken(s->slots, kind, taken[kind]);
}

void slots_take_own(struct rank_session *ss)
{
	uint32_t taken[SLOT_KINDS] = {0};

	if (!is_slotted(ss))
		return;
	take(ss, taken);
	count_taken(ss->server, taken);
}

bool slots_count_socket(struct rank_session *ss)
{
	slots_take_own(ss);
	if (ss->slot_use == RANK_SLOT_ENTERS)
		ss->ticket = slot_ticket_after(ss->ticket);
	return rank_is_live(ss);
}

static bool take_all(struct pmi_server *s)
{
	uint32_t taken[SLOT_KINDS] = {0}, sum = 0;

	for (uint32_t i = 0; i < s->nslots; i++)
		take(&s->sessions[i], taken);
	count_taken(s, taken);
	for (int kind = 0; kind < SLOT_KINDS; kind++)
		sum += taken[kind];
	return sum > 0;
}

/* ---- when to look again ---- */

static uint32_t count_needed(const struct pmi_server *s, enum coll_kind kind)
{
	uint32_t oldest = UINT32_MAX, count = 0;

	for (uint32_t i = 0; i < s->nslots; i++) {
		uint32_t seq;

		if (!is_slotted(&s->sessions[i]))
			continue;
		seq = coll_entered(s->coll, kind, i);
		if (seq < oldest) {
			oldest = seq;
			count = 0;
		}
		count += seq == oldest;
	}
	return count;
}

/* A rank that enters after a failure is answered at once, without the others. */
static void say_needed(struct pmi_server *s)
{
	bool failed = s->failure != FAILURE_NONE;

	for (int kind = 0; kind < SLOT_KINDS; kind++)
		slots_set_need(s->slots, kind,
			       failed ? 0 : count_needed(s, COLL_KIND[kind]));
}

/*
 * Ranks enter while the agent looks: what they enter between its look into the slots
 * and the new need is found by a second look. A count with no entry behind it is a
 * rank's forgery: the agent then stops after two looks.
 */
void slots_update(struct pmi_server *s)
{
	int turns = 0;
	bool found;

	(void)engine_take_deferred(s, DEFER_SLOTS);
	if (!s->slots)
		return;
	do {
		found = take_all(s) || turns == 0;
		say_needed(s);
		found = found && slots_waiting(s->slots);
	} while (found && ++turns < SLOTS_TURNS_MAX);
	if (found)
		s->ops->slots_again(s->arg);
}

/* ---- wakes ---- */

void slots_flush(struct pmi_server *s)
{
	if (!engine_take_deferred(s, DEFER_WAKE))
		return;
	slots_changed(s->slots);
	s->ops->slots_wake(s->arg);
}
