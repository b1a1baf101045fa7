/* SPDX-License-Identifier: BSD-3-Clause */
/* Collectives of subsets: entries, messages and ends. */
#include "libcoll/subset_private.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "libutil/hash.h"

/* ---- up ---- */

static void send_up(struct coll *c, struct subset *s, struct subset_op *op)
{
	struct coll_msg msg = subset_msg(s, COLL_MSG_SUB_UP);
	struct payload_vec body = { 0 };

	msg.subset.members = s->members;
	msg.subset.nabove = s->nabove;
	msg.subset.last = s->last;
	memcpy(msg.subset.above, s->above, sizeof(s->above));
	if (!op->failed && subset_op_parts(c, op, &body))
		subset_op_spoil(c, op, NULL);
	msg.failed = op->failed;
	if (op->failed)
		coll_reason_copy(msg.fault.reason, op->reason);
	s->sent++;
	coll_send(c, coll_parent(c), &msg, &body);
	payload_vec_clear(&body);
	subset_op_clear(c, op);
}

/* ---- down ---- */

/* The first in flight has ended, with `result` or for `why`. */
static void end_first(struct coll *c, struct subset *s, struct payload *result,
		      const char *why)
{
	struct coll_msg msg = subset_msg(s, COLL_MSG_SUB_DOWN);
	struct payload_vec body = { .items = &result };

	if (result && result->len) {
		body.count = 1;
		body.bytes = result->len;
	}
	msg.failed = !result;
	if (msg.failed)
		snprintf(msg.fault.reason, sizeof(msg.fault.reason), "%s", why);
	for (uint32_t i = 0; i < c->place.children; i++)
		if (s->children[i].ups)
			coll_send(c, &c->peers[i], &msg, &body);
	subset_end(c, subset_take_first(c, s), result,
		   result ? NULL : msg.fault.reason);
}

/* Join the entries. One reference, or NULL: no memory. */
static struct payload *join(const struct coll *c, const struct subset_op *op)
{
	struct payload *result = NULL;
	struct payload_vec parts;

	if (subset_op_parts(c, op, &parts))
		return NULL;
	result = parts.count ? payload_vec_join(&parts) : payload_virtual(0);
	payload_vec_clear(&parts);
	return result;
}

static void meet(struct coll *c, struct subset *s)
{
	struct subset_op *op = s->first;
	struct payload *result = op->failed ? NULL : join(c, op);
	char why[COLL_REASON_MAX];

	if (!op->failed && !result)
		subset_op_spoil(c, op,
				"no memory for the contributions of a group");
	if (!result)
		coll_reason_copy(why, op->reason);
	end_first(c, s, result, why);
	payload_unref(result);
}

/* A collective with all contributions goes up, or is a result. */
static void progress(struct coll *c, struct subset *s)
{
	while (s->members && s->sent < s->count) {
		struct subset_op *op = subset_op_at(s, s->sent);

		if (op->in < s->members)
			return;
		if (s->meets)
			meet(c, s);
		else
			send_up(c, s, op);
	}
}

void subset_settle(struct coll *c, struct subset *s)
{
	subset_check(c, s);
	progress(c, s);
	subset_check(c, s);
	subset_ask(c, s);
	if (!s->count)
		subset_free(c, s);
}

/* ---- messages ---- */

/* A child's contribution says that there are no members here. */
static bool counts_fit(const struct coll *c, const struct subset *s,
		       const struct coll_subset_msg *m)
{
	bool meets = m->last && m->nabove == 1;

	if (s->members)
		return m->above[0] == s->members && meets == s->meets &&
		       !s->nown;
	return (meets || !coll_is_root(c)) && m->above[0] >= m->members;
}

static bool up_fits(const struct coll *c, const struct subset *s,
		    const struct subset_child *child,
		    const struct coll_subset_msg *m)
{
	uint64_t in = m->members;

	if (!in || child->ups >= COLL_SUBSET_AHEAD_MAX)
		return false;
	if ((s->name || child->members) && child->members != m->members)
		return false;
	if (m->nabove ? !counts_fit(c, s, m) : s->members && !s->nown)
		return false;
	if (child->ups < s->count)
		in += subset_op_at(s, child->ups)->in;
	return in <= (m->nabove ? m->above[0] : s->members ? s->members :
							       UINT32_MAX);
}

/* Without a name, keep the counts of the message: this node needs no more. */
static void adopt_counts(struct subset *s, const struct coll_subset_msg *m)
{
	if (s->members || !m->nabove)
		return;
	s->members = m->above[0];
	s->nabove = m->nabove - 1;
	memcpy(s->above, m->above + 1, s->nabove * sizeof(s->above[0]));
	s->last = m->last && s->nabove;
	s->meets = m->last && !s->nabove;
}

/* More in flight than the ranks there may have entered. */
static bool too_many(const struct coll *c, const struct coll_peer *child)
{
	return child->subset_ups >=
	       (uint64_t)COLL_SUBSET_AHEAD_MAX *
		       coll_ranks_within(c, tree_child(&c->place,
						       child - c->peers));
}

static void add_up(struct coll *c, struct subset *s, struct coll_peer *peer,
		   const struct coll_msg *msg, struct payload *body)
{
	struct subset_child *child = subset_child_of(c, s, peer);
	struct subset_op *op = subset_op_at(s, child->ups);

	adopt_counts(s, &msg->subset);
	child->members = msg->subset.members;
	child->ups++;
	peer->subset_ups++;
	op->in += msg->subset.members;
	if (msg->failed)
		subset_op_spoil(c, op, msg->fault.reason);
	else
		subset_op_add(c, op, &op->data[peer - c->peers], body);
}

static int receive_up(struct coll *c, struct coll_peer *peer,
		      const struct coll_msg *msg, struct payload *body)
{
	struct subset *s = subset_find(c, msg->subset.key);
	int rc = -EPROTO;

	if (!subset_is_child(c, peer) || too_many(c, peer))
		return rc;
	if (!s)
		s = subset_new(c, msg->subset.key);
	if (!s) {
		subset_no_memory(c);
		return 0;
	}
	if (up_fits(c, s, subset_child_of(c, s, peer), &msg->subset))
		rc = subset_grow(c, s, subset_child_of(c, s, peer)->ups + 1);
	if (!rc)
		add_up(c, s, peer, msg, body);
	else if (rc == -ENOMEM)
		subset_no_memory(c);
	subset_settle(c, s);
	return rc == -EPROTO ? rc : 0;
}

static int receive_down(struct coll *c, struct coll_peer *peer,
			const struct coll_msg *msg, struct payload *body)
{
	struct subset *s = subset_find(c, msg->subset.key);
	struct payload *result;

	if (peer != coll_parent(c) ||
	    (body && body->len > COLL_SUBSET_BYTES_MAX))
		return -EPROTO;
	if (!s || !s->sent)
		return subset_fault_known(c) ? 0 : -EPROTO; /* it failed on this node before */
	if (msg->failed) {
		end_first(c, s, NULL, msg->fault.reason);
	} else {
		result = body ? payload_ref(body) : payload_virtual(0);
		end_first(c, s, result, "no memory for the result of a group");
		payload_unref(result);
	}
	subset_settle(c, s);
	return 0;
}

/* Nothing is known here of what came, for lack of memory. */
static void refuse(struct coll *c, const struct coll_peer *peer,
		   const struct coll_msg *msg)
{
	char why[COLL_REASON_MAX];

	coll_reason_copy(why, c->subset_why);
	subset_fail_back(c, peer, msg, why);
}

int coll_subset_receive(struct coll *c, struct coll_peer *peer,
			const struct coll_msg *msg, struct payload *body)
{
	int rc = -EPROTO;
	bool lost;

	if (msg->type == COLL_MSG_SUB_UP)
		rc = receive_up(c, peer, msg, body);
	else if (msg->type == COLL_MSG_SUB_DOWN)
		rc = receive_down(c, peer, msg, body);
	else if (msg->type == COLL_MSG_SUB_OPEN)
		rc = subset_receive_open(c, peer, msg, body);
	else if (msg->type == COLL_MSG_SUB_FAIL)
		rc = subset_receive_fail(c, peer, msg);
	lost = c->subset_no_memory;
	subset_say_no_memory(c);
	if (lost)
		refuse(c, peer, msg);
	return rc;
}

/* ---- entering ---- */

static bool is_member(const struct coll_subset_name *name, uint32_t rank)
{
	return name->count &&
	       name->ranks[subset_find_rank(name->ranks, name->count, rank)] ==
		       rank;
}

static int may_enter(const struct coll *c, uint32_t slot,
		     const struct coll_subset_name *name,
		     const struct payload *contribution)
{
	if (slot >= c->nslots || !is_member(name, c->ranks[slot]))
		return -EINVAL;
	if (contribution && contribution->len > COLL_SUBSET_BYTES_MAX)
		return -EINVAL;
	if (c->slots[slot].gone & coll_side_of_op(name->op, COLL_OP_PMIX))
		return -ESHUTDOWN;
	return c->slots[slot].subsets < COLL_SUBSET_AHEAD_MAX ? 0 : -EAGAIN;
}

static void add_entry(struct coll *c, struct subset *s, struct subset_own *own,
		      struct subset_entry *e, struct payload *contribution)
{
	struct subset_op *op = subset_op_at(s, own->entered);
	struct subset_entry **at = &op->entries;

	while (*at && (*at)->slot < e->slot)
		at = &(*at)->next;
	e->next = *at;
	*at = e;
	subset_op_add(c, op, &e->data, contribution);
	op->in++;
	own->entered++;
	c->slots[e->slot].subsets++;
	c->subset_entries++;
}

/* The one of this packed name, which is learned; NULL: no memory. */
static struct subset *subset_of(struct coll *c, struct payload *name)
{
	unsigned char key[HASH_NAME_SIZE];
	struct subset *s;
	int rc;

	hash_name(key, name->data, name->len);
	s = subset_find(c, key);
	rc = s ? subset_learn(c, s, name) : 0;
	if (rc == -EPROTO) {
		subset_fail(c, s, 0, "a node sent an invalid message",
			    false);
		subset_free(c, s);
		s = NULL;
	}
	if (!s) {
		s = subset_new(c, key);
		rc = s ? subset_learn(c, s, name) : -ENOMEM;
	}
	if (!rc)
		return s;
	if (s && !s->count)
		subset_free(c, s);
	return NULL;
}

static int enter(struct coll *c, uint32_t slot, struct payload *name,
		 struct payload *contribution, uint64_t id)
{
	struct subset_entry *e = calloc(1, sizeof(*e));
	struct subset *s = e ? subset_of(c, name) : NULL;
	struct subset_own *own = s ? subset_own(s, slot) : NULL;
	int rc = own ? subset_grow(c, s, own->entered + 1) : -ENOMEM;

	if (rc) {
		free(e);
	} else {
		e->slot = slot;
		e->id = id;
		add_entry(c, s, own, e, contribution);
	}
	if (s)
		subset_settle(c, s);
	return rc;
}

int coll_enter_subset(struct coll *c, uint32_t slot,
		      const struct coll_subset_name *name,
		      struct payload *contribution, uint64_t id)
{
	int rc = may_enter(c, slot, name, contribution);
	struct payload *packed = NULL;
	struct buf b;

	if (rc)
		return rc;
	buf_init(&b, SIZE_MAX);
	b.budget = c->budget;
	rc = subset_name_pack(c, &b, name);
	if (!rc)
		packed = payload_take(&b);
	if (packed)
		rc = enter(c, slot, packed, contribution, id);
	else if (!rc)
		rc = -ENOMEM;
	payload_unref(packed);
	buf_free(&b);
	subset_say_no_memory(c);
	return rc;
}

/* ---- state ---- */

size_t coll_subsets_pending(const struct coll *c)
{
	return c->subset_entries;
}

bool coll_subsets_in_flight(const struct coll *c)
{
	return c->subsets != NULL;
}

uint64_t coll_subsets_ended(const struct coll *c)
{
	return c->subset_ended;
}

static void describe(const struct coll *c, const struct subset *s, uint32_t i,
		     struct coll_subset_state *out, uint32_t *ranks,
		     uint32_t *children)
{
	const struct subset_op *op = subset_op_at(s, i);

	*out = (struct coll_subset_state){ .unnamed = !s->name, .own = !s->name && !s->members };
	if (s->name)
		subset_name_describe(s->name, out);
	for (uint32_t k = 0; k < s->nown; k++)
		if (s->own[k].entered <= i)
			ranks[out->nranks++] = c->ranks[s->own[k].slot];
	for (uint32_t k = 0; k < c->place.children; k++)
		if (s->children[k].members && s->children[k].ups <= i)
			children[out->nchildren++] = c->peers[k].position;
	out->waits_parent = s->members && op->in >= s->members;
}

bool coll_subset_at(const struct coll *c, size_t n,
		    struct coll_subset_state *out, uint32_t *missing_ranks,
		    uint32_t *missing_children)
{
	for (const struct subset *s = c->subsets; s; s = s->hh.next) {
		const struct subset_op *op = s->first;

		for (uint32_t i = 0; op; i++, op = op->next) {
			if (n--)
				continue;
			describe(c, s, i, out, missing_ranks,
				 missing_children);
			return true;
		}
	}
	return false;
}
