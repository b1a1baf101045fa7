/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fetching a value that one rank has put, whether or not a fence has brought it: what
 * ranks of this node ask for, and what is asked of them.
 *
 * Where the values of a rank are, the newest first:
 *   - what it has put through the memory that it shares with the agent (slots.h);
 *   - what it has sent and no fence has taken, and what such fences have;
 *   - the latest FETCH_KEPT_MAX bytes of what fences have published for it;
 *   - for what is older, the KVS, in which a key has one value, whoever has put it.
 *
 * A value that is not there is waited for here, on the owner's node. The rank is told
 * (slots_watch) that each put is to wake the agent.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <utlist.h>

#include "libcoll/fetch.h"
#include "libengine/engine.h"
#include "libengine/pending.h"
#include "libengine/rank.h"
#include "libengine/request.h"
#include "libengine/results.h"
#include "libpmi/extension.h"
#include "libshm/records.h"

#define NEVER UINT64_MAX     /* as a time in ms */
#define PATIENCE_MS 5000     /* for an answer that says that the time is over */
#define KEY_SHOWN_MAX 64     /* bytes of a key in a reason */

/* A fetch that waits for a rank of this node. */
struct fetch_wait {
	struct fetch_wait *prev, *next;
	uint64_t token;
	uint64_t due;
	bool fresh; /* not looked for yet */
	size_t key_len;
	char key[];
};

/* A fetch of a rank of this node. */
struct fetch_ask {
	struct fetch_ask *prev, *next;
	uint64_t id;
	uint64_t due;
	uint32_t owner;
	struct rank_request rq;
};

/* ---- time ---- */

static uint64_t due_in(const struct pmi_server *s, uint64_t ms)
{
	return s->ops->now ? s->ops->now(s->arg) + ms : NEVER;
}

static void wake_at(struct pmi_server *s, uint64_t due)
{
	uint64_t now;

	if (due >= s->fetches.due || !s->ops->now)
		return;
	now = s->ops->now(s->arg);
	s->fetches.due = due;
	s->ops->fetch_timer(s->arg, due > now ? due - now : 0);
}

/* ---- what a rank has put ---- */

void fetch_keep(struct rank_session *ss, struct payload *records)
{
	struct payload_vec *kept = &ss->kept;

	if (!records)
		return;
	if (payload_vec_add(kept, records))
		ss->kept_cut = true;
	while (kept->bytes > FETCH_KEPT_MAX) {
		payload_vec_drop(kept, 1);
		ss->kept_cut = true;
	}
}

/* The last record of the key in a block; it may end in what is no record. */
static bool find_in(const void *block, size_t len, const struct fetch_wait *w,
		    struct record *out)
{
	struct record r;
	size_t at = 0;
	bool found = false;

	while (record_next(block, len, &at, &r) == 1)
		if (r.key_len == w->key_len &&
		    !memcmp(r.key, w->key, w->key_len)) {
			*out = r;
			found = true;
		}
	return found;
}

static bool find_entered(const struct rank_session *ss,
			 const struct fetch_wait *w, struct record *out)
{
	const struct entered *e;
	bool found = false;

	DL_FOREACH(ss->entered, e)
		if (e->records && find_in(e->records->data, e->records->len, w, out))
			found = true;
	return found;
}

static bool find_kept(const struct rank_session *ss, const struct fetch_wait *w,
		      struct record *out)
{
	for (size_t i = ss->kept.count; i-- > 0;)
		if (find_in(ss->kept.items[i]->data, ss->kept.items[i]->len, w,
			    out))
			return true;
	return false;
}

static bool find_published(const struct rank_session *ss,
			   const struct fetch_wait *w, struct record *out)
{
	const char *value;
	size_t len;

	if (!ss->kept_cut ||
	    !results_find(&ss->server->results, w->key, w->key_len, &value, &len))
		return false;
	out->value = value;
	out->value_len = len;
	return true;
}

/* `shown` is a copy of what the rank shares. */
static bool find_value(const struct rank_session *ss, const struct buf *shown,
		       const struct fetch_wait *w, struct record *out)
{
	return find_in(shown->data, shown->len, w, out) ||
	       find_in(ss->pending.data, ss->pending.len, w, out) ||
	       find_entered(ss, w, out) || find_kept(ss, w, out) ||
	       find_published(ss, w, out);
}

/* ---- answers ---- */

static void remove_wait(struct rank_session *ss, struct fetch_wait *w)
{
	DL_DELETE(ss->fetch_waits, w);
	ss->server->fetches.waits--;
	free(w);
}

static void answer(struct rank_session *ss, struct fetch_wait *w,
		   const struct coll_fetched *end)
{
	uint64_t token = w->token;

	remove_wait(ss, w);
	(void)coll_fetch_answer(ss->server->coll, token, end);
}

static void answer_without(struct rank_session *ss, struct fetch_wait *w,
			   enum coll_fetch_status status, const char *why)
{
	answer(ss, w, &(struct coll_fetched){ .status = status, .why = why });
}

static void answer_value(struct rank_session *ss, struct fetch_wait *w,
			 const struct record *r)
{
	struct coll_fetched end = { .status = COLL_FETCH_FOUND };

	end.value = payload_copy_in(ss->server->step->budget, r->value,
				    r->value_len);
	if (end.value)
		answer(ss, w, &end);
	else
		answer_without(ss, w, COLL_FETCH_REFUSED, answer_text(-ENOMEM));
	payload_unref(end.value);
}

static void answer_absent(struct rank_session *ss, struct fetch_wait *w,
			  enum coll_fetch_status status, const char *before,
			  const char *after)
{
	char why[COLL_REASON_MAX], key[KEY_SHOWN_MAX + 1];

	snprintf(key, sizeof(key), "%.*s", (int)w->key_len, w->key);
	control_printable(key);
	snprintf(why, sizeof(why), "rank %u (node %s) has %s %s%s", ss->rank,
		 engine_node_name(ss->server), before, key, after);
	answer_without(ss, w, status, why);
}

/* A rank that was killed has no values any more. */
static bool has_died(const struct rank_session *ss)
{
	return ss->state == RANK_GONE && !ss->finalized;
}

/* Answer, or go on waiting. */
static void look(struct rank_session *ss, const struct buf *shown,
		 struct fetch_wait *w)
{
	struct record r;

	w->fresh = false;
	if (has_died(ss))
		answer_without(ss, w, COLL_FETCH_GONE, ss->pmi_why);
	else if (find_value(ss, shown, w, &r))
		answer_value(ss, w, &r);
	else if (ss->state == RANK_FINALIZED || ss->state == RANK_GONE)
		answer_absent(ss, w, COLL_FETCH_GONE,
			      "finalized without putting", "");
	else if (!w->due)
		answer_absent(ss, w, COLL_FETCH_ABSENT, "not put", "");
	else
		wake_at(ss->server, w->due);
}

/* ---- looking ---- */

static bool has_fresh(const struct rank_session *ss)
{
	const struct fetch_wait *w;

	DL_FOREACH(ss->fetch_waits, w)
		if (w->fresh)
			return true;
	return false;
}

/*
 * The state of a session: if it differs from the state that was seen last, the session
 * must be looked through again.
 */
static struct fetch_seen seen_now(const struct rank_session *ss)
{
	struct fetch_seen seen = {
		.put = ss->put + ss->pending.len, .state = ss->state,
	};

	if (ss->slot_use != RANK_SLOT_NONE)
		seen.shown = slots_shown(ss->server->slots, ss->slot);
	return seen;
}

static bool has_news(const struct rank_session *ss)
{
	struct fetch_seen now = seen_now(ss);

	return now.put != ss->seen.put || now.shown != ss->seen.shown ||
	       now.state != ss->seen.state;
}

static void watch(const struct rank_session *ss)
{
	if (ss->slot_use != RANK_SLOT_NONE)
		slots_watch(ss->server->slots, ss->slot, ss->fetch_waits != NULL);
}

/*
 * The rank may put and enter a fence meanwhile: what it shares is read first, for what
 * has left that memory since is found where the fence has taken it.
 */
static void look_at(struct rank_session *ss, struct buf *shown)
{
	struct fetch_wait *w, *next;
	bool news = has_news(ss);

	if (!news && !has_fresh(ss))
		return;
	watch(ss);
	ss->seen = seen_now(ss);
	buf_clear(shown);
	if (ss->slot_use != RANK_SLOT_NONE)
		(void)slots_copy_shown(ss->server->slots, ss->slot, shown);
	slots_take_own(ss);
	DL_FOREACH_SAFE(ss->fetch_waits, w, next)
		if (news || w->fresh)
			look(ss, shown, w);
	watch(ss);
}

void fetches_look(struct pmi_server *s)
{
	struct buf shown;

	if (!s->fetches.waits)
		return;
	buf_init(&shown, SLOT_SHOWN_MAX);
	for (uint32_t i = 0; i < s->nslots; i++)
		if (s->sessions[i].fetch_waits)
			look_at(&s->sessions[i], &shown);
	buf_free(&shown);
}

/* ---- asked of a rank of this node ---- */

int fetch_asked(struct pmi_server *s, uint64_t token,
		const struct coll_fetch *what)
{
	struct rank_session *ss = s->sessions;
	struct fetch_wait *w;

	if (what->op != FETCH_VALUE || !what->key_len)
		return -EINVAL;
	while (ss->rank != what->rank)
		ss++;
	w = calloc(1, sizeof(*w) + what->key_len);
	if (!w)
		return -ENOMEM;
	w->token = token;
	w->fresh = true;
	w->key_len = what->key_len;
	memcpy(w->key, what->key, what->key_len);
	if (what->timeout == COLL_FETCH_FOREVER)
		w->due = NEVER;
	else if (what->timeout && s->ops->now)
		w->due = due_in(s, what->timeout);
	DL_APPEND(ss->fetch_waits, w);
	s->fetches.waits++;
	return 0;
}

void fetch_rank_gone(struct rank_session *ss)
{
	while (ss->fetch_waits)
		remove_wait(ss, ss->fetch_waits);
}

/* ---- asked by a rank of this node ---- */

static void remove_ask(struct rank_session *ss, struct fetch_ask *a)
{
	DL_DELETE(ss->fetch_asks, a);
	ss->nfetches--;
	free(a);
}

static int status_rc(enum coll_fetch_status status)
{
	switch (status) {
	case COLL_FETCH_ABSENT:
		return PMI_RC_INVALID_KEY;
	case COLL_FETCH_GONE:
		return PMI_RC_OTHER;
	default:
		return PMI_RC_FAIL;
	}
}

static void answer_ask(struct rank_session *ss, struct fetch_ask *a,
		       const struct coll_fetched *end)
{
	const struct payload *value = end->value;

	if (end->status == COLL_FETCH_FOUND)
		answer_found(ss, &a->rq,
			     value ? (const char *)value->data : "",
			     value ? value->len : 0);
	else
		answer_error(ss, &a->rq, status_rc(end->status), "%s", end->why);
	remove_ask(ss, a);
}

void fetch_ended(struct pmi_server *s, uint64_t id, const struct coll_fetched *end)
{
	struct rank_session *ss = &s->sessions[id % s->nslots];
	struct fetch_ask *a, *next;

	DL_FOREACH_SAFE(ss->fetch_asks, a, next)
		if (a->id == id)
			answer_ask(ss, a, end);
}

static void give_up(struct rank_session *ss, struct fetch_ask *a)
{
	const struct pmi_step *step = ss->server->step;
	uint32_t position = layout_rank_position(step->layout, a->owner);

	answer_error(ss, &a->rq, PMI_RC_OTHER,
		     "node %s has not answered for rank %u in time",
		     step->node_names[layout_node_id(step->layout, position)],
		     a->owner);
	remove_ask(ss, a);
}

static struct fetch_ask *note_ask(struct rank_session *ss,
				  const struct rank_request *rq,
				  const struct coll_fetch *what)
{
	struct pmi_server *s = ss->server;
	struct fetch_ask *a = calloc(1, sizeof(*a));

	if (!a)
		return NULL;
	a->id = s->fetches.next++ * s->nslots + ss->slot;
	a->owner = what->rank;
	a->due = what->timeout == COLL_FETCH_FOREVER ? NEVER :
		 due_in(s, (uint64_t)what->timeout + PATIENCE_MS);
	a->rq = *rq;
	ss->nfetches++;
	DL_APPEND(ss->fetch_asks, a);
	wake_at(s, a->due);
	return a;
}

static void ask(struct rank_session *ss, const struct rank_request *rq,
		const struct coll_fetch *what)
{
	struct fetch_ask *a = NULL;
	int rc = -EAGAIN;

	if (ss->nfetches < COLL_FETCH_AHEAD_MAX) {
		a = note_ask(ss, rq, what);
		rc = a ? coll_fetch(ss->server->coll, what, a->id) : -ENOMEM;
	}
	if (!rc)
		return;
	if (a)
		remove_ask(ss, a);
	if (rc == -EAGAIN)
		answer_error(ss, rq, PMI_RC_OTHER,
			     "too many fetches are under way");
	else
		answer_error(ss, rq, answer_rc(rc), "%s", answer_text(rc));
}

/* -1: no limit. */
static int read_timeout(const struct pmi_message *m, uint32_t *out)
{
	int ms = 0;

	if (pmi_message_int(m, EXT_KEY_TIMEOUT, &ms) == -EINVAL || ms < -1)
		return -EINVAL;
	*out = ms < 0 ? COLL_FETCH_FOREVER : (uint32_t)ms;
	return 0;
}

void fetch_handle(struct rank_session *ss, const struct rank_request *rq,
		  const struct pmi_message *m)
{
	const struct layout *l = ss->server->step->layout;
	struct coll_fetch what = { .op = FETCH_VALUE };
	const struct pmi_field *key;
	int rank;

	if (pmi_message_int(m, EXT_KEY_RANK, &rank) || rank < 0 ||
	    (uint32_t)rank >= layout_ranks(l)) {
		answer_error(ss, rq, PMI_RC_INVALID_ARG,
			     "rank is missing, or none of the %u of the step",
			     layout_ranks(l));
		return;
	}
	if (read_timeout(m, &what.timeout)) {
		answer_error(ss, rq, PMI_RC_INVALID_ARG,
			     "timeout is neither a number of milliseconds nor -1");
		return;
	}
	key = rank_key(ss, rq, m, EXT_KEY_KEY, COLL_FETCH_KEY_MAX);
	if (!key)
		return;
	what.rank = (uint32_t)rank;
	what.key = key->value;
	what.key_len = key->value_len;
	ask(ss, rq, &what);
}

void fetch_handle_cancel(struct rank_session *ss, const struct rank_request *rq,
			 const struct pmi_message *m)
{
	while (ss->fetch_asks) {
		answer_error(ss, &ss->fetch_asks->rq, PMI_RC_OTHER,
			     "the rank has given it up");
		remove_ask(ss, ss->fetch_asks);
	}
	answer_ok(ss, rq);
}

void fetch_drop(struct rank_session *ss)
{
	while (ss->fetch_asks)
		remove_ask(ss, ss->fetch_asks);
}

/* ---- what is over ---- */

static uint64_t expire_waits(struct rank_session *ss, uint64_t now)
{
	struct fetch_wait *w, *next;
	uint64_t due = NEVER;

	DL_FOREACH_SAFE(ss->fetch_waits, w, next)
		if (w->due <= now)
			answer_absent(ss, w, COLL_FETCH_ABSENT,
				      "not put", " in time");
		else if (w->due < due)
			due = w->due;
	return due;
}

static uint64_t expire_asks(struct rank_session *ss, uint64_t now)
{
	struct fetch_ask *a, *next;
	uint64_t due = NEVER;

	DL_FOREACH_SAFE(ss->fetch_asks, a, next)
		if (a->due <= now)
			give_up(ss, a);
		else if (a->due < due)
			due = a->due;
	return due;
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

void fetches_expire(struct pmi_server *s)
{
	uint64_t now = s->ops->now(s->arg), due = NEVER;

	fetches_look(s);
	s->fetches.due = NEVER;
	for (uint32_t i = 0; i < s->nslots; i++) {
		due = earlier(due, expire_waits(&s->sessions[i], now));
		due = earlier(due, expire_asks(&s->sessions[i], now));
	}
	wake_at(s, due);
}

void fetches_free(struct pmi_server *s)
{
	for (uint32_t i = 0; s->sessions && i < s->nslots; i++) {
		fetch_rank_gone(&s->sessions[i]);
		fetch_drop(&s->sessions[i]);
		payload_vec_clear(&s->sessions[i].kept);
	}
}
