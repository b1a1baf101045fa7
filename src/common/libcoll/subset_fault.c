/* SPDX-License-Identifier: BSD-3-Clause */
/* Collectives of subsets that cannot complete: finding out, failing, telling. */
#include "libcoll/subset_private.h"

#include <errno.h>
#include <stdio.h>

bool subset_fault_known(const struct coll *c)
{
	for (int kind = 0; kind < COLL_KINDS; kind++)
		if (c->fault[kind].from != COLL_NEVER)
			return true;
	return c->past.from != 0;
}

/* ---- failing ---- */

static bool is_on_path(const struct subset_child *child)
{
	return child->members || child->ups;
}

#define ALL (-COLL_SUBSET_AHEAD_MAX) /* whatever the parent has an up of */

/*
 * To the parent: what was on its way there meanwhile fails as well, but not what
 * it has an up of when it has said itself how many fail, and some do not.
 */
static int32_t first_for_parent(uint32_t from, uint32_t sent_before,
				uint32_t sent, bool told_by_parent)
{
	if (!told_by_parent)
		return (int32_t)from - (int32_t)sent_before;
	return from ? (int32_t)(from - sent) : ALL;
}

void subset_fail(struct coll *c, struct subset *s, uint32_t from,
		 const char *why, bool told_by_parent)
{
	struct coll_msg msg = subset_msg(s, COLL_MSG_SUB_FAIL);
	struct subset_op *list;
	const uint32_t sent = s->sent;

	if (from >= s->count)
		return;
	list = subset_cut(c, s, from);
	snprintf(msg.fault.reason, sizeof(msg.fault.reason), "%s", why);
	msg.subset.first = from;
	for (uint32_t i = 0; i < c->place.children; i++)
		if (is_on_path(&s->children[i]))
			coll_send(c, &c->peers[i], &msg, NULL);
	msg.subset.first = first_for_parent(from, sent, s->sent,
					    told_by_parent);
	if (s->members && !s->meets)
		coll_send(c, coll_parent(c), &msg, NULL);
	subset_end(c, list, NULL, msg.fault.reason);
}

/* The first that cannot complete. */
struct bound {
	uint32_t from;
	const struct payload *why;
};

static void tighten(struct bound *b, uint32_t from, const struct payload *why)
{
	if (from < b->from)
		*b = (struct bound){ from, why };
}

/* Without the name nothing is to be had from children but what they say. */
static void bound_by_children(const struct coll *c, const struct subset *s,
			      struct bound *b)
{
	struct bound lost = { COLL_NEVER, NULL };

	for (uint32_t i = 0; i < c->place.children; i++) {
		if (s->children[i].ups && !c->peers[i].lost)
			return;
		if (s->children[i].ups)
			tighten(&lost, s->wanted ? 0 : s->sent,
				c->peers[i].why);
	}
	tighten(b, lost.from, lost.why);
}

static void bound_by_members(const struct coll *c, const struct subset *s,
			     struct bound *b)
{
	enum coll_side side = subset_side(s);
	uint32_t series = subset_series(s);

	for (uint32_t i = 0; i < s->nown; i++) {
		const struct coll_slot *slot = &c->slots[s->own[i].slot];

		if (slot->gone & side)
			tighten(b, s->own[i].entered, coll_slot_why(slot, side));
		if (side == COLL_OF_PMIX && series < slot->over)
			tighten(b, s->own[i].entered, slot->over_why);
	}
	for (uint32_t i = 0; i < c->place.children; i++)
		if (c->peers[i].lost && s->children[i].members)
			tighten(b, s->children[i].ups, c->peers[i].why);
}

/* For what this node sees itself. */
static struct bound bound_of(const struct coll *c, const struct subset *s)
{
	struct bound b = { COLL_NEVER, NULL };

	if (c->subset_dead)
		tighten(&b, 0, c->subset_why);
	if (s->name)
		bound_by_members(c, s, &b);
	else
		bound_by_children(c, s, &b);
	if (s->members && !s->meets && coll_parent(c)->lost)
		tighten(&b, 0, coll_parent(c)->why);
	return b;
}

void subset_check(struct coll *c, struct subset *s)
{
	struct bound b = bound_of(c, s);
	char why[COLL_REASON_MAX];

	if (b.from >= s->count)
		return;
	coll_reason_copy(why, b.why);
	subset_fail(c, s, b.from, why, false);
}

int subset_receive_fail(struct coll *c, struct coll_peer *peer,
			const struct coll_msg *msg)
{
	struct subset *s = subset_find(c, msg->subset.key);
	int64_t from = msg->subset.first;

	if (!subset_fault_known(c))
		return -EPROTO;
	if (!s)
		return 0;
	if (subset_is_child(c, peer))
		from += subset_child_of(c, s, peer)->ups;
	else if (s->members && s->meets)
		return -EPROTO;
	if (from < s->count)
		subset_fail(c, s, from < 0 ? 0 : from, msg->fault.reason,
			    !subset_is_child(c, peer));
	subset_settle(c, s);
	return 0;
}

void subset_fail_back(struct coll *c, const struct coll_peer *peer,
		      const struct coll_msg *msg, const char *why)
{
	struct coll_msg fail = { .type = COLL_MSG_SUB_FAIL };

	fail.subset.first = subset_is_child(c, peer) ? 0 : ALL;
	memcpy(fail.subset.key, msg->subset.key, COLL_KEY_SIZE);
	snprintf(fail.fault.reason, sizeof(fail.fault.reason), "%s", why);
	coll_send(c, peer, &fail, NULL);
}

/* ---- asking ---- */

/* With the name, or without: what is it? */
static void ask(struct coll *c, const struct subset *s,
		const struct coll_peer *peer, uint32_t first)
{
	struct coll_msg msg = subset_msg(s, COLL_MSG_SUB_OPEN);
	struct payload *items[1] = { s->name };
	struct payload_vec body = { .items = items };

	if (s->name) {
		body.count = 1;
		body.bytes = s->name->len;
	}
	msg.subset.first = first;
	coll_send(c, peer, &msg, &body);
}

/* Whether a child is to be asked: for the name, or for its contribution. */
static bool to_ask(const struct subset *s, const struct subset_child *child)
{
	if (!s->name)
		return child->ups && !child->asked;
	return child->members && child->ups < s->count &&
	       child->asked < s->count;
}

void subset_ask(struct coll *c, struct subset *s)
{
	if (!s->count || !subset_fault_known(c))
		return;
	for (uint32_t i = 0; i < c->place.children; i++) {
		struct subset_child *child = &s->children[i];

		if (!to_ask(s, child))
			continue;
		child->asked = s->name ? s->count : child->ups;
		ask(c, s, &c->peers[i], s->name ? s->count : 0);
	}
	if (!s->name || s->meets || s->asked >= s->count)
		return;
	s->asked = s->count;
	ask(c, s, coll_parent(c), s->count - s->sent);
}

/*
 * The parent asks for the name of something of which it has an up. It is told as soon
 * as it is known here, or that nothing is in flight any more.
 */
static void answer(struct coll *c, struct subset *s,
		   const struct coll_peer *parent, const struct coll_msg *asked)
{
	if (!s) {
		subset_fail_back(c, parent, asked, "the collective has failed already");
		return;
	}
	s->wanted = true;
	s->asked = 0;
	subset_settle(c, s);
}

/*
 * The asking neighbour is on the path of the members, and knows of `count` collectives
 * in flight.
 */
static int note_asked(struct coll *c, struct subset *s,
		      const struct coll_peer *peer, uint32_t count)
{
	uint32_t *asked = &s->asked;

	if (subset_is_child(c, peer)) {
		if (!subset_child_of(c, s, peer)->members)
			return -EPROTO;
		asked = &subset_child_of(c, s, peer)->asked;
	} else if (s->meets) {
		return -EPROTO;
	}
	if (subset_grow(c, s, count))
		return -ENOMEM;
	if (*asked < count)
		*asked = count;
	return 0;
}

int subset_receive_open(struct coll *c, struct coll_peer *peer,
			const struct coll_msg *msg, struct payload *body)
{
	struct subset *s = subset_find(c, msg->subset.key);
	int64_t count = msg->subset.first;
	int rc;

	if (s && subset_is_child(c, peer))
		count += subset_child_of(c, s, peer)->ups;
	if (!subset_fault_known(c) || msg->subset.first < 0 ||
	    count > COLL_SUBSET_AHEAD_MAX)
		return -EPROTO;
	if (!body && subset_is_child(c, peer))
		return -EPROTO;
	if (!body) {
		answer(c, s, peer, msg);
		return 0;
	}
	if (!s && !count)
		return 0; /* it has ended here before */
	if (!s)
		s = subset_new(c, msg->subset.key);
	rc = s ? subset_learn(c, s, body) : -ENOMEM;
	if (!rc)
		rc = note_asked(c, s, peer, count);
	if (rc == -ENOMEM)
		subset_no_memory(c);
	if (s)
		subset_settle(c, s);
	return rc == -EPROTO ? rc : 0;
}

/* ---- memory ---- */

void subset_no_memory(struct coll *c)
{
	c->subset_no_memory = true;
}

static void die(struct coll *c, const char *why)
{
	if (!c->subset_dead)
		c->subset_why = coll_reason_new(why);
	c->subset_dead = true;
	coll_fault_raise_all(c, why);
}

void subset_say_no_memory(struct coll *c)
{
	char why[COLL_REASON_MAX];

	if (!c->subset_no_memory)
		return;
	c->subset_no_memory = false;
	if (c->subset_dead)
		return;
	snprintf(why, sizeof(why),
		 "the node of rank %u has no memory for a group", c->ranks[0]);
	die(c, why);
}

void coll_expire_subsets(struct coll *c, const char *why)
{
	if (c->subset_entries)
		die(c, why);
}

void coll_subsets_check(struct coll *c)
{
	struct subset *s, *tmp;

	HASH_ITER(hh, c->subsets, s, tmp)
		subset_settle(c, s);
	subset_say_no_memory(c);
}
