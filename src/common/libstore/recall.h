/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Recalls of copies (copies.h), of which a node has one at a time.
 *
 * The home sends RECALL to each child that may have a copy of a key, and holds the change of the
 * key until all of these have answered RECALLED. Requests that come later are held behind the
 * change, so that all take effect in the order in which they have come. Other nodes pass a recall
 * on to their children, and answer when these have answered.
 *
 * RECALL follows the answers on its way, as one of them may bring the copy. RECALLED overtakes
 * requests that wait for room on their way: these may wait for the change.
 */
#pragma once

#include "libstore/home.h"

struct held;
struct store_msg;
struct debt;

struct recall {
	bool *owes;    /* by child: it has not answered */
	uint32_t owed; /* children that owe an answer */
	struct held *held;
};

/* 0 or -ENOMEM. */
int recall_init(struct recall *r, uint32_t children);
void recall_free(struct recall *r);

/* At the root: carry a request out, now or after the recall that it needs or comes behind. */
void recall_ask(struct store *s, const struct asker *from, enum store_space space,
		const struct store_request *rq);
/* Withdraw a request that is held. False: it is not. */
bool recall_cancel(struct store *s, const struct asker *from);
/* Withdraw what the asker at a position has asked. */
void recall_forget(struct store *s, uint32_t position);

/* The parent recalls a key. 0, -EPROTO or -ENOMEM. */
int recall_begin(struct store *s, const struct store_msg *m);
/* A child has answered. 0 or -EPROTO. */
int recall_end(struct store *s, uint32_t child);
/* A child has gone: it has no copies. */
void recall_child_gone(struct store *s, uint32_t child);
