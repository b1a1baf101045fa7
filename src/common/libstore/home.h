/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The home of keys and meetings: carries requests out. The store has one for the step, at the
 * root, and one on each node for what its tasks share among themselves.
 *
 * An asker is whoever gets the answer: a client of this node, or a neighbour. The number tells
 * its requests apart.
 */
#pragma once

#include "libstore/store.h"

struct home;

#define ASKER_HERE UINT32_MAX /* instead of a position: a client of this node */

struct asker {
	uint64_t number;
	uint32_t position;
	uint32_t zero; /* so that all bytes of an asker are its name */
};

struct home_options {
	struct store_options store;
	/* The ranks that meet here, ascending; outlive the home. NULL: the first ones. */
	const uint32_t *ranks;
	uint32_t nranks;
	const struct layout *layout;
	const char *const *names;
};

/* One answer to several askers, in any order; the array may be changed. Must not call back. */
typedef void home_answer_fn(void *arg, struct asker *to, uint32_t n,
			    const struct store_answer *answer);

/* 0 or -ENOMEM. */
int home_create(struct home **out, const struct home_options *options,
		home_answer_fn *answer, void *arg);
/* Nobody is answered any more. NULL is allowed. */
void home_destroy(struct home *h);

/* Carry out a request that request_check accepts. */
void home_ask(struct home *h, const struct asker *from, enum store_space space,
	      const struct store_request *rq);
/* Neighbours may have copies of the key. */
bool home_is_lent(const struct home *h, enum store_space space, const struct store_bytes *key);
/* Call for each position that may have a copy of the key, and forget these. Before a change. */
void home_recall(struct home *h, enum store_space space, const struct store_bytes *key,
		 void (*fn)(void *arg, uint32_t position), void *arg);
/* False: there is no such request that waits. */
bool home_cancel(struct home *h, const struct asker *from);
/* Forget what the asker at a position waits for. */
void home_forget(struct home *h, uint32_t position);
/* A rank has ended: meetings that miss it fail, now and later. Idempotent. */
void home_rank_gone(struct home *h, uint32_t rank, const char *how);
/* Call for each rank that has. */
void home_each_gone(const struct home *h, void (*fn)(void *arg, uint32_t rank, const char *how),
		    void *arg);

/* ---- for people ---- */

#define NAME_SHOWN STORE_NAME_SHOWN

/* The name as people may see it. Returns `out`. */
const char *home_show_name(const void *name, size_t len, char out[NAME_SHOWN]);
/* The number of the meeting that waits longest; 0: none waits. Later ones have higher numbers. */
uint64_t home_oldest_meeting(const struct home *h);
/* A line about that meeting, with the ranks that are missing; empty: none waits. */
void home_tell_meeting(const struct home *h, unsigned seconds, char text[STORE_TEXT_MAX]);
/* The key that a waiting request misses first; NULL: there is no such request. */
const char *home_missing_key(const struct home *h, const struct asker *from,
			     char out[NAME_SHOWN]);
