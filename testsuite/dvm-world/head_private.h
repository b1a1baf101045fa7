/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Definitions that the files of a head share.
 *
 *   head.c        its connections, turns and end
 *   head_begin.c  how it gets its daemons
 *   head_tree.c   its tree of control
 */
#pragma once

#include "store.h"

#include "dvm/core/tree_head.h"

#define CALL_MS (10 * SECOND)    /* until a daemon that is called has not answered */
#define WITHIN_MS (120 * SECOND) /* until all daemons are there */
#define START_RETRY_MS (5 * SECOND)
#define AUDITOR UINT32_MAX       /* the client that is the world itself */

enum state { CALLS, RUNS, DEAD };
enum kind { KIND_NODE, KIND_ADOPTS, KIND_ENDS, KIND_CLIENT };

/* A connection of the head's. */
struct peer {
	struct head_process *head;
	enum kind kind;
	struct link *link;
	uint32_t position;     /* of a node */
	struct daemon *daemon;
	uint32_t number;       /* of a client */
	bool broken;
	struct peer *prev, *next;
};

struct head_process {
	struct world *w;
	uint32_t number;
	unsigned machine;
	enum state state;
	bool ready;
	struct dvm_head *head;
	struct store *store;
	bool changed;          /* the journal has: a turn is due */
	bool superseded;
	struct peer *peers;
	struct peer *nodes[DAEMONS_MAX]; /* by position */
	struct daemon *daemons[DAEMONS_MAX];
	struct tree_head *tree; /* NULL: each node has a link of its own */
	uint32_t relays;       /* nodes that are to have children there */
	bool told;             /* their addresses have been sent */
	uint64_t routed_ms[DAEMONS_MAX]; /* when the node was last reached */
	bool given_up[DAEMONS_MAX]; /* it may be lost at once: no rank is left, or it was told to end */
	uint32_t nold;         /* positions of daemons of an earlier head */
	uint32_t called, adopted;
	uint32_t nformer;      /* daemons of the last head that do not wait for another */
	struct daemon *former[DAEMONS_MAX];
	bool unheard;          /* some of them cannot be reached */
	bool gone[DAEMONS_MAX]; /* no process listens there */
	uint32_t next_client;
	uint64_t turn_ms;
	uint64_t alone_ms;     /* since when it has no node; 0: it has some */
	bool leaves;
	json_int_t busy;       /* tasks that have not ended, as it has said last */
	uint64_t asked_ms;     /* when the auditor has asked what it knows */
};

extern const struct dvm_head_ops world_head_ops;
extern const struct store_ops world_store_ops;

struct dvm_time head_now_of(const struct head_process *h);
struct peer *head_add_peer(struct head_process *h, enum kind kind);
/* The head's end of a connection with a daemon. */
struct link_end head_node_end(struct peer *p);
void head_tell_to_end(struct peer *p);
void head_turn(struct head_process *h);
/* The head's process ends. */
void head_forget(struct head_process *h);
void head_fails(struct head_process *h, const char *why);
/* In a while, with the same journal. */
void head_start_another(struct world *w, bool take_over);
/* Connect with a daemon, to have it or to tell it to end; again, if that is of use. */
void head_call(struct head_process *h, uint32_t position, enum kind kind);
void head_call_again(struct peer *p);
/* A node that was given up: call it, if its ranks may run. */
void head_call_to_end(struct head_process *h, uint32_t position);
/* True: the head has a way to the node, or may have one again. */
bool head_has_node(const struct head_process *h, uint32_t position);

/* ---- head_tree.c ---- */

void head_tree_open(struct head_process *h);
void head_tree_free(struct head_process *h);
/* A frame of the link of a node. */
void head_tree_frame(struct head_process *h, uint32_t position, const void *data, size_t len);
void head_tree_link(struct head_process *h, uint32_t position);
void head_tree_link_lost(struct head_process *h, uint32_t position, const char *why);
void head_tree_send(struct head_process *h, uint32_t position, const void *data, size_t len);
void head_tree_end(struct head_process *h, uint32_t position, const char *why);
/* All nodes are told to end. */
void head_tree_end_all(struct head_process *h);
void head_tree_turn(struct head_process *h);
void head_tree_flush(struct head_process *h);
uint64_t head_tree_deadline(const struct head_process *h);
