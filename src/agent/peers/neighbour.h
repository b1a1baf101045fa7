/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A neighbour: its state, its connections, and what waits for its link. The files of
 * peers share this header; no other file includes it.
 */
#pragma once

#include <uv.h>

#include "agent/node.h"
#include "agent/peers/peers.h"
#include "libio/listener.h"
#include "libio/strangers.h"

#define PEERS_QUEUE_MAX ((size_t)1 << 30) /* bytes for a link not yet up */

/*
 * A connection with, or from, a neighbour. If one neighbour has several, the lower
 * position (the parent) chooses one.
 */
struct conn {
	struct conn *prev, *next; /* oldest first */
	struct peers *peers;
	struct link *link;
	struct neighbour *neighbour; /* NULL: inbound and not yet proved */
	struct stranger stranger;    /* the same */
	bool has_head;        /* of a message whose body is coming: */
	struct coll_msg head;
};

/*
 * Knowledge about a neighbour that refuses every connection: missing.c.
 *
 *            srun: it has ranks        slurmd there: nobody listens
 *   UNKNOWN --------------------> STARTED ----------------> UNHEARD -> lost
 *            slurmd: it had a socket  ^   a port answers        |
 *                                     +-------------------------+
 */
enum absence {
	ABSENCE_UNKNOWN,
	ABSENCE_STARTED,
	ABSENCE_UNHEARD,
};

struct queued_frame {
	enum frame_type type;
	struct payload *front; /* made by frame_header */
	struct payload_vec body;
};

struct neighbour {
	struct peers *peers;
	uint32_t position;
	bool is_parent;
	enum neighbour_state state;
	struct conn *chosen;  /* the link; while WAITING not yet taken */
	struct queued_frame *queue; /* while WAITING */
	size_t nqueue, queue_cap, queue_bytes;
	int send_error;       /* reported by the timer */
	uint64_t control_up;  /* frames of this type: sent to the parent,
	                         received from a child */
	bool said_goodbye;
	bool owes_answer;     /* the parent, which has left, waits for it */
	bool heard_goodbye;   /* ... and the rest of ours is being written */
	uint64_t dealt_with;  /* control frames handled at its goodbye: control_up */
	/* wireup.c */
	bool started;
	struct conn *attempt; /* our connect, not yet proved */
	uv_timer_t timer;     /* no answer to the attempt; or the next one */
	uint64_t since;       /* loop time of the first attempt, ms */
	uint32_t backoff_ms;
	unsigned tries;
	uint16_t port;        /* last tried */
	uint16_t named_port;  /* where it said it listens; 0: it did not */
	bool called;          /* asked to connect back */
	int last_error;
	/* connect_back.c */
	bool calling;         /* the host has not answered yet, */
	enum absence called_in; /* asked when this was known */
	int call_error;       /* of the last message; 0: it has come, or nobody listened */
	/* lookup.c */
	bool has_addr;
	bool looking;         /* a lookup of its address is under way */
	bool asking_host;     /* the host may answer at once */
	struct sockaddr_storage addr;
	int lookup_error;     /* of the last look-up; 0: none has failed */
	uint64_t lookup_ended; /* loop time of that, ms */
	/* missing.c */
	enum absence absence;
	bool asked;           /* srun, about it */
	uint64_t looked;      /* loop time of the last question, ms */
	bool killed;          /* while UNHEARD: its socket is still there */
	unsigned refusals;    /* in a row, while UNHEARD */
};

struct peers {
	struct node *node;
	const struct peers_ops *ops;
	void *arg;
	const struct link_ops *conn_ops; /* links.c */
	uv_timer_cb on_timer; /* of neighbours: wireup.c */
	struct conn *conns;   /* all, with utlist */
	struct strangers strangers; /* of them: inbound, whose neighbour is not known */
	struct listener *listener;
	struct connect_back_listener *connect_back;
	struct neighbour *all; /* children in order, the parent */
	uint32_t count;
	struct neighbour *parent; /* NULL at the root */
	uint64_t lack_since; /* loop time, ms: no descriptor for a link */
	uint64_t lack_last;
	bool leaving;
	bool met_unproved; /* a connect-back message, and has said so */
};

/* The neighbour at a position; NULL: there is none. */
struct neighbour *neighbour_find(const struct peers *p, uint32_t position);
const char *neighbour_name(const struct neighbour *n);

/* Call wireup.c for the neighbour in `ms` milliseconds. */
void neighbour_set_timer(struct neighbour *n, uint64_t ms);

/* True unless the neighbour has gone or this node has said goodbye to it. */
bool neighbour_may_send(const struct neighbour *n);
/* Send a frame, or keep it until the link is up. Only to one that may be sent to. */
void neighbour_send(struct neighbour *n, enum frame_type type, const void *head,
		    size_t head_len, const struct payload_vec *body);
/* Send bytes at once, to one whose link is up or nearly so; what fails shows later. */
void neighbour_send_bytes(const struct neighbour *n, enum frame_type type,
			  const void *data, size_t len);
/* A frame for it could not be sent or kept: from the loop it is declared lost. */
void neighbour_send_failed(struct neighbour *n, int error);
/* Bytes that wait to be written to it, or for its link. */
size_t neighbour_queued(const struct neighbour *n);
void neighbour_drop_queue(struct neighbour *n);

/* The connection becomes the neighbour's link; NULL: the host carries its messages. */
void neighbour_up(struct neighbour *n, struct conn *c);
/* The neighbour has said goodbye. */
void neighbour_left(struct neighbour *n, uint64_t control_dealt_with);
/* The neighbour ended without an answer to our goodbye. `why` is a text for the user. */
void neighbour_silent(struct neighbour *n, const char *why);
/*
 * The neighbour cannot be reached, now or ever again. The text, as printf's, tells the user
 * why.
 */
void neighbour_lost(struct neighbour *n, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* A connection without link yet, or NULL; `n` is NULL for an inbound one. */
struct conn *conn_new(struct peers *p, struct neighbour *n);
void conn_drop(struct conn *c);
/* True: the connection is its neighbour's link. */
bool conn_is_up(const struct conn *c);
