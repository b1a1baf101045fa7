/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A node in the tree of control (tree_layout.h): its session with the head, and what it
 * relays for the nodes behind it. Its host makes the links. Calls no system function.
 *
 *   DETACHED --> ASKED --> ATTACHED    a link to a parent; the head has answered
 *   ASKED, ATTACHED --> DETACHED       the link has ended: the host makes another
 */
#pragma once

#include "dvm/core/relay.h"
#include "dvm/core/session.h"

struct tree_ancestor {
	uint32_t position;
	struct dvm_address where;
};

struct tree_node_ops {
	/* Send a frame over the link to a child, or to the parent: RELAY_UP. */
	void (*send)(void *arg, uint32_t link, const void *data, size_t len);
	/* Messages of the head for this node (dvm_msg.h). */
	void (*input)(void *arg, const void *data, size_t len);
	/* The head has answered. Messages for it may be sent. */
	void (*attached)(void *arg);
	/* The addresses of the living ancestors, the nearest first. */
	void (*parents)(void *arg, const struct tree_ancestor *list, uint32_t count);
	/* The parent leaves: attach to another process. */
	void (*leaving)(void *arg);
	/* There is no memory for messages of a link: close it. */
	void (*fail)(void *arg, uint32_t link);
};

#define TREE_ANCESTORS_MAX 32

enum tree_state { TREE_DETACHED, TREE_ASKED, TREE_ATTACHED };

struct tree_node {
	struct tree_node_ops ops;
	void *arg;
	struct dvm_relay relay;
	struct session session;
	uint32_t attach; /* number of the last ATTACH */
	enum tree_state state;
};

void tree_node_init(struct tree_node *t, uint32_t position, const struct tree_node_ops *ops,
		    void *arg);
void tree_node_free(struct tree_node *t);

/* A link to a parent, or to the head itself, is proved: attach. 0 or -ENOMEM. */
int tree_node_up(struct tree_node *t);
/* That link has ended. Messages wait for the next one. */
void tree_node_down(struct tree_node *t);
/* The link of a child is there; or it has ended. 0 or -ENOMEM. */
int tree_node_child(struct tree_node *t, uint32_t child);
void tree_node_child_lost(struct tree_node *t, uint32_t child, const char *why);
/* The daemon of a child was killed, and its fork server says that no rank is left. */
void tree_node_child_gone(struct tree_node *t, uint32_t child);
/* This node leaves soon: its children have to attach to other processes. */
void tree_node_leave(struct tree_node *t);

/* A frame of a link, as dvm_relay_input. */
int tree_node_input(struct tree_node *t, uint32_t link, const void *data, size_t len,
		    const uint8_t ip[16]);
/*
 * Send messages to the head. A LEASE is dropped while the node is not attached; other
 * messages wait. 0 or -ENOMEM.
 */
int tree_node_send(struct tree_node *t, const void *data, size_t len);
/* After the inputs of a turn of the loop: send bundles. */
void tree_node_turn(struct tree_node *t);

int tree_ancestor_pack(struct buf *b, const struct tree_ancestor *a);
