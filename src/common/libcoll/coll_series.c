/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Series of PMIx fences: see coll.h. The end of the past ones is a number below which
 * nothing completes any more. It grows, and each node tells its neighbours, unless they
 * are known to know as much, before it sends anything of a later series: so links carry
 * no fence of a series that the receiver does not know of.
 */
#include "libcoll/coll_private.h"

#include <errno.h>

/* The first number of the series after the one that `seq` is in. */
static uint32_t end_of(uint32_t seq)
{
	return (seq / COLL_SERIES + 1) * COLL_SERIES;
}

/* Collectives in flight fail: they were begun before the later series. */
static void leave_past(struct coll *c)
{
	struct coll_table *t = &c->tables[COLL_PMIX];
	struct coll_fault fault;

	coll_fault_describe(c, COLL_PMIX, t->first, &fault);
	for (uint32_t i = 0; i < t->count; i++)
		if (coll_op_find(c, COLL_PMIX, t->first + i)->entrants)
			c->ops->complete(c->arg, COLL_PMIX, t->first + i, NULL,
					 &fault);
	coll_op_cut(c, COLL_PMIX, 0);
	if (t->first < c->past.from)
		t->first = c->past.from;
	if (c->sent[COLL_PMIX] < c->past.from)
		c->sent[COLL_PMIX] = c->past.from;
}

void coll_series_tell(struct coll *c, struct coll_peer *peer)
{
	struct coll_msg msg = {
		.type = COLL_MSG_SERIES, .kind = COLL_PMIX, .seq = c->past.from,
	};

	if (peer->lost || peer->past >= c->past.from)
		return;
	peer->past = c->past.from;
	coll_reason_copy(msg.fault.reason, c->past.reason);
	coll_send(c, peer, &msg, NULL);
}

/* Past series end with `end`. Unless it is known, all fail that are in flight. */
static void end_before(struct coll *c, uint32_t end, const char *why)
{
	if (end <= c->past.from)
		return;
	payload_unref(c->past.reason);
	c->past.reason = coll_reason_new(why);
	c->past.from = end;
	leave_past(c);
	for (uint32_t i = 0; i <= c->place.children; i++)
		coll_series_tell(c, &c->peers[i]);
}

/* The series of the slot is over for subsets. */
static void note_over(struct coll_slot *slot, const char *why)
{
	if (slot->over > slot->series)
		return;
	payload_unref(slot->over_why);
	slot->over_why = coll_reason_new(why);
	slot->over = slot->series + 1;
}

void coll_end_series(struct coll *c, uint32_t slot, const char *why)
{
	if (slot >= c->nslots)
		return;
	note_over(&c->slots[slot], why);
	end_before(c, end_of(c->slots[slot].entered[COLL_PMIX]), why);
	coll_subsets_check(c);
}

void coll_next_series(struct coll *c, uint32_t slot, bool missed, const char *why)
{
	uint32_t seq;

	if (slot >= c->nslots)
		return;
	seq = c->slots[slot].entered[COLL_PMIX];
	missed |= seq < c->past.from; /* by what others have done */
	if ((!missed && seq % COLL_SERIES == 0) || end_of(seq) < seq)
		return;
	note_over(&c->slots[slot], why);
	c->slots[slot].series++;
	c->slots[slot].entered[COLL_PMIX] = end_of(seq);
	end_before(c, end_of(seq), why);
	coll_subsets_check(c);
}

uint32_t coll_series(const struct coll *c, uint32_t slot)
{
	return slot < c->nslots ? c->slots[slot].series : 0;
}

bool coll_series_skips(const struct coll *c, const struct coll_msg *msg)
{
	return msg->kind == COLL_PMIX && msg->seq && msg->seq <= c->past.from &&
	       msg->seq % COLL_SERIES == 0;
}

int coll_series_receive(struct coll *c, struct coll_peer *peer,
			const struct coll_msg *msg)
{
	if (msg->kind != COLL_PMIX || !msg->seq || msg->seq % COLL_SERIES)
		return -EPROTO;
	if (peer->past < msg->seq)
		peer->past = msg->seq;
	end_before(c, msg->seq, msg->fault.reason);
	coll_subsets_check(c);
	return 0;
}

void coll_series_free(struct coll *c)
{
	payload_unref(c->past.reason);
	for (uint32_t i = 0; c->slots && i < c->nslots; i++)
		payload_unref(c->slots[i].over_why);
}
