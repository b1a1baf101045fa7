/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Faults: what this node knows about collectives that can no longer complete.
 * A stronger bound fails what it newly covers and is told to every neighbour
 * that is not known to know as much, so a fault crosses each link once.
 */
#include "libcoll/coll_private.h"

#include <stdio.h>
#include <string.h>

static bool merge(struct coll_bound *into, uint32_t from,
		  struct payload *reason)
{
	if (from >= into->from)
		return false;
	payload_unref(into->reason);
	into->reason = payload_ref(reason);
	into->from = from;
	return true;
}

struct payload *coll_reason_new(const char *why)
{
	size_t len = strnlen(why, COLL_REASON_MAX - 1);
	struct payload *reason = payload_new(len + 1);

	if (!reason)
		return NULL;
	memcpy(reason->data, why, len);
	reason->data[len] = '\0';
	return reason;
}

void coll_reason_copy(char out[COLL_REASON_MAX], const struct payload *reason)
{
	snprintf(out, COLL_REASON_MAX, "%s",
		 reason ? (const char *)reason->data :
			  "a rank or node is gone (no memory to say which)");
}

void coll_fault_describe(const struct coll *c, enum coll_kind kind, uint32_t seq,
			 struct coll_fault *out)
{
	for (int k = 0; k < COLL_KINDS; k++)
		out->from[k] = c->fault[k].from;
	out->series = seq < c->fault[kind].from;
	coll_reason_copy(out->reason,
			 out->series ? c->past.reason : c->fault[kind].reason);
}

static void fail_ring(struct coll *c, uint32_t seq,
		      const struct coll_fault *fault)
{
	for (uint32_t slot = 0; slot < c->nslots; slot++)
		if (c->slots[slot].entered[COLL_RING] > seq)
			c->ops->complete_ring(c->arg, seq, slot, NULL, fault);
}

/* Fail what is in flight and covered by a bound that has become stronger. */
static void fail_covered(struct coll *c, enum coll_kind kind)
{
	const struct coll_table *t = &c->tables[kind];
	uint32_t from = c->fault[kind].from;
	struct coll_fault fault;

	coll_fault_describe(c, kind, from, &fault);
	for (uint32_t i = 0; i < t->count; i++) {
		uint32_t seq = t->first + i;

		if (seq < from || !coll_op_find(c, kind, seq)->entrants)
			continue;
		if (kind == COLL_RING)
			fail_ring(c, seq, &fault);
		else
			c->ops->complete(c->arg, kind, seq, NULL, &fault);
	}
	coll_op_cut(c, kind, from);
}

/* Send one message for each reason, with all kinds that share it. */
static void tell_reason(struct coll *c, struct coll_peer *peer,
			const struct payload *reason)
{
	struct coll_msg msg = { .type = COLL_MSG_FAULT };

	for (int kind = 0; kind < COLL_KINDS; kind++) {
		const struct coll_bound *b = &c->fault[kind];
		bool news = b->from < peer->told[kind] && b->reason == reason;

		msg.fault.from[kind] = news ? b->from : COLL_NEVER;
		if (news)
			peer->told[kind] = b->from;
	}
	coll_reason_copy(msg.fault.reason, reason);
	coll_send(c, peer, &msg, NULL);
}

void coll_fault_tell(struct coll *c, struct coll_peer *peer)
{
	if (peer->lost)
		return;
	for (int kind = 0; kind < COLL_KINDS; kind++)
		if (c->fault[kind].from < peer->told[kind])
			tell_reason(c, peer, c->fault[kind].reason);
}

void coll_fault_raise(struct coll *c, const uint32_t from[COLL_KINDS],
		      const char *why)
{
	struct payload *reason = coll_reason_new(why);
	bool stronger[COLL_KINDS];

	for (int kind = 0; kind < COLL_KINDS; kind++)
		stronger[kind] = merge(&c->fault[kind], from[kind], reason);
	for (int kind = 0; kind < COLL_KINDS; kind++)
		if (stronger[kind])
			fail_covered(c, kind);
	for (uint32_t i = 0; i <= c->place.children; i++)
		coll_fault_tell(c, &c->peers[i]);
	payload_unref(reason);
	coll_subsets_check(c);
}

void coll_fault_raise_from(struct coll *c, enum coll_kind kind, uint32_t seq,
			   const char *why)
{
	uint32_t from[COLL_KINDS];

	coll_no_fault(from);
	from[kind] = seq;
	coll_fault_raise(c, from, why);
}

void coll_fault_raise_all(struct coll *c, const char *why)
{
	uint32_t from[COLL_KINDS];

	for (int kind = 0; kind < COLL_KINDS; kind++)
		from[kind] = c->tables[kind].first;
	coll_fault_raise(c, from, why);
}

void coll_fault_no_memory(struct coll *c, enum coll_kind kind, uint32_t seq)
{
	char why[COLL_REASON_MAX];

	snprintf(why, sizeof(why),
		 "the node of rank %u has no memory for %s %u", c->ranks[0],
		 coll_kind_name(kind), seq);
	coll_fault_raise_from(c, kind, seq, why);
}

void coll_fault_free(struct coll *c)
{
	for (int kind = 0; kind < COLL_KINDS; kind++)
		payload_unref(c->fault[kind].reason);
}

void coll_expire(struct coll *c, enum coll_kind kind, uint32_t seq,
		 const char *why)
{
	if (seq >= c->tables[kind].first)
		coll_fault_raise_from(c, kind, seq, why);
}
