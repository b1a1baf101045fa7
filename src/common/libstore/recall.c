/* SPDX-License-Identifier: BSD-3-Clause */
/* Recalls copies of keys. held.c has the requests that wait for that. */
#include "libstore/recall.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libstore/held.h"
#include "libstore/store_msg.h"
#include "libstore/store_private.h"

/* ---- recalls under way ---- */

static struct recalling *find(const struct recall *r, uint64_t number)
{
	struct recalling *found;

	HASH_FIND(hh, r->active, &number, sizeof(number), found);
	return found;
}

struct recalling *recall_of(const struct recall *r, enum store_space space,
			    const struct store_bytes *key)
{
	struct recalling *found;

	HASH_FIND(by_key, r->keys[space], key->data, key->len, found);
	return found;
}

/* NULL: no memory. Only the root looks for recalls by their keys. */
static struct recalling *add(struct store *s, uint64_t number, enum store_space space,
			     const struct store_bytes *key)
{
	size_t children = (size_t)s->place.children + 1;
	struct recalling *x = calloc(1, sizeof(*x) + children + key->len);
	struct recall *r = &s->recall;

	if (!x)
		return NULL;
	x->number = number;
	x->space = space;
	x->key = (char *)&x->owes[children];
	if (key->len)
		memcpy(x->key, key->data, key->len);
	HASH_ADD(hh, r->active, number, sizeof(x->number), x);
	if (x->hh.tbl && !s->relay)
		HASH_ADD_KEYPTR(by_key, r->keys[space], x->key, key->len, x);
	if (x->hh.tbl && (s->relay || x->by_key.tbl))
		return x;
	if (x->hh.tbl)
		HASH_DELETE(hh, r->active, x);
	free(x);
	return NULL;
}

static void forget(struct recall *r, struct recalling *x)
{
	HASH_DELETE(hh, r->active, x);
	if (x->by_key.tbl)
		HASH_DELETE(by_key, r->keys[x->space], x);
}

/* ---- to the children ---- */

struct sending {
	struct store *store;
	struct recalling *recall;
	struct payload *message;
};

/* The host closes the window of a child that has gone. */
static void recall_from(void *arg, uint32_t position)
{
	struct sending *x = arg;
	struct store *s = x->store;
	const struct payload_vec v = { &x->message, 1, 1, x->message->len };
	struct window *w = store_window(s, position);
	uint32_t child = tree_child_index(&s->place, position);

	if (w->closed || x->recall->owes[child])
		return;
	x->recall->owes[child] = true;
	x->recall->owed++;
	window_send(w, &v, s->from_parent);
}

/* 0 or -ENOMEM: nothing has been recalled. */
static int send_recall(struct store *s, struct recalling *recall, enum store_space space,
		       const struct store_bytes *key)
{
	const struct store_msg m = {
		.type = STORE_MSG_RECALL, .number = recall->number, .space = space,
		.rq = { .op = STORE_GET, .keys = key, .nkeys = 1 },
	};
	struct sending x = { s, recall, store_msg_make(&m, s->budget) };

	if (!x.message)
		return -ENOMEM;
	if (s->relay)
		relay_recall(s->relay, space, key, recall_from, &x);
	else
		home_recall(s->step, space, key, recall_from, &x);
	payload_unref(x.message);
	return 0;
}

/* 0, and the recall, or NULL if no child has a copy; or -ENOMEM. */
static int begin(struct store *s, uint64_t number, enum store_space space,
		 const struct store_bytes *key, struct recalling **out)
{
	struct recalling *x = add(s, number, space, key);
	int rc = x ? send_recall(s, x, space, key) : -ENOMEM;

	*out = NULL;
	if (!x)
		return rc;
	if (!rc && x->owed) {
		*out = x;
		return 0;
	}
	forget(&s->recall, x);
	free(x);
	return rc;
}

int recall_for(struct store *s, enum store_space space, const struct store_request *rq,
	       struct recalling **out)
{
	*out = NULL;
	if (!request_changes(rq) || !home_is_lent(s->step, space, rq->keys))
		return 0;
	return begin(s, ++s->recall.last_number, space, rq->keys, out);
}

/* ---- answers ---- */

/* Not through the window; see recall.h. */
static int send_recalled(struct store *s, uint64_t number)
{
	const struct store_msg m = { .type = STORE_MSG_RECALLED, .number = number };
	struct payload *message = store_msg_make(&m, NULL);
	const struct payload_vec v = { &message, 1, 1, message ? message->len : 0 };

	if (!message)
		return -ENOMEM;
	s->ops.send(s->ops.arg, s->place.parent, &v);
	payload_unref(message);
	return 0;
}

static int child_owes_nothing(struct store *s, struct recalling *x, uint32_t child)
{
	int rc = 0;

	x->owes[child] = false;
	if (--x->owed)
		return 0;
	forget(&s->recall, x);
	if (s->relay)
		rc = send_recalled(s, x->number);
	else
		held_go_on(s, x);
	free(x);
	return rc;
}

int recall_begin(struct store *s, const struct store_msg *m)
{
	struct recalling *x = find(&s->recall, m->number);
	int rc = x ? -EPROTO : begin(s, m->number, m->space, m->rq.keys, &x);

	return rc || x ? rc : send_recalled(s, m->number);
}

int recall_end(struct store *s, uint32_t child, uint64_t number)
{
	struct recalling *x = find(&s->recall, number);
	uint32_t i = tree_child_index(&s->place, child);

	if (child == s->place.parent || !x || !x->owes[i])
		return -EPROTO;
	return child_owes_nothing(s, x, i);
}

void recall_child_gone(struct store *s, uint32_t child)
{
	struct recalling *x, *next;

	HASH_ITER(hh, s->recall.active, x, next)
		if (x->owes[child])
			(void)child_owes_nothing(s, x, child);
}

/* ---- life ---- */

int recall_init(struct recall *r, uint32_t children)
{
	r->sources = calloc((size_t)children + 1, sizeof(*r->sources));
	return r->sources ? 0 : -ENOMEM;
}

void recall_free(struct recall *r, uint32_t children)
{
	struct recalling *x, *next;

	for (uint32_t i = 0; r->sources && i <= children; i++)
		held_free(&r->sources[i]);
	HASH_ITER(hh, r->active, x, next) {
		forget(r, x);
		free(x);
	}
	free(r->sources);
}
