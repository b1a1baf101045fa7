/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages of neighbours in the tree, and the ends of neighbours. */
#include "libstore/store_private.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "libstore/store_msg.h"

/* ---- to neighbours ---- */

static void send_to(struct store *s, uint32_t position, const struct store_msg *m)
{
	struct payload *message = store_msg_make(m);

	if (message)
		s->ops.send(s->ops.arg, position, message);
	payload_unref(message);
}

void node_send_answer(struct store *s, const struct asker *to,
		      const struct store_answer *answer)
{
	struct store_msg m = {
		.type = STORE_MSG_ANSWER, .number = to->number, .answer = *answer,
	};
	struct payload *message = store_msg_make(&m);

	if (!message) {
		m.answer = (struct store_answer){
			.status = STORE_FULL, .text = "no memory for an answer",
		};
		message = store_msg_make(&m);
	}
	if (message)
		s->ops.send(s->ops.arg, to->position, message);
	payload_unref(message);
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

static void child_gone(struct store *s, uint32_t child, const char *why)
{
	struct tree_range range = tree_child(&s->place, child);
	uint32_t count;

	if (s->relay)
		relay_forget(s->relay, range.first);
	else
		home_forget(s->step, range.first);
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
		else
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
		relay_answer(s->relay, m->number, &m->answer);
	return m->type == STORE_MSG_ANSWER || m->type == STORE_MSG_OPEN ? 0 : -EPROTO;
}

static bool is_child(const struct store *s, uint32_t position)
{
	uint32_t i = tree_child_index(&s->place, position);

	return i != TREE_NONE && tree_child(&s->place, i).first == position;
}

int store_input(struct store *s, uint32_t from, struct payload *message)
{
	struct store_msg m;
	int rc;

	if (from != s->place.parent && !is_child(s, from))
		return -EPROTO;
	rc = store_msg_unpack(&m, message);
	if (rc)
		return rc;
	node_use(s, from);
	rc = from == s->place.parent ? from_parent(s, &m) : from_child(s, from, &m);
	store_msg_free(&m);
	return rc;
}
