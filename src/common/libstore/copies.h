/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Copies of values on a node that is not the home of the step's keys.
 *
 * The home answers a read of one key with a value that the node may keep (store_answer.copy), and
 * remembers the node. Before the home changes the key, it recalls the copies, and waits until all
 * nodes have dropped theirs (recall.h). So a copy has the value that the home has, and the node may
 * answer from it.
 *
 * A node that lets a child keep a copy remembers the child, and passes a recall on to it.
 *
 * A node that sends a change of a key to its parent drops its copy. It does not keep the answer to
 * a read that it has sent before, so that a client reads what it has changed.
 */
#pragma once

#include "libstore/store.h"

/* ---- who has a copy of a key ---- */

struct holders {
	uint32_t *positions;
	size_t n, room;
};

/* 0 or -ENOMEM. Idempotent. */
int holders_add(struct holders *h, uint32_t position);
/* Call for each, and forget them. */
void holders_take(struct holders *h, void (*fn)(void *arg, uint32_t position), void *arg);

/* ---- the copies of a node ---- */

struct copies;
struct copy;

/* `bytes`: what keys and values may take. NULL: no memory. */
struct copies *copies_create(uint64_t bytes, uint64_t seed);
/* All reads have been released. NULL is allowed. */
void copies_destroy(struct copies *c);

/* The value of the request's only key; NULL: the request cannot be answered from a copy. */
struct payload *copies_find(const struct copies *c, enum store_space space,
			    const struct store_request *rq);

/*
 * The copy that a read of one key, on its way to the parent, may make; release it when the read
 * ends. NULL: its value cannot be kept.
 */
struct copy *copies_read(struct copies *c, enum store_space space,
			 const struct store_request *rq);
struct copy *copies_ref(struct copy *copy); /* NULL stays NULL */
void copies_release(struct copies *c, struct copy *copy); /* NULL is allowed */
/* Changes of the key that have been sent to the parent: compare it before copies_keep. */
uint64_t copies_changes(const struct copy *copy);
/* Keep the value, if there is room. */
void copies_keep(struct copies *c, struct copy *copy, struct payload *value);
bool copies_kept(const struct copy *copy);
/* The child at a position gets the value. False: it may not keep it, as nobody would recall it. */
bool copies_lend(struct copy *copy, uint32_t position);
/* copies_lend, by a request that copies_find has found a value for. */
bool copies_lend_found(struct copies *c, enum store_space space, const struct store_request *rq,
		       uint32_t position);

/* A change of the key goes to the parent. */
void copies_change(struct copies *c, enum store_space space, const struct store_bytes *key);
/* Drop the copy, and call for each child that may have one. */
void copies_recall(struct copies *c, enum store_space space, const struct store_bytes *key,
		   void (*fn)(void *arg, uint32_t position), void *arg);
