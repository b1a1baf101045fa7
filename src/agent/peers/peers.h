/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The neighbours of a node in the tree, and the links to them: making the links,
 * messages and control frames over them, what waits until a link is up, and
 * leaving in order. Knows nothing of ranks or PMI: what a neighbour sends, and
 * what becomes of it, is reported through a table.
 *
 *   peers.c           life, and what others may do with neighbours
 *   links.c           what comes over a link; goodbyes
 *   wireup.c          making the links: ports, attempts, choice between two
 *   settings.c        what neighbours must have set alike
 *   lookup.c          addresses of neighbours
 *   missing.c         neighbours that have ended before their links were made
 *   connect_back.c    the message "connect to me", over a path that the site authenticates
 *   connect_back_listener.c  the socket at which such messages of other nodes arrive
 *   neighbour.c       a neighbour's state, its connections and its queue
 *
 * All calls and callbacks are in the loop's thread. Calls never call back but where
 * it says so: what fails inside them is reported from the loop.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "libcoll/coll.h"
#include "libcoll/tree.h"
#include "libio/frames.h"
#include "libutil/payload.h"

struct node;
struct peers;

/*
 *             CHOSEN received (child), TAKEN received (parent)
 *   WAITING ---------------------------------------------------> UP
 *      |  gave up, mixed builds                 link broke  |  |  goodbye
 *      +-------------------------> LOST <-------------------+  +---> LEFT
 */
enum neighbour_state {
	NEIGHBOUR_WAITING,
	NEIGHBOUR_UP,
	NEIGHBOUR_LEFT,
	NEIGHBOUR_LOST,
};

/* How a neighbour has gone. */
enum peer_end {
	PEER_LEFT,      /* in order, with a goodbye */
	PEER_SILENT,    /* has not answered the goodbye of this node */
	PEER_BROKEN,    /* its link broke */
	PEER_UNREACHED, /* there never was a link */
};

struct peer_gone {
	uint32_t position;
	bool is_parent;
	enum peer_end end;
	/*
	 * When the parent has gone: it has dealt with the first `dealt_with` control
	 * frames of this node; in order: and will deal with none of the others.
	 */
	bool in_order;
	uint64_t dealt_with;
	const char *why; /* for people */
};

/* Upcalls. None of these may destroy the peers. */
struct peers_ops {
	void (*up)(void *arg, uint32_t position);
	/* A control frame that was kept for the parent, before it is gone. */
	void (*unsent)(void *arg, const struct payload_vec *frame);
	void (*gone)(void *arg, const struct peer_gone *gone);
	/* See pmi_server_node_input, and pmi_server_node_room. */
	int (*message)(void *arg, uint32_t from, const struct coll_msg *msg,
		       struct payload *body);
	struct payload *(*room)(void *arg, uint32_t from,
				const struct coll_msg *msg, size_t len);
	/*
	 * A control frame, of a child or of the parent. 0, or -EPROTO: break the
	 * link. `was_left`: the child has had the goodbye of this node.
	 */
	int (*control_up)(void *arg, uint32_t child, bool was_left,
			  struct payload *frame);
	int (*control_down)(void *arg, struct payload *frame);

	/* A message of the store. 0, or a negative errno: break the link. */
	int (*store)(void *arg, uint32_t from, struct payload *message);

	/* True: a rank of this node waits for something that neighbours send. */
	bool (*waits)(void *arg);
	/*
	 * The parent has said goodbye. Is a way to srun past it being made? Then
	 * peers_answer is to follow: until then the parent waits.
	 */
	bool (*will_connect)(void *arg);
	/*
	 * A neighbour refuses every connection: ask srun whether its ranks have been
	 * started. The answer: peers_started; the question may be lost, see
	 * peers_srun_up.
	 */
	void (*ask_started)(void *arg, uint32_t position);
	/*
	 * Say that what ran there has ended before the node was connected; `killed`:
	 * its host, too.
	 */
	void (*describe_missing)(void *arg, uint32_t position, bool killed,
				 char *why, size_t size);
};

/*
 * The neighbours of a place in the tree. `listener` (-1: none) is where others
 * connect to, `connect_back` (-1: none) the unix socket at which connect-back messages
 * come in the form slurmd delivers them (u32 uid, u32 length, network order, data).
 * Both are taken over. 0 or a negative errno; *out is to be stopped and destroyed
 * then, too, unless it is NULL.
 */
int peers_create(struct peers **out, struct node *node,
		 const struct tree_place *place, int listener, int connect_back,
		 const struct peers_ops *ops, void *arg);
/* Close all handles and descriptors. NULL is allowed. */
void peers_stop(struct peers *p);
/* After the loop has ended. NULL is allowed. */
void peers_destroy(struct peers *p);

/* ---- making the links ---- */

/* Make the links, unless that has begun. */
void peers_begin(struct peers *p);
/* No neighbour's link is waited for. */
bool peers_settled(const struct peers *p);
/* No link has ever been up, and none is given up. */
bool peers_untouched(const struct peers *p);

/* Answers of the host: see agent.h. May call back. Not after peers_stop. */
void peers_node_found(struct peers *p, uint32_t node_id, int rc,
		      const struct sockaddr_storage *addr);
void peers_connect_back_sent(struct peers *p, uint32_t node_id, int rc);

/* srun says that the ranks of a node have been started. 0 or -EPROTO. */
int peers_started(struct peers *p, uint32_t position);
/* The connection to srun has come up: ask again what may be lost. Calls ask_started. */
void peers_srun_up(struct peers *p);
/* True: a request to srun about a neighbour is under way. */
bool peers_asks(const struct peers *p);

/* ---- with a way of the host's (agent_host.send) ---- */

/* See agent.h. Both call back. Not after peers_stop. */
void peers_frame(struct peers *p, uint32_t position, enum frame_type type,
		 const void *head, size_t head_len, struct payload *body);
void peers_lost(struct peers *p, uint32_t position, const char *why);

/* ---- sending ---- */

/*
 * A collective message, kept until the link is up. The head is copied, the body (NULL:
 * empty) referenced. False: the neighbour has left, is lost, or is none.
 */
bool peers_send_message(struct peers *p, uint32_t position, const void *head,
			size_t head_len, const struct payload_vec *body);
/* A control frame, up to the parent or down to a child; the same. */
void peers_send_control(struct peers *p, uint32_t position,
			struct payload *frame);
/* A message of the store in pieces; the same. */
void peers_send_store(struct peers *p, uint32_t position, const struct payload_vec *message);
/* To all children. */
void peers_send_down(struct peers *p, struct payload *frame);
/* There is no memory for a message: give up the neighbour that it was for. */
void peers_break(struct peers *p, uint32_t position);

/* True: there is a parent that takes control frames. */
bool peers_has_parent(const struct peers *p);
/* How many have been. */
uint64_t peers_sent_up(const struct peers *p);

/* ---- for people ---- */

struct peer_status {
	uint32_t position;
	bool is_parent;
	enum neighbour_state state;
	size_t queued; /* bytes that wait to be written, or for the link */
};

uint32_t peers_count(const struct peers *p);
struct peer_status peers_status(const struct peers *p, uint32_t i);

/* ---- leaving ---- */

/*
 * The ranks here have ended: no neighbour is waited for that nobody has tried to reach.
 */
void peers_prepare_leave(struct peers *p);
/* Answer the goodbye of the parent, if it still waits for that. */
void peers_answer(struct peers *p);
/* Give up the neighbours whose links are not up. Calls back. */
void peers_abandon(struct peers *p);
/* Nothing waits to be written to a neighbour. */
bool peers_flushed(const struct peers *p);
/* Say goodbye to the parent, or to the children. */
void peers_leave(struct peers *p, bool parent);
/* None of these links is up any more. */
bool peers_gone(const struct peers *p, bool parent);
