/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages of neighbours in the tree, and the ends of neighbours. */
#include "libstore/store_private.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libstore/store_msg.h"

/* ---- to neighbours ---- */

static void send_vec(struct store *s, uint32_t position, const struct payload_vec *message)
{
	bool up = position == s->place.parent;

	window_send(store_window(s, position), message, up ? s->from_child : s->from_parent);
}

static void send_payload(struct store *s, uint32_t position, struct payload *message)
{
	const struct payload_vec v = { &message, 1, 1, message->len };

	send_vec(s, position, &v);
}

static void send_to(struct store *s, uint32_t position, const struct store_msg *m)
{
	struct payload *message = store_msg_make(m, NULL);

	if (message)
		send_payload(s, position, message);
	payload_unref(message);
}

void node_send_up(void *store, struct payload *message)
{
	struct store *s = store;

	send_payload(s, s->place.parent, message);
}

static const struct store_answer lacks = {
	.status = STORE_FULL, .text = "no memory for an answer (see Pmi2xBufferLimit)",
};

static void send_lack(struct store *s, const struct asker *to)
{
	const struct store_msg m = {
		.type = STORE_MSG_ANSWER, .number = to->number, .answer = lacks,
	};

	send_to(s, to->position, &m);
}

void node_send_answer(struct store *s, const struct asker *to, uint32_t n,
		      const struct store_answer *answer)
{
	uint64_t one = to->number, *numbers = n > 1 ? calloc(n, sizeof(*numbers)) : &one;
	int rc = numbers ? 0 : -ENOMEM;
	struct payload_vec v;

	payload_vec_init(&v);
	for (uint32_t i = 0; numbers && i < n; i++)
		numbers[i] = to[i].number;
	rc = rc ? rc : store_msg_make_answer(&v, numbers, n, answer, s->budget);
	if (!rc)
		send_vec(s, to->position, &v);
	for (uint32_t i = 0; rc && i < n; i++)
		send_lack(s, &to[i]);
	payload_vec_clear(&v);
	if (numbers != &one)
		free(numbers);
}

void node_send_gone(void *store, uint32_t rank, const char *how)
{
	struct store_msg m = { .type = STORE_MSG_GONE, .rank = rank };
	struct store *s = store;

	snprintf(m.text, sizeof(m.text), "%s", how);
	send_to(s, s->place.parent, &m);
}

/* ---- beginning, and neighbours that have gone ---- */

static void rank_gone(struct store *s, uint32_t rank, const char *how)
{
	if (s->relay)
		node_send_gone(s, rank, how);
	else
		home_rank_gone(s->step, rank, how);
}

static void forget_at_home(struct store *s, uint32_t position)
{
	recall_forget(s, position);
	home_forget(s->step, position);
}

static void child_gone(struct store *s, uint32_t child, const char *why)
{
	struct tree_range range = tree_child(&s->place, child);
	uint32_t count;

	if (s->relay)
		relay_forget(s->relay, range.first);
	else
		forget_at_home(s, range.first);
	recall_child_gone(s, child);
	for (uint32_t position = range.first; position < range.end; position++) {
		const uint32_t *ranks = layout_ranks_at(s->layout, position, &count);

		for (uint32_t i = 0; i < count; i++)
			rank_gone(s, ranks[i], why);
	}
}

void node_use(struct store *s, uint32_t by)
{
	const struct store_msg m = { .type = STORE_MSG_OPEN };

	if (s->used)
		return;
	s->used = true;
	if (s->ops.links_wanted)
		s->ops.links_wanted(s->ops.arg);
	for (uint32_t i = 0; i < s->place.children; i++)
		if (tree_child(&s->place, i).first != by)
			send_to(s, tree_child(&s->place, i).first, &m);
	if (s->relay && s->place.parent != by)
		send_to(s, s->place.parent, &m);
	if (s->relay)
		home_each_gone(s->here, node_send_gone, s);
	for (uint32_t i = 0; i < s->place.children; i++)
		if (s->gone[i])
			child_gone(s, i, s->gone[i]);
}

void store_neighbour_gone(struct store *s, uint32_t position, const char *why)
{
	uint32_t i = tree_child_index(&s->place, position);
	struct window *w = store_window(s, position);

	if (w)
		window_close(w);
	if (position == s->place.parent)
		relay_fail(s->relay, why);
	else if (i != TREE_NONE && s->used)
		child_gone(s, i, why);
	else if (i != TREE_NONE && !s->gone[i])
		s->gone[i] = strdup(why);
}

/* ---- from neighbours ---- */

static bool is_below(const struct store *s, uint32_t child, uint32_t rank)
{
	uint32_t i = tree_child_index(&s->place, child), position;

	if (rank >= layout_ranks(s->layout))
		return false;
	position = layout_rank_position(s->layout, rank);
	return position >= tree_child(&s->place, i).first &&
	       position < tree_child(&s->place, i).end;
}

static int from_child(struct store *s, uint32_t child, const struct store_msg *m)
{
	const struct asker from = { m->number, child, 0 };

	switch (m->type) {
	case STORE_MSG_ASK:
		if (m->rq.local)
			return -EPROTO;
		store_dispatch(s, &from, m->space, &m->rq);
		return 0;
	case STORE_MSG_CANCEL:
		if (s->relay)
			(void)relay_cancel(s->relay, &from);
		else if (!recall_cancel(s, &from))
			(void)home_cancel(s->step, &from);
		return 0;
	case STORE_MSG_GONE:
		if (!is_below(s, child, m->rank))
			return -EPROTO;
		rank_gone(s, m->rank, m->text);
		return 0;
	default:
		return m->type == STORE_MSG_OPEN ? 0 : -EPROTO;
	}
}

static int from_parent(struct store *s, const struct store_msg *m)
{
	if (m->type == STORE_MSG_ANSWER)
		relay_answer(s->relay, &m->number, 1, &m->answer);
	else if (m->type == STORE_MSG_ANSWERS)
		relay_answer(s->relay, m->numbers, m->nnumbers, &m->answer);
	else if (m->type == STORE_MSG_RECALL)
		return recall_begin(s, m);
	else if (m->type != STORE_MSG_OPEN)
		return -EPROTO;
	return 0;
}

/* Carry a message out; its bytes are released when all that it leads to has been sent. */
static int carry_out(struct store *s, uint32_t from, const struct store_msg *m, uint64_t bytes)
{
	struct debt *debt = debt_begin(store_window(s, from), bytes);
	int rc;

	node_use(s, from);
	if (from == s->place.parent) {
		s->from_parent = debt;
		rc = from_parent(s, m);
	} else {
		s->from_child = debt;
		rc = from_child(s, from, m);
	}
	s->from_parent = s->from_child = NULL;
	debt_unref(debt);
	return rc;
}

int store_input(struct store *s, uint32_t from, struct payload *message)
{
	struct window *w = store_window(s, from);
	struct store_msg m;
	int rc;

	if (!w)
		return -EPROTO;
	rc = store_msg_unpack(&m, message);
	if (rc)
		return rc;
	rc = m.type == STORE_MSG_CREDIT ? window_credit(w, m.number) :
	     m.type == STORE_MSG_RECALLED ? recall_end(s, from, m.number) :
					    carry_out(s, from, &m, message->len);
	store_msg_free(&m);
	return rc;
}
