/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Recalls of copies (copies.h). Each has a number, and several can be under way.
 *
 * The home sends RECALL to each child that may have a copy of a key, and holds the change of the
 * key until all of these have answered RECALLED. Later requests for that key are held behind the
 * change. Requests for other keys are carried out, so a node that does not answer holds up only
 * those that need a key of which it has a copy. A request that its client has asked behind others
 * waits until all earlier requests of the same neighbour have been carried out: one of them may
 * be its client's. Other nodes pass a recall on to their children, and answer when these have
 * answered.
 *
 * RECALL follows the answers on its way, as one of them may bring the copy. RECALLED overtakes
 * requests that wait for room on their way: these may wait for the change.
 */
#pragma once

#include "libstore/home.h"

struct recalling;
struct held;
struct store_msg;

/* The held requests of a child, or of this node's clients, in the order in which they have come. */
struct held_source {
	struct held *held;
};

struct recall {
	struct recalling *active;            /* by number */
	struct recalling *keys[STORE_SPACES]; /* at the root: the same, by key */
	struct held_source *sources;         /* by child, and then of this node */
	uint64_t last_number;
};

/* 0 or -ENOMEM. */
int recall_init(struct recall *r, uint32_t children);
void recall_free(struct recall *r, uint32_t children);

/* At the root: carry a request out, now or after the recall that it needs or comes behind. */
void recall_ask(struct store *s, const struct asker *from, enum store_space space,
		const struct store_request *rq);
/* Withdraw a request that is held. False: it is not. */
bool recall_cancel(struct store *s, const struct asker *from);
/* Withdraw what the asker at a position has asked. */
void recall_forget(struct store *s, uint32_t position);

/* The parent recalls a key. 0, -EPROTO or -ENOMEM. */
int recall_begin(struct store *s, const struct store_msg *m);
/* A child has answered the recall of a number. 0, -EPROTO or -ENOMEM. */
int recall_end(struct store *s, uint32_t child, uint64_t number);
/* A child has gone: it has no copies. */
void recall_child_gone(struct store *s, uint32_t child);
