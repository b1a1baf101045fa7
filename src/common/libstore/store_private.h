/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Definitions that the files of a store share.
 *
 *   store.c    clients, the homes, and life
 *   home.h     where keys and meetings are at home
 *   relay.h    the way to another node's home
 *   copies.h   copies of values on the other nodes
 *   recall.h   recalls of copies
 *   held.h     requests that wait for a recall
 *   node.c     messages of neighbours
 *   request.c  rules of each request
 *   waits.c    descriptions of what waits
 *   window.h   flow control between neighbours
 */
#ifndef PMI2X_STORE_PRIVATE_H
#define PMI2X_STORE_PRIVATE_H

#define HASH_NONFATAL_OOM 1
#include <uthash.h>
#include <utlist.h>

#include "libstore/home.h"
#include "libstore/recall.h"
#include "libstore/relay.h"
#include "libstore/request.h"
#include "libstore/store.h"
#include "libstore/window.h"

/* A request of a client of this node that is not answered. */
struct own_request {
	UT_hash_handle hh; /* in store.own, by number */
	uint64_t number;
	uint64_t token;
	bool local;
	bool waits_only; /* it has asked for a value that its client has not asked for */
	struct store_client *client;
	struct own_request *prev, *next; /* in the client's list, the latest first */
	struct key_wait *wait;           /* NULL: it waits for no key */
};

/* A request of this node that waits for keys, as people want to see it. */
struct key_wait {
	struct key_wait *prev, *next; /* in store.key_waits, the oldest first */
	const struct own_request *request;
	uint32_t rank;
	uint32_t nkeys;
	char key[NAME_SHOWN];         /* the first one */
};

struct store_client {
	struct store *store;
	enum store_space space;
	const struct store_client_ops *ops;
	void *arg;
	struct own_request *requests;
	uint32_t count;
};

struct store {
	struct store_ops ops;
	struct tree_place place;
	const struct layout *layout;
	const char *const *names; /* of nodes, by node id */
	uint32_t position;
	struct home *here;  /* of what the tasks of this node share among themselves */
	struct home *step;  /* of the step's keys; NULL: another node has them */
	struct relay *relay; /* to that node, otherwise NULL */
	struct recall recall;
	struct own_request *own;
	uint64_t last_number; /* of a request of this node */
	uint32_t waiting;
	struct key_wait *key_waits;
	bool used;
	struct budget *budget;
	struct window *windows; /* of the children, and then of the parent */
	struct debt *from_child, *from_parent; /* of the message that is carried out, or NULL */
	char **gone; /* by child: why it had gone before the store was used, or NULL */
};

/* ---- store.c ---- */

/* Ask the step's home, here or elsewhere. */
void store_dispatch(struct store *s, const struct asker *from, enum store_space space,
		    const struct store_request *rq);
/* An operation of homes and of the relay; `store` is one. */
home_answer_fn store_answer;
/* The window of the parent or a child; NULL: the position is neither. */
struct window *store_window(struct store *s, uint32_t position);

/* ---- waits.c ---- */

/* Remember a request that waits for keys; without memory nobody hears of it. */
void wait_begin(struct store *s, struct own_request *r, const struct store_request *rq);
void wait_end(struct store *s, struct own_request *r);

/* ---- node.c ---- */

/* The store is used: `by` a neighbour, or ASKER_HERE. The others learn that. */
void node_use(struct store *s, uint32_t by);
/* To `n` requests of one neighbour. */
void node_send_answer(struct store *s, const struct asker *to, uint32_t n,
		      const struct store_answer *answer);
/* To the parent. `store` is one. */
void node_send_up(void *store, struct payload *message);
/* To the parent: a rank of this node or below has ended. `store` is one. */
void node_send_gone(void *store, uint32_t rank, const char *how);

#endif
