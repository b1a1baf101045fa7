/* SPDX-License-Identifier: BSD-3-Clause */
/* Links of the bed: their queues, and how they break. */
#include "coll.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct bed_link *bed_link(const struct bed *b, uint32_t from, uint32_t to)
{
	if (from >= b->nnodes || to >= b->nnodes)
		return NULL;
	if (b->links[2 * from].to == to)
		return &b->links[2 * from];
	return b->links[2 * to].to == from ? &b->links[2 * to + 1] : NULL;
}

struct bed_link *bed_back(const struct bed *b, const struct bed_link *link)
{
	return &b->links[(link - b->links) ^ 1];
}

/* ---- messages under way ---- */

void bed_frame_add(struct bed_link *link, struct bed_frame *frame)
{
	if (link->tail)
		link->tail->next = frame;
	else
		link->head = frame;
	link->tail = frame;
}

static struct bed_frame *take(struct bed_link *link)
{
	struct bed_frame *frame = link->head;

	link->head = frame->next;
	if (!link->head)
		link->tail = NULL;
	return frame;
}

void bed_link_empty(struct bed_link *link)
{
	while (link->head)
		free(take(link));
}

static int receive(struct bed *b, uint32_t from, uint32_t to,
		   const struct coll_msg *msg, struct payload *body)
{
	struct payload *placed = NULL;
	int rc;

	bed_inside(b, true);
	if (body && b->o.varied && bed_random(b, 2))
		placed = coll_body_room(b->nodes[to].coll, from, msg, body->len);
	if (placed) {
		bed_must(b, placed->len == body->len, "room of another length");
		memcpy(placed->data, body->data, body->len);
	}
	rc = coll_receive(b->nodes[to].coll, from, msg, placed ? placed : body);
	payload_unref(placed);
	bed_inside(b, false);
	return rc;
}

static void lose(struct bed *b, struct bed_link *link, bool in_order, const char *why)
{
	link->dead = link->detected = true;
	bed_inside(b, true);
	coll_link_lost(b->nodes[link->to].coll, link->from, in_order, why);
	bed_inside(b, false);
}

void bed_deliver_on(struct bed *b, struct bed_link *link)
{
	struct bed_frame *f = take(link);
	struct payload *body = NULL;
	struct coll_msg msg;
	struct cursor c;

	if (!f->len) {
		free(f);
		lose(b, link, true, "it has left");
		return;
	}
	cursor_init(&c, f->bytes, f->header_len);
	bed_must(b, !coll_msg_unpack(&c, &msg) && cursor_done(&c),
		 "a message that cannot be read");
	if (f->len > f->header_len)
		body = payload_copy(f->bytes + f->header_len, f->len - f->header_len);
	free(f);
	bed_must(b, !receive(b, link->from, link->to, &msg, body),
		 "a neighbour's message was refused");
	payload_unref(body);
}

bool bed_deliver(struct bed *b)
{
	uint32_t count = b->nlinks, start = bed_random(b, count);

	for (uint32_t i = 0; i < count; i++) {
		struct bed_link *link = &b->links[(start + i) % count];

		if (!link->head)
			continue;
		bed_deliver_on(b, link);
		return true;
	}
	return false;
}

void bed_deliver_all(struct bed *b)
{
	while (bed_deliver(b))
		;
}

int bed_inject(struct bed *b, uint32_t from, uint32_t to,
	       const struct coll_msg *msg, const char *body)
{
	struct payload *p = body ? payload_copy(body, strlen(body)) : NULL;
	int rc = receive(b, from, to, msg, p);

	payload_unref(p);
	return rc;
}

/* ---- breaks ---- */

/* A varied bed loses the last messages under way; a random number says how many. */
static void break_one(struct bed *b, struct bed_link *link)
{
	struct bed_link lost = { .head = link->head, .tail = link->tail };

	link->dead = true;
	if (!b->o.varied)
		return;
	link->head = link->tail = NULL;
	while (lost.head && bed_random(b, 3)) {
		struct bed_frame *f = take(&lost);

		f->next = NULL;
		bed_frame_add(link, f);
	}
	bed_link_empty(&lost);
}

void bed_break(struct bed *b, uint32_t position)
{
	break_one(b, &b->links[2 * position]);
	break_one(b, &b->links[2 * position + 1]);
}

void bed_break_any(struct bed *b)
{
	const struct bed_link *link = &b->links[bed_random(b, b->nlinks)];

	if (link->from != TREE_NONE && link->to != TREE_NONE && !link->dead)
		bed_break(b, (link - b->links) / 2);
}

void bed_detect(struct bed *b, struct bed_link *link)
{
	char why[COLL_REASON_MAX] = "it is gone";

	bed_link_empty(link);
	if (b->o.varied)
		snprintf(why, sizeof(why), "the link to %u is lost", link->from);
	lose(b, link, false, why);
}

void bed_detect_all(struct bed *b)
{
	for (uint32_t i = 0; i < b->nlinks; i++) {
		struct bed_link *link = &b->links[i];

		if (link->dead && !link->detected && link->to != TREE_NONE &&
		    link->from != TREE_NONE && b->nodes[link->to].coll)
			bed_detect(b, link);
	}
}

void bed_leave(struct bed *b, uint32_t position)
{
	for (uint32_t i = 0; i < b->nlinks; i++) {
		struct bed_link *link = &b->links[i];

		if (link->from != position || link->to == TREE_NONE || link->dead)
			continue;
		bed_frame_add(link, calloc(1, sizeof(struct bed_frame)));
		bed_back(b, link)->dead = true;
	}
}
