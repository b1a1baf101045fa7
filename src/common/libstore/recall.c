/* SPDX-License-Identifier: BSD-3-Clause */
/* Recalls copies of a key, and holds what must wait for it. */
#include "libstore/recall.h"

#include <errno.h>
#include <stdlib.h>

#include "libstore/store_msg.h"
#include "libstore/store_private.h"

/* A request that waits for the end of a recall. */
struct held {
	struct held *prev, *next;
	struct asker from;
	struct payload *message; /* ASK */
	struct debt *debt;
};

/* ---- to the children ---- */

struct recalling {
	struct store *store;
	struct payload *message;
};

/* The host closes the window of a child that has gone. */
static void recall_from(void *arg, uint32_t position)
{
	struct recalling *x = arg;
	struct store *s = x->store;
	const struct payload_vec v = { &x->message, 1, 1, x->message->len };
	struct window *w = store_window(s, position);
	uint32_t child = tree_child_index(&s->place, position);

	if (w->closed || s->recall.owes[child])
		return;
	s->recall.owes[child] = true;
	s->recall.owed++;
	window_send(w, &v, s->from_parent);
}

/* 0 or -ENOMEM: nothing has been recalled. */
static int recall_key(struct store *s, enum store_space space, const struct store_bytes *key)
{
	const struct store_msg m = {
		.type = STORE_MSG_RECALL, .space = space,
		.rq = { .op = STORE_GET, .keys = key, .nkeys = 1 },
	};
	struct recalling x = { s, store_msg_make(&m, s->budget) };

	if (!x.message)
		return -ENOMEM;
	if (s->relay)
		relay_recall(s->relay, space, key, recall_from, &x);
	else
		home_recall(s->step, space, key, recall_from, &x);
	payload_unref(x.message);
	return 0;
}

/* ---- at the root ---- */

static void answer_no_memory(struct store *s, const struct asker *from)
{
	const struct store_answer a = {
		.status = STORE_FULL,
		.text = "no memory to change a key of which other nodes have copies (see Pmi2xBufferLimit)",
	};
	struct asker one = *from;

	store_answer(s, &one, 1, &a);
}

/* Recall the copies of the key that the request changes. */
static int recall_for(struct store *s, enum store_space space, const struct store_request *rq)
{
	if (!request_changes(rq) || !home_is_lent(s->step, space, rq->keys))
		return 0;
	return recall_key(s, space, rq->keys);
}

static void hold(struct store *s, const struct asker *from, enum store_space space,
		 const struct store_request *rq)
{
	const struct store_msg m = { .type = STORE_MSG_ASK, .space = space, .rq = *rq };
	struct held *h = calloc(1, sizeof(*h));

	if (h)
		h->message = store_msg_make(&m, s->budget);
	if (!h || !h->message) {
		free(h);
		answer_no_memory(s, from);
		return;
	}
	h->from = *from;
	h->debt = s->from_child;
	if (h->debt)
		h->debt->refs++;
	DL_APPEND(s->recall.held, h);
}

void recall_ask(struct store *s, const struct asker *from, enum store_space space,
		const struct store_request *rq)
{
	if (!s->recall.owed && recall_for(s, space, rq))
		answer_no_memory(s, from);
	else if (s->recall.owed)
		hold(s, from, space, rq);
	else
		home_ask(s->step, from, space, rq);
}

static void free_held(struct held *h)
{
	payload_unref(h->message);
	debt_unref(h->debt);
	free(h);
}

/* False: it needs a recall, and stays the first one. */
static bool carry_out(struct store *s, struct held *h)
{
	struct store_msg m;

	if (store_msg_unpack(&m, h->message)) {
		answer_no_memory(s, &h->from);
		return true;
	}
	if (recall_for(s, m.space, &m.rq))
		answer_no_memory(s, &h->from);
	else if (!s->recall.owed)
		home_ask(s->step, &h->from, m.space, &m.rq);
	store_msg_free(&m);
	return !s->recall.owed;
}

static void carry_out_held(struct store *s)
{
	struct held *h;

	while (!s->recall.owed && (h = s->recall.held)) {
		if (!carry_out(s, h))
			return;
		DL_DELETE(s->recall.held, h);
		free_held(h);
	}
}

bool recall_cancel(struct store *s, const struct asker *from)
{
	struct held *h;

	DL_FOREACH(s->recall.held, h)
		if (h->from.number == from->number && h->from.position == from->position)
			break;
	if (!h)
		return false;
	DL_DELETE(s->recall.held, h);
	free_held(h);
	return true;
}

void recall_forget(struct store *s, uint32_t position)
{
	struct held *h, *next;

	DL_FOREACH_SAFE(s->recall.held, h, next) {
		if (h->from.position != position)
			continue;
		DL_DELETE(s->recall.held, h);
		free_held(h);
	}
}

/* ---- answers ---- */

/* Not through the window; see recall.h. */
static int send_recalled(struct store *s)
{
	const struct store_msg m = { .type = STORE_MSG_RECALLED };
	struct payload *message = store_msg_make(&m, NULL);
	const struct payload_vec v = { &message, 1, 1, message ? message->len : 0 };

	if (!message)
		return -ENOMEM;
	s->ops.send(s->ops.arg, s->place.parent, &v);
	payload_unref(message);
	return 0;
}

static int look(struct store *s)
{
	if (s->recall.owed)
		return 0;
	if (s->relay)
		return send_recalled(s);
	carry_out_held(s);
	return 0;
}

static int child_owes_nothing(struct store *s, uint32_t index)
{
	s->recall.owes[index] = false;
	s->recall.owed--;
	return look(s);
}

int recall_begin(struct store *s, const struct store_msg *m)
{
	int rc = s->recall.owed ? -EPROTO : recall_key(s, m->space, m->rq.keys);

	return rc ? rc : look(s);
}

int recall_end(struct store *s, uint32_t child)
{
	uint32_t i = tree_child_index(&s->place, child);

	if (child == s->place.parent || !s->recall.owes[i])
		return -EPROTO;
	return child_owes_nothing(s, i);
}

void recall_child_gone(struct store *s, uint32_t child)
{
	if (s->recall.owes[child])
		(void)child_owes_nothing(s, child);
}

/* ---- life ---- */

int recall_init(struct recall *r, uint32_t children)
{
	r->owes = calloc((size_t)children + 1, sizeof(*r->owes));
	return r->owes ? 0 : -ENOMEM;
}

void recall_free(struct recall *r)
{
	struct held *h, *next;

	DL_FOREACH_SAFE(r->held, h, next)
		free_held(h);
	free(r->owes);
}
