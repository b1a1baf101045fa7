/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A step in memory whose next event is chosen from outside: ranks that run one
 * program of collectives, links that keep order, and one fault at a time of its
 * own choice. All of it lives in the arena.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "libcoll/fetch.h"
#include "libcoll/subset.h"

#define WORLD_NODES 5
#define WORLD_RANKS 10
#define WORLD_SEQ 4        /* collectives of a kind */
#define WORLD_LINKS (WORLD_NODES * WORLD_NODES)
#define WORLD_EVENTS 96    /* possible in one state */

/* The step that is explored. */
struct scenario {
	const char *name;
	uint32_t nodes, ranks; /* rank r is on node r * nodes / ranks */
	uint32_t width;
	uint32_t window;     /* collectives a rank enters before the first ends */
	uint32_t piece;      /* see coll_options; 0: messages are never cut */
	const char *program; /* of every rank: f(ence), g(ather), r(ing), x: fetch of
	                        the rank that is half of them away; collectives of
	                        e(ven ranks) and u(pper half), which others skip */
	bool rank_dies, node_dies, link_breaks; /* one of these, once */
	bool small;          /* in make check */
};

enum event_type {
	EVENT_ENTER,     /* rank: its next collective */
	EVENT_DELIVER,   /* link: its first message */
	EVENT_ANSWER,    /* node: the first of what its host was asked */
	EVENT_DETECT,    /* link: its receiver notices that it is dead */
	EVENT_RANK_DIES,
	EVENT_NODE_DIES,
	EVENT_LINK_BREAKS, /* link, in both directions */
};

/* A link is a direction: from node which / WORLD_NODES to the remainder. */
struct event {
	enum event_type type;
	uint32_t which;
};

struct world;

/*
 * Called when a rank was told something impossible, or a host was asked for what it may
 * not be asked; does not return.
 */
typedef void broken_fn(const char *what);

/*
 * `deaf`: the messages about faults to this position vanish, so that a breach
 * must be found; UINT32_MAX: none.
 */
struct world *world_new(const struct scenario *s, uint32_t deaf,
			broken_fn *broken);
void world_free(struct world *w);
/* The events that may happen next: their number. */
uint32_t world_events(const struct world *w, struct event out[WORLD_EVENTS]);
void world_apply(struct world *w, struct event e);
/* Nothing can happen any more: has everything ended as it must? */
void world_check_end(const struct world *w);
