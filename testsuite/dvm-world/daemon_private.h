/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Definitions that the files of a daemon share.
 *
 *   daemon.c       its node, its lease, and its link to the head
 *   daemon_tree.c  its links in the tree of control
 */
#pragma once

#include "world.h"

#include "../unit/dvm/starts.h"
#include "dvm/core/lease.h"
#include "dvm/core/tree_node.h"

#define CONNECT_MS (10 * SECOND)

struct daemon_tree;

struct daemon {
	struct world *w;
	unsigned machine;
	uint32_t number;
	char name[16];
	struct dvm_node *node; /* NULL: the process is no more */
	struct zygote *zygote; /* NULL: it has not been started */
	struct link *head;     /* or, in a tree, to the parent */
	int end;               /* of that link, this side's */
	uint32_t epoch;        /* number of the last head that has called */
	bool joined;           /* this head has been told what the node is */
	bool gives_up;
	uint64_t waits;        /* counts the times in which it has no head */
	uint64_t turn_ms;      /* when its next turn is due; NEVER */
	uint64_t busy_ms;      /* its link to the head takes no output before */
	struct lease lease;
	struct starts owed;    /* PMI that is over */
	struct buf *asked;     /* by the world: what it says goes there */
	struct daemon_tree *tree; /* NULL: the head has no tree, or it is lost */
	struct daemon_tree *first_tree; /* as before, until the world ends */
};

/* ---- daemon.c ---- */

void daemon_turn(struct daemon *d);
/* Start the zygote, unless it is there. */
void daemon_start_ranks(struct daemon *d);
/* A message of the head. False: the node cannot read it. */
bool daemon_takes(struct daemon *d, const void *data, size_t len);
/* The head is lost, or cannot be reached. */
void daemon_loses_head(struct daemon *d, const char *why);

/* ---- daemon_tree.c ---- */

/* The daemon is at this position of the tree of a head. */
void daemon_tree_open(struct daemon *d, const struct head_process *h, uint32_t position);
void daemon_tree_send(struct daemon *d, const void *data, size_t len);
bool daemon_tree_is_attached(const struct daemon *d);
/* The head does not answer by this way: perhaps by another one. */
void daemon_tree_try_another(struct daemon *d, uint64_t now_ms);
void daemon_tree_says(struct daemon *d, const void *data, size_t len);
void daemon_tree_ended(struct daemon *d, const char *why);
/* The node has ended in order: let its children go, and say that no rank is left. */
void daemon_tree_leave(struct daemon *d);
/* The daemon goes on, or ends, without the tree; `leave` closes links to children. */
void daemon_tree_close(struct daemon *d, void (*leave)(struct link *l, int end));
void daemon_tree_free(struct daemon *d);
