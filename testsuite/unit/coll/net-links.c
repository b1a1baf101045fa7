/* SPDX-License-Identifier: BSD-3-Clause */
/* The links of the step in memory: their queues, and how they break. */
#include "net.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include "unit.h"

static uint32_t parent_of(const struct net *net, uint32_t position)
{
	return coll_place(net->nodes[position].coll)->parent;
}

struct net_link *net_link(struct net *net, uint32_t from, uint32_t to)
{
	if (parent_of(net, from) == to)
		return &net->links[2 * from];
	assert_int_equal(parent_of(net, to), from);
	return &net->links[2 * to + 1];
}

/* ---- what is under way ---- */

void net_frame_add(struct net_link *link, struct net_frame *frame)
{
	if (link->tail)
		link->tail->next = frame;
	else
		link->head = frame;
	link->tail = frame;
}

struct net_frame *net_frame_take(struct net_link *link)
{
	struct net_frame *frame = link->head;

	link->head = frame->next;
	if (!link->head)
		link->tail = NULL;
	return frame;
}

void net_frame_free(struct net_frame *frame)
{
	payload_unref(frame->bytes);
	free(frame);
}

/* ---- what breaks them ---- */

static void cut_tail(struct net *net, struct net_link *link)
{
	struct net_frame *keep = NULL, *frame = link->head;

	link->dead = true;
	while (frame && net_random(net, 3)) {
		keep = frame;
		frame = frame->next;
	}
	if (keep)
		keep->next = NULL;
	else
		link->head = NULL;
	link->tail = keep;
	while (frame) {
		struct net_frame *next = frame->next;

		net_frame_free(frame);
		frame = next;
	}
}

void net_break(struct net *net, uint32_t position)
{
	cut_tail(net, &net->links[2 * position]);
	cut_tail(net, &net->links[2 * position + 1]);
}

static bool is_tree_link(const struct net *net, const struct net_link *link)
{
	return link - net->links < 2 * (ptrdiff_t)net->nnodes;
}

/* The one in the other direction. */
static struct net_link *back(struct net *net, const struct net_link *link)
{
	uint32_t i = link - net->links;

	return is_tree_link(net, link) ? &net->links[i ^ 1] :
					 net_link(net, link->to, link->from);
}

void net_break_any(struct net *net)
{
	struct net_link *link = &net->links[net_random(net, net->nlinks)];

	if (link->from == TREE_NONE || link->to == TREE_NONE || link->dead ||
	    (!is_tree_link(net, link) && !link->used))
		return;
	cut_tail(net, link);
	cut_tail(net, back(net, link));
}

/* Links that are not used break, too: they will be wanted. */
void net_kill(struct net *net, uint32_t position)
{
	for (uint32_t i = 0; i < net->nlinks; i++) {
		struct net_link *link = &net->links[i];

		if ((link->from == position || link->to == position) &&
		    !link->dead)
			cut_tail(net, link);
	}
}

void net_detect_all(struct net *net)
{
	for (uint32_t i = 0; i < net->nlinks; i++) {
		struct net_link *link = &net->links[i];

		if (link->dead && !link->detected && link->to != TREE_NONE &&
		    link->from != TREE_NONE)
			net_detect(net, link);
	}
}

void net_leave(struct net *net, uint32_t position)
{
	net->nodes[position].left = true;
	for (uint32_t i = 0; i < net->nlinks; i++) {
		struct net_link *link = &net->links[i];
		struct net_frame *frame;

		if (link->from != position || link->to == TREE_NONE ||
		    link->dead || (!is_tree_link(net, link) && !link->used))
			continue;
		frame = calloc(1, sizeof(*frame));
		net_frame_add(link, frame);
		back(net, link)->dead = true;
	}
}

void net_detect(struct net *net, struct net_link *link)
{
	char why[64];

	while (link->head)
		net_frame_free(net_frame_take(link));
	link->dead = true;
	link->detected = true;
	snprintf(why, sizeof(why), "the link to %u is lost", link->from);
	net_inside(net, true);
	coll_link_lost(net->nodes[link->to].coll, link->from, false, why);
	net_inside(net, false);
}
