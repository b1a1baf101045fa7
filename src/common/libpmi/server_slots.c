/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What ranks enter through shared memory instead of their socket. An entry
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
#include <errno.h>
#include <string.h>

#include "libpmi/server_private.h"
#include "libshm/records.h"

#define SLOTS_TURNS_MAX 4 /* looks in a row, then other work has its turn */

static const struct command SLOT_COMMAND = {.name = "slot", .response = "slot"};

static const enum coll_kind COLL_KIND[SLOT_KINDS] = {
	[SLOT_FENCE] = COLL_FENCE,
	[SLOT_GATHER] = COLL_GATHER,
	[SLOT_RING] = COLL_RING,
};

static bool is_slotted(const struct session *ss)
{
	return ss->slotted && ss->state == SESSION_ACTIVE;
}

void slots_attach(struct session *ss)
{
	slots_reset(ss->server->slots, ss->slot);
	ss->slotted = true;
	ss->ticket = slot_ticket_after(0);
}

/* ---- entries ---- */

static void enter_fence(struct session *ss, const struct request *rq,
			const struct slot_entry *e)
{
	if (e->len == 0 || ext_add_records(ss, rq, e->data, e->len))
		collective_fence(ss, rq);
}

static struct pmi_field value_of(const struct slot_entry *e)
{
	return (struct pmi_field){
		.value = (const char *)e->data,
		.value_len = (uint32_t)e->len,
	};
}

static void enter_gather(struct session *ss, const struct request *rq,
			 const struct slot_entry *e)
{
	const struct pmi_field value = value_of(e);
	uint64_t offset;

	if (e->stride > RECORD_VALUE_MAX) {
		answer_error(ss, rq, PMI_RC_INVALID_SIZE,
			     "stride is no number up to %u", RECORD_VALUE_MAX);
		return;
	}
	for (uint32_t i = 0; i < e->ndone; i++) {
		memcpy(&offset, e->done + i * sizeof(offset), sizeof(offset));
		collective_done(ss, offset);
	}
	collective_gather(ss, rq, &value, e->stride);
}

/* It shows the same value to both sides. */
static void enter_ring(struct session *ss, const struct request *rq,
		       const struct slot_entry *e)
{
	const struct pmi_field value = value_of(e);

	collective_ring(ss, rq, 1, &value, &value);
}

static void enter(struct session *ss, const struct slot_entry *e, int error)
{
	const struct request rq = {
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
static void take(struct session *ss, uint32_t taken[SLOT_KINDS])
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

void slots_take_own(struct session *ss)
{
	uint32_t taken[SLOT_KINDS] = {0};

	if (!is_slotted(ss))
		return;
	take(ss, taken);
	count_taken(ss->server, taken);
}

void slots_count_socket(struct session *ss)
{
	slots_take_own(ss);
	if (ss->slotted)
		ss->ticket = slot_ticket_after(ss->ticket);
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

static void say_needed(struct pmi_server *s)
{
	for (int kind = 0; kind < SLOT_KINDS; kind++)
		slots_set_need(s->slots, kind,
			       s->slots_eager ? 0 : count_needed(s,
							COLL_KIND[kind]));
}

/*
 * An entry that was made between the look and the new need is seen by another
 * look. A count with nothing behind it is somebody's forgery: two looks will do.
 */
void slots_update(struct pmi_server *s)
{
	int turns = 0;
	bool found;

	s->slots_stale = false;
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

/* From now on nobody waits for the others of the node to hear that it failed. */
void slots_failed(struct pmi_server *s)
{
	if (s->slots && !s->slots_eager)
		s->slots_stale = s->slots_eager = true;
}

/* ---- answers ---- */

void slots_answer(struct session *ss, const struct request *rq, int rc,
		  uint64_t offset, uint64_t len, const char *text)
{
	slots_reply(ss->server->slots, ss->slot, rq->cell, rq->ticket, rc,
		    offset, len, text);
	ss->server->slots_replied = true;
}

int slots_answer_ring(struct session *ss, const struct request *rq,
		      const struct slot_neighbours *n)
{
	int rc = slots_reply_ring(ss->server->slots, ss->slot, rq->cell,
				  rq->ticket, n);

	ss->server->slots_replied |= rc == 0;
	return rc;
}

void slots_flush(struct pmi_server *s)
{
	if (!s->slots_replied)
		return;
	s->slots_replied = false;
	slots_changed(s->slots);
	s->ops->slots_wake(s->arg);
}
