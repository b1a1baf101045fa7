/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The head in the tree of control: its sessions with all nodes, whatever links lead to them.
 * A node whose way is broken has some time to attach by another one. Calls no system
 * function.
 *
 *   ABSENT --> ATTACHED     the node is reached
 *   ATTACHED <--> DETACHED  its way is broken; it has attached again
 *   DETACHED --> LOST       not in time; or its daemon was killed: there is no way back
 *   any --> DETACHED        the host has given it up: it is lost in the next turn
 */
#pragma once

#include "dvm/core/relay.h"
#include "dvm/core/session.h"
#include "dvm/core/tree_node.h"

#define TREE_REATTACH_MS 10000 /* for a node whose parent is lost, to find another */

struct tree_head_ops {
	/* Send a frame over the link of a node. */
	void (*send)(void *arg, uint32_t link, const void *data, size_t len);
	/* A node has attached for the first time, from this address. */
	void (*attached)(void *arg, uint32_t position, const uint8_t ip[16]);
	/* Messages of a node. */
	void (*input)(void *arg, uint32_t position, const void *data, size_t len);
	/* A node that had attached is lost; called in turns. */
	void (*lost)(void *arg, uint32_t position, const char *why);
	/* There is no memory for messages of a link: close it. */
	void (*fail)(void *arg, uint32_t link);
};

struct tree_member;

struct tree_head {
	struct tree_head_ops ops;
	void *arg;
	struct dvm_relay relay;
	struct tree_member *members; /* by position */
	struct tree_member *detached;
	uint64_t now_ms;
	const char *link_why; /* why a link has ended, during the call */
};

void tree_head_init(struct tree_head *t, const struct tree_head_ops *ops, void *arg);
void tree_head_free(struct tree_head *t);

/* The link of a node that has connected to the head itself. 0 or -ENOMEM. */
int tree_head_link(struct tree_head *t, uint32_t link);
void tree_head_link_lost(struct tree_head *t, uint32_t link, const char *why, uint64_t now_ms);
/* The daemon of that node was killed, and its fork server says that no rank is left. */
void tree_head_gone(struct tree_head *t, uint32_t link);
/* A frame of a link, as dvm_relay_input. */
int tree_head_input(struct tree_head *t, uint32_t link, const void *data, size_t len,
		    const uint8_t ip[16], uint64_t now_ms);

/* Send messages to a node; they wait if its way is broken. 0 or -ENOMEM. */
int tree_head_send(struct tree_head *t, uint32_t position, const void *data, size_t len);
/* Send the addresses of its ancestors to a node with a link of its own. */
void tree_head_parents(struct tree_head *t, uint32_t position,
		       const struct tree_ancestor *list, uint32_t count);
/*
 * Give a node up: it is told to end, and nothing more is heard of it. The next turn reports
 * it as lost.
 */
void tree_head_end(struct tree_head *t, uint32_t position, const char *why);
/* Forget a node: another daemon will have its position. */
void tree_head_forget(struct tree_head *t, uint32_t position);
/* True: the node is attached, or may attach again. */
bool tree_head_has(const struct tree_head *t, uint32_t position);
/* True: no node but its own is reached by a link. */
bool tree_head_leads_nowhere(const struct tree_head *t, uint32_t link);

/* Report lost nodes. tree_head_flush sends bundles. */
void tree_head_turn(struct tree_head *t, uint64_t now_ms);
void tree_head_flush(struct tree_head *t);
/* The time of the next turn at the latest, or UINT64_MAX. */
uint64_t tree_head_deadline(const struct tree_head *t);
