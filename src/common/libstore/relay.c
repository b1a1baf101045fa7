/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests on their way to the root, and the answers on their way back. */
#include "libstore/relay.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>
#include <utlist.h>

#include "libstore/copies.h"
#include "libstore/request.h"
#include "libstore/store_msg.h"

#define ARRIVALS_FEW 16 /* askers, without memory for more */

struct flight;

/* A request of an asker. */
struct passenger {
	UT_hash_handle hh; /* in relay.passengers, by asker */
	struct asker asker;
	struct flight *flight;
	bool queued; /* for the next flight of the same request */
	bool behind; /* others of its client, see relay.h */
	struct passenger *prev, *next;
};

struct flight {
	UT_hash_handle hh;      /* in relay.flights, by number */
	UT_hash_handle by_name; /* in relay.reads, by name; one of each name */
	uint64_t number;
	bool waits, reads;
	struct copy *copy;      /* that its answer may make, or NULL */
	uint64_t changes;       /* of that, when the flight began */
	struct passenger *flying, *queued;
	struct payload *name;   /* the packed request behind its number; NULL: it reads nothing */
};

struct relay {
	struct relay_ops ops;
	struct budget *budget;
	struct copies *copies;
	struct flight *flights, *reads;
	struct passenger *passengers;
	uint64_t last_number;
	uint32_t queued_reads; /* queued passengers of flights that do not wait */
	bool lost;
	char why[STORE_TEXT_MAX];
};

/* ---- passengers ---- */

static void answer_text(const struct relay *r, const struct asker *to,
			enum store_status status, const char *text)
{
	const struct store_answer a = { .status = status, .text = text };
	struct asker one = *to;

	r->ops.answer(r->ops.arg, &one, 1, &a);
}

static struct passenger *add_passenger(struct relay *r, const struct asker *from)
{
	struct passenger *p = NULL;

	if (HASH_COUNT(r->passengers) < STORE_WAITS_MAX)
		p = calloc(1, sizeof(*p));
	if (!p)
		return NULL;
	p->asker = *from;
	HASH_ADD(hh, r->passengers, asker, sizeof(p->asker), p);
	if (p->hh.tbl)
		return p;
	free(p);
	return NULL;
}

static void board(struct relay *r, struct flight *f, struct passenger *p, bool queued)
{
	p->flight = f;
	p->queued = queued;
	if (queued)
		DL_APPEND(f->queued, p);
	else
		DL_APPEND(f->flying, p);
	r->queued_reads += queued && !f->waits;
}

static void leave(struct relay *r, struct passenger *p)
{
	struct flight *f = p->flight;

	if (p->queued)
		DL_DELETE(f->queued, p);
	else
		DL_DELETE(f->flying, p);
	r->queued_reads -= p->queued && !f->waits;
}

static void free_passenger(struct relay *r, struct passenger *p)
{
	leave(r, p);
	HASH_DEL(r->passengers, p);
	free(p);
}

/* ---- flights ---- */

static void free_flight(struct relay *r, struct flight *f)
{
	HASH_DELETE(hh, r->flights, f);
	if (f->by_name.tbl)
		HASH_DELETE(by_name, r->reads, f);
	copies_release(r->copies, f->copy);
	payload_unref(f->name);
	free(f);
}

/* NULL: no memory. `name` is referenced; NULL, where nothing may join the flight. */
static struct flight *add_flight(struct relay *r, const struct flight *like,
				 struct payload *name)
{
	struct flight *f = calloc(1, sizeof(*f));

	if (!f)
		return NULL;
	f->number = ++r->last_number;
	f->waits = like->waits;
	f->reads = like->reads;
	f->name = payload_ref(name);
	HASH_ADD(hh, r->flights, number, sizeof(f->number), f);
	if (f->hh.tbl && name)
		HASH_ADD_KEYPTR(by_name, r->reads, name->data, name->len, f);
	if (f->hh.tbl && (!name || f->by_name.tbl))
		return f;
	if (f->hh.tbl)
		HASH_DELETE(hh, r->flights, f);
	payload_unref(f->name);
	free(f);
	return NULL;
}

static void may_copy(struct flight *f, struct copy *copy)
{
	f->copy = copy;
	f->changes = copy ? copies_changes(copy) : 0;
}

/* The request of a name, with another number. */
static struct payload *message_of(const struct relay *r, const struct payload *name,
				  uint64_t number, bool behind)
{
	struct payload *m = payload_new_in(r->budget, STORE_MSG_NUMBERED + name->len);

	if (!m)
		return NULL;
	m->data[0] = behind ? STORE_MSG_BEHIND : STORE_MSG_ASK;
	for (int i = 0; i < 8; i++)
		m->data[1 + i] = (unsigned char)(number >> 8 * i);
	memcpy(m->data + STORE_MSG_NUMBERED, name->data, name->len);
	return m;
}

static void fail_queued(struct relay *r, struct flight *f)
{
	while (f->queued) {
		const struct asker to = f->queued->asker;

		free_passenger(r, f->queued);
		answer_text(r, &to, STORE_FULL, "no memory for a request on its way to the first node (see Pmi2xBufferLimit)");
	}
}

/* Queued passengers leave with a flight of their own. */
static void launch_queued(struct relay *r, struct flight *old)
{
	struct passenger *p, *next;
	struct payload *message;
	bool behind = false;
	struct flight *f;

	if (!old->queued)
		return;
	DL_FOREACH(old->queued, p)
		behind |= p->behind;
	HASH_DELETE(by_name, r->reads, old); /* the new one is to be joined */
	memset(&old->by_name, 0, sizeof(old->by_name));
	f = add_flight(r, old, old->name);
	message = f ? message_of(r, f->name, f->number, behind) : NULL;
	if (!message) {
		fail_queued(r, old);
		if (f)
			free_flight(r, f);
		return;
	}
	may_copy(f, copies_ref(old->copy));
	DL_FOREACH_SAFE(old->queued, p, next) {
		leave(r, p);
		board(r, f, p, false);
	}
	r->ops.send(r->ops.arg, message);
	payload_unref(message);
}

/* A request follows that is behind others. */
static void launch_all_reads(struct relay *r)
{
	struct flight *f, *next;

	if (!r->queued_reads)
		return;
	HASH_ITER(by_name, r->reads, f, next)
		if (!f->waits)
			launch_queued(r, f);
}

/* ---- asking ---- */

/* The packed request, or NULL. */
static struct payload *pack(const struct relay *r, enum store_space space,
			    const struct store_request *rq, uint64_t number)
{
	const struct store_msg m = {
		.type = STORE_MSG_ASK, .number = number, .space = space, .rq = *rq,
	};

	return store_msg_make(&m, r->budget);
}

static int start(struct relay *r, struct passenger *p, struct payload *message,
		 const struct flight *like, struct copy *copy)
{
	struct payload *name = NULL;
	struct flight *f;

	if (like->reads) {
		name = payload_slice(message, STORE_MSG_NUMBERED,
				     message->len - STORE_MSG_NUMBERED);
		if (!name)
			return -ENOMEM;
	}
	f = add_flight(r, like, name);
	payload_unref(name);
	if (!f)
		return -ENOMEM;
	may_copy(f, copies_ref(copy));
	board(r, f, p, false);
	r->ops.send(r->ops.arg, message);
	return 0;
}

static int join_or_start(struct relay *r, struct passenger *p, enum store_space space,
			 const struct store_request *rq)
{
	const struct flight like = { .waits = request_waits(rq), .reads = request_reads(rq) };
	struct payload *message = pack(r, space, rq, r->last_number + 1);
	struct flight *f = NULL;
	int rc = 0;

	if (!message)
		return -ENOMEM;
	if (like.reads)
		HASH_FIND(by_name, r->reads, message->data + STORE_MSG_NUMBERED,
			  message->len - STORE_MSG_NUMBERED, f);
	if (f) {
		board(r, f, p, true);
	} else {
		struct copy *copy = copies_read(r->copies, space, rq);

		rc = start(r, p, message, &like, copy);
		copies_release(r->copies, copy);
	}
	payload_unref(message);
	return rc;
}

/* False: there is none that it may have. */
static bool answer_from_copy(struct relay *r, const struct asker *from,
			     enum store_space space, const struct store_request *rq)
{
	struct payload *value = rq->behind ? NULL : copies_find(r->copies, space, rq);
	bool gets_it = rq->op == STORE_GET || rq->op == STORE_FETCH;
	struct store_answer a = { .number = rq->op == STORE_CHECK, .text = "" };
	struct asker one = *from;

	if (!value)
		return false;
	if (gets_it) {
		a.values = &value;
		a.nvalues = 1;
		a.copy = from->position != ASKER_HERE &&
			 copies_lend_found(r->copies, space, rq, from->position);
	}
	r->ops.answer(r->ops.arg, &one, 1, &a);
	return true;
}

void relay_ask(struct relay *r, const struct asker *from, enum store_space space,
	       const struct store_request *rq)
{
	struct passenger *p;

	if (r->lost) {
		answer_text(r, from, STORE_FAILED, r->why);
		return;
	}
	if (answer_from_copy(r, from, space, rq))
		return;
	if (request_changes(rq))
		copies_change(r->copies, space, rq->keys);
	if (rq->behind)
		launch_all_reads(r);
	p = add_passenger(r, from);
	if (p)
		p->behind = rq->behind;
	if (p && !join_or_start(r, p, space, rq))
		return;
	if (p) {
		HASH_DEL(r->passengers, p);
		free(p);
	}
	answer_text(r, from, STORE_FULL, "no memory for a request on its way to the first node (see Pmi2xBufferLimit)");
}

/* ---- answers ---- */

/* Askers that get one answer. Without memory for all it is given to a few at a time. */
struct arrivals {
	struct relay *relay;
	const struct store_answer *answer;
	struct asker few[ARRIVALS_FEW], *to;
	uint32_t n, room;
};

static uint32_t count_arrivals(const struct relay *r, const uint64_t *numbers, uint32_t n)
{
	const struct passenger *p;
	struct flight *f;
	uint32_t all = 0, of_one;

	for (uint32_t i = 0; i < n; i++) {
		HASH_FIND(hh, r->flights, &numbers[i], sizeof(numbers[i]), f);
		if (!f)
			continue;
		DL_COUNT(f->flying, p, of_one);
		all += of_one;
	}
	return all;
}

static void answer_arrivals(struct arrivals *a)
{
	if (a->n)
		a->relay->ops.answer(a->relay->ops.arg, a->to, a->n, a->answer);
	a->n = 0;
}

static void land(struct arrivals *a, struct flight *f)
{
	struct relay *r = a->relay;

	launch_queued(r, f);
	while (f->flying) {
		if (a->n == a->room)
			answer_arrivals(a);
		a->to[a->n++] = f->flying->asker;
		free_passenger(r, f->flying);
	}
	free_flight(r, f);
}

/* The queued passengers of a flight get its answer, unless one is behind others. */
static void let_all_fly(struct relay *r, struct flight *f)
{
	struct passenger *p, *next;

	DL_FOREACH(f->queued, p)
		if (p->behind)
			return;
	DL_FOREACH_SAFE(f->queued, p, next) {
		leave(r, p);
		board(r, f, p, false);
	}
}

/* The answer brings a value that may be kept. False: no child may keep it. */
static bool take_copy(struct relay *r, struct flight *f, const struct store_answer *a)
{
	struct passenger *p;
	bool lent = true;

	if (!f->copy || a->nvalues != 1 || !a->values[0])
		return false;
	if (copies_changes(f->copy) == f->changes)
		copies_keep(r->copies, f->copy, a->values[0]);
	if (copies_kept(f->copy))
		let_all_fly(r, f);
	DL_FOREACH(f->flying, p)
		if (p->asker.position != ASKER_HERE)
			lent &= copies_lend(f->copy, p->asker.position);
	return lent;
}

static void take_copies(struct relay *r, const uint64_t *numbers, uint32_t n,
			struct store_answer *a)
{
	struct flight *f = NULL;

	if (a->copy && n == 1)
		HASH_FIND(hh, r->flights, numbers, sizeof(*numbers), f);
	a->copy = f && take_copy(r, f, a);
}

void relay_answer(struct relay *r, const uint64_t *numbers, uint32_t n,
		  const struct store_answer *answer)
{
	struct store_answer mine = *answer;
	struct arrivals a = { .relay = r, .answer = &mine, .to = a.few, .room = ARRIVALS_FEW };
	struct asker *many = NULL;
	struct flight *f;
	uint32_t all;

	take_copies(r, numbers, n, &mine);
	all = count_arrivals(r, numbers, n);
	if (all > ARRIVALS_FEW)
		many = calloc(all, sizeof(*many));
	if (many) {
		a.to = many;
		a.room = all;
	}
	for (uint32_t i = 0; i < n; i++) {
		HASH_FIND(hh, r->flights, &numbers[i], sizeof(numbers[i]), f);
		if (f)
			land(&a, f);
	}
	answer_arrivals(&a);
	free(many);
}

void relay_recall(struct relay *r, enum store_space space, const struct store_bytes *key,
		  void (*fn)(void *arg, uint32_t position), void *arg)
{
	copies_recall(r->copies, space, key, fn, arg);
}

void relay_fail(struct relay *r, const char *why)
{
	struct passenger *p, *next;
	struct flight *f, *next_flight;

	r->lost = true;
	snprintf(r->why, sizeof(r->why), "%s", why);
	HASH_ITER(hh, r->passengers, p, next) {
		const struct asker to = p->asker;

		free_passenger(r, p);
		answer_text(r, &to, STORE_FAILED, r->why);
	}
	HASH_ITER(hh, r->flights, f, next_flight)
		free_flight(r, f);
}

/* ---- withdrawing ---- */

/* Nobody needs the answer of a request that waits: the parent forgets it. */
static void call_off(struct relay *r, struct flight *f)
{
	const struct store_msg m = { .type = STORE_MSG_CANCEL, .number = f->number };
	struct payload *message = store_msg_make(&m, NULL);

	if (!message) /* the answer is ignored when it comes */
		return;
	if (!r->lost)
		r->ops.send(r->ops.arg, message);
	payload_unref(message);
	free_flight(r, f);
}

static void withdraw(struct relay *r, struct passenger *p)
{
	struct flight *f = p->flight;

	free_passenger(r, p);
	if (f->waits && !f->flying && !f->queued)
		call_off(r, f);
}

bool relay_cancel(struct relay *r, const struct asker *from)
{
	struct passenger *p;

	HASH_FIND(hh, r->passengers, from, sizeof(*from), p);
	if (p)
		withdraw(r, p);
	return p != NULL;
}

void relay_forget(struct relay *r, uint32_t position)
{
	struct passenger *p, *next;

	HASH_ITER(hh, r->passengers, p, next)
		if (p->asker.position == position)
			withdraw(r, p);
}

/* ---- life ---- */

struct relay *relay_create(const struct relay_ops *ops, const struct store_options *options)
{
	struct relay *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	r->ops = *ops;
	r->budget = options->budget;
	r->copies = copies_create(options->bytes ? options->bytes : STORE_BYTES, options->seed);
	if (r->copies)
		return r;
	free(r);
	return NULL;
}

void relay_destroy(struct relay *r)
{
	struct passenger *p, *next;
	struct flight *f, *next_flight;

	if (!r)
		return;
	r->lost = true;
	HASH_ITER(hh, r->passengers, p, next)
		free_passenger(r, p);
	HASH_ITER(hh, r->flights, f, next_flight)
		free_flight(r, f);
	copies_destroy(r->copies);
	free(r);
}
