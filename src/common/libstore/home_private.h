/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Definitions that the files of a home share.
 *
 *   home.c    limits, answers, requests that wait, ranks that have ended
 *   keys.c    keys, and the operations on them
 *   meet.c    meetings of ranks
 */
#pragma once

/* An item that could not be added has no table; the default ends the process. */
#define HASH_NONFATAL_OOM 1
#include <uthash.h>
#include <utlist.h>

#include "libstore/copies.h"
#include "libstore/home.h"

#define HOME_OVERHEAD 192 /* bytes that a key, a request or a meeting takes beside its own */
#define GONE_TEXTS 64     /* different ways in which ranks end that are remembered */
#define GONE_HOW_MAX 128  /* bytes of one, NUL included */

struct key {
	UT_hash_handle hh;     /* in home.keys, by name */
	struct payload *value; /* NULL: it does not exist, and is waited for */
	struct waiter *waiters; /* requests whose first missing key this is */
	struct holders holders; /* of copies */
	uint32_t recalls;
	size_t len;
	char name[];
};

struct meeting;

/* A request that waits: for a key, or in a meeting. */
struct waiter {
	UT_hash_handle hh; /* in home.waiters, by asker */
	struct asker asker;
	struct waiter *prev, *next; /* in the key's or the meeting's list */
	struct key *key;
	struct meeting *meeting;
	enum store_op op;
	enum store_space space;
	uint64_t deletes;      /* of the home, when the first key was looked at */
	uint32_t at;           /* index of `key` in keys */
	uint32_t rank;         /* in the meeting */
	struct payload *value; /* the same */
	uint64_t bytes;        /* counted for it */
	uint32_t nkeys;
	struct store_bytes keys[]; /* and their bytes behind them */
};

struct home {
	struct home_options o;
	home_answer_fn *answer;
	void *arg;
	uint64_t used;         /* bytes */
	uint32_t nkeys;        /* in the tables */
	uint32_t exist[STORE_SPACES]; /* keys that have a value */
	uint64_t deletes;      /* keys that have been deleted so far */
	struct key *keys[STORE_SPACES];
	struct waiter *waiters;
	struct meeting *meetings;
	uint64_t last_meeting; /* number */
	uint8_t *gone;         /* by index in o.ranks: 0, or a number of `how`; NULL: none */
	char how[GONE_TEXTS][GONE_HOW_MAX];
	uint32_t nhow, ngone;
	bool busy;             /* waiters are looked through: no other one is answered */
};

/* Take bytes for something. False, and `from` has been answered: over the limit. */
bool home_take(struct home *h, const struct asker *from, uint64_t bytes);
void home_give(struct home *h, uint64_t bytes);
/* The index of a rank in o.ranks; UINT32_MAX: it does not meet here. */
uint32_t home_rank_index(const struct home *h, uint32_t rank);
/* Answers of one kind. */
void home_answer_number(struct home *h, const struct asker *to, int64_t number);
void home_answer_values(struct home *h, const struct asker *to,
			struct payload *const *values, uint32_t n);
/* A value that who asks may keep. */
void home_answer_copy(struct home *h, const struct asker *to, struct payload *value);
void home_answer_text(struct home *h, const struct asker *to, enum store_status status,
		      const char *fmt, ...) __attribute__((format(printf, 4, 5)));
void home_answer_no_memory(struct home *h, const struct asker *to);
/*
 * A waiter without key and meeting, in the table, with copies of `nkeys` keys. NULL: `from` has
 * been answered with why.
 */
struct waiter *home_waiter(struct home *h, const struct asker *from, enum store_op op,
			   const struct store_bytes *keys, uint32_t nkeys);
/* The waiter is in no list of a key or a meeting. */
void home_waiter_free(struct home *h, struct waiter *w);

/* ---- keys.c ---- */

/* Remove a key that neither exists nor is waited for. */
void keys_drop_unused(struct home *h, enum store_space space, struct key *k);
/* Free all keys; nothing waits for one. */
void keys_free(struct home *h);

/* ---- meet.c ---- */

void meet_enter(struct home *h, const struct asker *from, enum store_space space,
		const struct store_request *rq);
void meet_missing(struct home *h, const struct asker *from, enum store_space space,
		  const struct store_request *rq);
/* The request is withdrawn. Frees the waiter; not while `busy`, others are answered. */
void meet_leave(struct home *h, struct waiter *w);
/* Meetings that miss a rank that has ended fail. */
void meet_look(struct home *h);
/* Meetings that miss the rank at this index of o.ranks fail. */
void meet_rank_gone(struct home *h, uint32_t index);
