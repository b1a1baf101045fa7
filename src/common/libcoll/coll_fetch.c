/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fetches: asked, passed on towards the owner, answered the same way back.
 *
 *   own:      coll_fetch -> ... -> ops.fetched
 *   passed:   FETCH from a neighbour -> FETCH to the next; FETCHED back
 *   asked:    FETCH, or an own one -> ops.fetch_asked; coll_fetch_answer back
 */
#include "libcoll/coll_private.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define HASH_NONFATAL_OOM 1

#include <uthash.h>

#define NO_MEMORY "has no memory for a fetch"

/* A fetch without an answer. */
struct fetch {
	UT_hash_handle hh;
	uint32_t id;            /* of this node: for the next, or the host's token */
	struct coll_peer *from; /* the node that asked; NULL: this one */
	uint64_t their_id;
	struct coll_peer *to;   /* the node that answers; NULL: the host, */
	uint32_t slot;          /* for this rank, */
	enum coll_side side;    /* of this interface */
};

/* ---- what is under way ---- */

static struct fetch *find(const struct coll *c, uint64_t id)
{
	struct fetch *f = NULL;
	uint32_t key = (uint32_t)id;

	if (id == key)
		HASH_FIND(hh, c->fetches, &key, sizeof(key), f);
	return f;
}

static uint64_t *count_of(struct coll *c, struct coll_peer *from)
{
	return from ? &from->fetches : &c->own_fetches;
}

/* NULL: no memory. */
static struct fetch *add(struct coll *c, struct coll_peer *from,
			 uint64_t their_id)
{
	struct fetch *f = calloc(1, sizeof(*f));

	if (!f)
		return NULL;
	do
		f->id = ++c->fetch_id;
	while (find(c, f->id));
	f->from = from;
	f->their_id = their_id;
	HASH_ADD(hh, c->fetches, id, sizeof(f->id), f);
	if (!f->hh.tbl) {
		free(f);
		return NULL;
	}
	++*count_of(c, from);
	return f;
}

static void forget(struct coll *c, struct fetch *f)
{
	--*count_of(c, f->from);
	HASH_DEL(c->fetches, f);
	free(f);
}

void coll_fetches_free(struct coll *c)
{
	struct fetch *f, *next;

	HASH_ITER(hh, c->fetches, f, next)
		forget(c, f);
}

/* ---- answers ---- */

static void answer(struct coll *c, struct coll_peer *to, uint64_t id,
		   const struct coll_fetched *end)
{
	struct coll_msg msg = { .type = COLL_MSG_FETCHED };
	struct payload *value = end->value;
	struct payload_vec body = { .items = &value };

	msg.fetch.id = (uint32_t)id;
	msg.fetch.status = end->status;
	if (end->status != COLL_FETCH_FOUND)
		snprintf(msg.fault.reason, sizeof(msg.fault.reason), "%s",
			 end->why);
	if (value && value->len) {
		body.count = 1;
		body.bytes = value->len;
	}
	coll_send(c, to, &msg, &body);
}

/* Memory goes first: the host may want some to tell of the end. */
static void end(struct coll *c, struct fetch *f, const struct coll_fetched *how)
{
	struct coll_peer *from = f->from;
	uint64_t their_id = f->their_id;

	forget(c, f);
	if (from)
		answer(c, from, their_id, how);
	else
		c->ops->fetched(c->arg, their_id, how);
}

static void fail(struct coll *c, struct fetch *f, enum coll_fetch_status status,
		 const char *why)
{
	end(c, f, &(struct coll_fetched){ .status = status, .why = why });
}

static void fail_for(struct coll *c, struct fetch *f,
		     const struct payload *reason)
{
	char why[COLL_REASON_MAX];

	coll_reason_copy(why, reason);
	fail(c, f, COLL_FETCH_GONE, why);
}

static void fail_at_node(struct coll *c, struct fetch *f, const char *what)
{
	char why[COLL_REASON_MAX];

	snprintf(why, sizeof(why), "the node of rank %u %s", c->ranks[0], what);
	fail(c, f, COLL_FETCH_REFUSED, why);
}

/* ---- towards the owner ---- */

static uint32_t slot_of(const struct coll *c, uint32_t rank)
{
	uint32_t slot = 0;

	while (c->ranks[slot] != rank)
		slot++;
	return slot;
}

static void ask_host(struct coll *c, struct fetch *f,
		     const struct coll_fetch *what)
{
	int rc = -ENOTSUP;

	f->slot = slot_of(c, what->rank);
	f->side = coll_side_of_op(what->op, COLL_FETCH_PMIX);
	if (c->ops->fetch_asked)
		rc = c->ops->fetch_asked(c->arg, f->id, what);
	if (rc == -ENOMEM)
		fail_at_node(c, f, NO_MEMORY);
	else if (rc)
		fail_at_node(c, f, "cannot serve fetches of this kind");
}

/* The key as a body: false: no memory. */
static bool key_body(const struct coll_fetch *what, struct payload_vec *body)
{
	struct payload *key;

	payload_vec_init(body);
	if (!what->key_len)
		return true;
	key = payload_copy(what->key, what->key_len);
	if (key && !payload_vec_add(body, key)) {
		payload_unref(key);
		return true;
	}
	payload_unref(key);
	return false;
}

static void ask_peer(struct coll *c, struct fetch *f,
		     const struct coll_fetch *what)
{
	struct coll_msg msg = { .type = COLL_MSG_FETCH };
	struct payload_vec body;

	if (f->to->lost) {
		fail_for(c, f, f->to->why);
	} else if (!key_body(what, &body)) {
		fail_at_node(c, f, NO_MEMORY);
	} else {
		msg.fetch = (struct coll_fetch_msg){
			.id = f->id, .op = what->op, .rank = what->rank,
			.timeout = what->timeout,
		};
		coll_send(c, f->to, &msg, &body);
		payload_vec_clear(&body);
	}
}

/* NULL: this node; also a neighbour whose link is lost. */
static struct coll_peer *next_hop(const struct coll *c, uint32_t rank)
{
	uint32_t position = layout_rank_position(c->layout, rank);
	uint32_t i = tree_child_index(&c->place, position);

	if (position == c->place.range.first)
		return NULL;
	return i == TREE_NONE ? coll_parent(c) : &c->peers[i];
}

static void ask(struct coll *c, struct fetch *f, const struct coll_fetch *what)
{
	f->to = next_hop(c, what->rank);
	if (f->to)
		ask_peer(c, f, what);
	else
		ask_host(c, f, what);
}

static bool is_possible(const struct coll *c, const struct coll_fetch *what)
{
	return what->rank < layout_ranks(c->layout) &&
	       what->key_len <= COLL_FETCH_KEY_MAX;
}

int coll_fetch(struct coll *c, const struct coll_fetch *what, uint64_t id)
{
	struct fetch *f;

	if (!is_possible(c, what))
		return -EINVAL;
	if (c->own_fetches >= (uint64_t)COLL_FETCH_AHEAD_MAX * c->nslots)
		return -EAGAIN;
	f = add(c, NULL, id);
	if (!f)
		return -ENOMEM;
	ask(c, f, what);
	return 0;
}

int coll_fetch_answer(struct coll *c, uint64_t token,
		      const struct coll_fetched *how)
{
	struct fetch *f = find(c, token);

	if (!f || f->to)
		return -ENOENT;
	if (how->value && how->value->len > COLL_FETCH_BYTES_MAX)
		fail_at_node(c, f, "has a value that is too long for a fetch");
	else
		end(c, f, how);
	return 0;
}

size_t coll_fetches_pending(const struct coll *c)
{
	return c->own_fetches;
}

/* ---- messages ---- */

/* How many a neighbour may have under way: for the ranks on its side. */
static uint64_t limit_of(const struct coll *c, const struct coll_peer *peer)
{
	uint64_t ranks = layout_ranks(c->layout);

	if (peer == coll_parent(c))
		ranks -= coll_ranks_within(c, c->place.range);
	else
		ranks = coll_ranks_within(c, tree_child(&c->place,
							peer - c->peers));
	return COLL_FETCH_AHEAD_MAX * ranks;
}

static int receive_fetch(struct coll *c, struct coll_peer *peer,
			 const struct coll_msg *msg, const struct payload *body)
{
	const struct coll_fetch what = {
		.op = msg->fetch.op, .rank = msg->fetch.rank,
		.timeout = msg->fetch.timeout,
		.key = body ? body->data : NULL,
		.key_len = body ? body->len : 0,
	};
	struct fetch *f;

	if (!is_possible(c, &what) || next_hop(c, what.rank) == peer ||
	    peer->fetches >= limit_of(c, peer))
		return -EPROTO;
	f = add(c, peer, msg->fetch.id);
	if (f)
		ask(c, f, &what);
	else
		answer(c, peer, msg->fetch.id, &(struct coll_fetched){
			.status = COLL_FETCH_REFUSED,
			.why = "a node on the way has no memory for a fetch",
		});
	return 0;
}

static int receive_fetched(struct coll *c, const struct coll_peer *peer,
			   const struct coll_msg *msg, struct payload *body)
{
	struct coll_fetched how = {
		.status = msg->fetch.status, .why = msg->fault.reason,
	};
	struct fetch *f = find(c, msg->fetch.id);

	if (!f || f->to != peer || how.status >= COLL_FETCH_STATUSES ||
	    (body && body->len > COLL_FETCH_BYTES_MAX))
		return -EPROTO;
	if (how.status == COLL_FETCH_FOUND)
		how = (struct coll_fetched){ .value = body };
	end(c, f, &how);
	return 0;
}

int coll_fetch_receive(struct coll *c, struct coll_peer *peer,
		       const struct coll_msg *msg, struct payload *body)
{
	return msg->type == COLL_MSG_FETCH ? receive_fetch(c, peer, msg, body) :
					     receive_fetched(c, peer, msg, body);
}

/* ---- departures ---- */

void coll_fetches_link_lost(struct coll *c, const struct coll_peer *peer)
{
	struct fetch *f, *next;

	HASH_ITER(hh, c->fetches, f, next)
		if (f->to == peer)
			fail_for(c, f, peer->why);
}

void coll_fetches_rank_gone(struct coll *c, uint32_t slot, enum coll_side sides)
{
	struct fetch *f, *next;

	HASH_ITER(hh, c->fetches, f, next)
		if (!f->to && f->slot == slot && f->side & sides)
			fail_for(c, f, coll_slot_why(&c->slots[slot], f->side));
}
