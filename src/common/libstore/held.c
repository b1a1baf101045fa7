/* SPDX-License-Identifier: BSD-3-Clause */
/* Holds requests at the root until a recall has ended, or earlier requests are carried out. */
#include "libstore/held.h"

#include <stdlib.h>

#include "libstore/store_msg.h"

struct held {
	struct held *prev, *next;           /* of its source */
	struct held *prev_on, *next_on;     /* that wait for the same recall */
	struct recalling *on;               /* NULL: it waits for earlier ones of its source */
	struct asker from;
	struct payload *message; /* ASK */
	struct debt *debt;
};

static void answer_no_memory(struct store *s, const struct asker *from)
{
	const struct store_answer a = {
		.status = STORE_FULL,
		.text = "no memory to change a key of which other nodes have copies (see Pmi2xBufferLimit)",
	};
	struct asker one = *from;

	store_answer(s, &one, 1, &a);
}

static struct held_source *source_of(const struct store *s, uint32_t position)
{
	uint32_t i = position == ASKER_HERE ? s->place.children :
					      tree_child_index(&s->place, position);

	return &s->recall.sources[i];
}

/* ---- what a request waits for ---- */

/* The recall of a key of the request; NULL: none. */
static struct recalling *recall_in_the_way(const struct store *s, enum store_space space,
					   const struct store_request *rq)
{
	struct recalling *x = NULL;

	if (!s->recall.active || (!request_reads(rq) && !request_changes(rq)))
		return NULL;
	for (uint32_t i = 0; !x && i < rq->nkeys; i++)
		x = recall_of(&s->recall, space, &rq->keys[i]);
	return x;
}

/* Another request of its source comes first. `h` is the request, if it is held. */
static bool is_behind(const struct store *s, const struct asker *from,
		      const struct store_request *rq, const struct held *h)
{
	const struct held *first = source_of(s, from->position)->held;

	return rq->behind && first && first != h;
}

/* True: it has been carried out, or has failed; false: it waits, for `on` unless that is NULL. */
static bool try_request(struct store *s, const struct asker *from, enum store_space space,
			const struct store_request *rq, const struct held *h,
			struct recalling **on)
{
	*on = recall_in_the_way(s, space, rq);
	if (*on || is_behind(s, from, rq, h))
		return false;
	if (recall_for(s, space, rq, on))
		answer_no_memory(s, from);
	else if (!*on)
		home_ask(s->step, from, space, rq);
	return !*on;
}

/* ---- held requests ---- */

static void wait_for(struct held *h, struct recalling *on)
{
	h->on = on;
	if (on)
		DL_APPEND2(on->held, h, prev_on, next_on);
}

static void wait_no_more(struct held *h)
{
	if (h->on)
		DL_DELETE2(h->on->held, h, prev_on, next_on);
	h->on = NULL;
}

static void free_held(struct held_source *source, struct held *h)
{
	wait_no_more(h);
	DL_DELETE(source->held, h);
	payload_unref(h->message);
	debt_unref(h->debt);
	free(h);
}

static void hold(struct store *s, const struct asker *from, enum store_space space,
		 const struct store_request *rq, struct recalling *on)
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
	DL_APPEND(source_of(s, from->position)->held, h);
	wait_for(h, on);
}

void recall_ask(struct store *s, const struct asker *from, enum store_space space,
		const struct store_request *rq)
{
	struct recalling *on;

	if (!try_request(s, from, space, rq, NULL, &on))
		hold(s, from, space, rq, on);
}

/* Once more. False: it waits. */
static bool retry(struct store *s, struct held *h)
{
	struct recalling *on = NULL;
	struct store_msg m;
	bool done = true;

	wait_no_more(h);
	if (store_msg_unpack(&m, h->message)) {
		answer_no_memory(s, &h->from);
	} else {
		done = try_request(s, &h->from, m.space, &m.rq, h, &on);
		store_msg_free(&m);
	}
	if (done)
		free_held(source_of(s, h->from.position), h);
	else
		wait_for(h, on);
	return done;
}

/* The first request of a source is another one now: it goes on if it waits for no recall. */
static void look(struct store *s, struct held_source *source)
{
	while (source->held && !source->held->on && retry(s, source->held))
		;
}

void held_go_on(struct store *s, struct recalling *x)
{
	while (x->held) {
		struct held_source *source = source_of(s, x->held->from.position);

		(void)retry(s, x->held);
		look(s, source);
	}
}

/* ---- withdrawing ---- */

bool recall_cancel(struct store *s, const struct asker *from)
{
	struct held_source *source = source_of(s, from->position);
	struct held *h;

	DL_FOREACH(source->held, h)
		if (h->from.number == from->number)
			break;
	if (!h)
		return false;
	free_held(source, h);
	look(s, source);
	return true;
}

void recall_forget(struct store *s, uint32_t position)
{
	held_free(source_of(s, position));
}

void held_free(struct held_source *source)
{
	while (source->held)
		free_held(source, source->held);
}
