/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the files of the agent share. Everything runs in the agent's loop, but
 * where a comment says otherwise. Operations that the engine calls (struct
 * pmi_host_ops) only queue and write: what fails there is told to the
 * engine from the loop, never from inside the call.
 *
 *   agent.c          life cycle, the engine's operations, draining
 *   agent_ranks.c    the ranks' connections and ends
 *   agent_links.c    neighbours: frames, queues, goodbyes
 *   agent_wireup.c   making the links: ports, attempts, choice between two
 *   agent_lookup.c   addresses of neighbours
 *   agent_missing.c   neighbours that have ended before their links were made
 *   agent_control.c  the way to srun and back
 *   agent_srun.c     the connection to srun
 *   agent_slots.c    what wakes the agent and the ranks through shared memory
 *   agent_status.c   srun's questions, and who waits long
 *   agent_trace.c    time stamps for a trace of start-up
 *   agent_tell.c     "connect to me", over a path that the site authenticates
 */
#ifndef PMI2X_AGENT_INTERNAL_H
#define PMI2X_AGENT_INTERNAL_H

#include <uv.h>

#include "agent/agent.h"
#include "agent/agent_status.h"
#include "agent/agent_trace.h"
#include "libio/link.h"
#include "libio/listener.h"
#include "libio/loop.h"
#include "libio/refusals.h"
#include "libpmi/control.h"

#define AGENT_UNPROVED_MAX 256 /* inbound; over it the oldest is dropped */
#define AGENT_QUEUE_MAX ((size_t)1 << 30) /* bytes for a link not yet up */
#define AGENT_BACKOFF_FIRST_MS 50
#define AGENT_BACKOFF_MAX_MS 1000
#define AGENT_CHILD_PATIENCE 5 /* times connect_ms: it may be launched late */
#define AGENT_LINGER_MS 1000   /* for neighbours that are not connected */
#define AGENT_LOOKUP_KEPT_MS 5000 /* a failed look-up; then it is asked again */
#define AGENT_LACK_MS 5000     /* without a descriptor for a link; then an end */
#define AGENT_QUIET_MS 100     /* without an event, then work that can wait */
#define AGENT_HELD_MS 30000    /* for the step to end when a collective failed */
#define AGENT_WHY_MAX 512      /* bytes of a reason */

struct agent_ranks;
struct agent_links;
struct agent_control;
struct agent_tell;
struct agent_slots;
struct agent_status;
struct agent_trace;

/* Serving -> draining (three stages) -> closed. Forward only. */
enum agent_stage {
	AGENT_SERVING,
	AGENT_DRAIN_OWN,      /* ranks end, queues flush */
	AGENT_DRAIN_CHILDREN, /* goodbye to the children, until they close */
	AGENT_DRAIN_PARENT,   /* goodbye to the parent and srun */
	AGENT_CLOSED,
};

struct agent {
	const struct pmi_step *step;
	struct agent_options options;
	struct agent_host host;
	const struct log_hook *log;
	struct handshake_self self;
	struct link_options link_options;
	struct refusals refused;
	struct agent_fds fds; /* -1: what somebody else owns by now */
	uint16_t port;        /* where it listens for neighbours */
	struct loop *loop;
	struct region_writer *region; /* NULL: no shared memory */
	struct agent_slots *slots;    /* NULL: ranks use their sockets */
	struct agent_trace *trace;    /* NULL: none is wanted */
	struct pmi_host_ops ops;
	struct pmi_server *server;
	struct agent_ranks *ranks;
	struct agent_links *links;
	struct agent_control *control;
	struct agent_tell *tell;
	struct agent_status *status;
	enum agent_stage stage;
	char lack[AGENT_WHY_MAX]; /* why it gives the step up; empty */
	bool met_other_build; /* and has said so */
	uv_prepare_t drain_step;
	uv_timer_t drain_linger;
	uv_timer_t drain_limit;
	uv_timer_t tidy; /* of the server, when all is quiet */
	uv_timer_t held; /* answers that wait for the end of the step */
};

/* The name of the node at a position, for messages. */
const char *agent_node_name(const struct agent *a, uint32_t position);

/* Close a handle that is part of a longer-lived object; idempotent. */
void agent_close_handle(void *handle);

/*
 * The step cannot go on with this node: say so, with how a limit can be raised,
 * close everything, and have the step ended with what that has set free. `what`
 * follows the node's name. From the loop's next turn on; only the first counts.
 */
void agent_give_up(struct agent *a, const char *what, int error);

/* ---- agent_ranks.c ---- */

int agent_ranks_open(struct agent *a);
void agent_ranks_close(struct agent *a); /* handles and descriptors */
void agent_ranks_free(struct agent *a);  /* memory, after the loop has ended */
void agent_ranks_send(struct agent *a, uint32_t slot, const void *data,
		      size_t len, const struct passed_fds *fds);
void agent_ranks_finish(struct agent *a, uint32_t slot);
uint32_t agent_ranks_count(const struct agent *a);
/* The process of a rank that lives, as far as is known; else 0. */
pid_t agent_ranks_pid(const struct agent *a, uint32_t slot);
/* No rank has a connection any more. */
bool agent_ranks_ended(const struct agent *a);

/* ---- agent_links.c ---- */

/*
 * A connection with, or from, a neighbour. Of several with one neighbour
 * the lower position (the parent) chooses one.
 */
struct conn {
	struct conn *prev, *next; /* oldest first */
	struct agent *agent;
	struct link *link;
	struct neighbour *neighbour; /* NULL: inbound and not yet proved */
	bool has_head;        /* of a message whose body is coming: */
	struct coll_msg head;
};

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

/*
 * What is known of a neighbour that refuses every connection: agent_missing.c.
 *
 *            srun: it has ranks        slurmd there: nobody listens
 *   UNKNOWN --------------------> STARTED ----------------> UNHEARD -> lost
 *                                    ^   a port answers        |
 *                                    +-------------------------+
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
	struct agent *agent;
	uint32_t position;
	bool is_parent;
	enum neighbour_state state;
	struct conn *chosen;  /* the link; while WAITING not yet taken */
	struct queued_frame *queue; /* while WAITING */
	size_t nqueue, queue_cap, queue_bytes;
	int send_error;       /* told by the timer */
	uint64_t control_up;  /* frames of this type: sent to the parent,
	                         received from a child */
	bool said_goodbye;
	bool owes_answer;     /* the parent, which has left, waits for it */
	bool heard_goodbye;   /* ... and the rest of ours is being written */
	uint64_t dealt_with;  /* what its goodbye says of control_up */
	/* agent_wireup.c */
	bool started;
	struct conn *attempt; /* our connect, not yet proved */
	uv_timer_t timer;     /* no answer to the attempt; or the next one */
	uint64_t since;       /* loop time of the first attempt, ms */
	uint32_t backoff_ms;
	unsigned tries;
	uint16_t port;        /* last tried */
	uint16_t told_port;   /* where it said it listens; 0: it did not */
	bool told;            /* we have told it */
	int last_error;
	/* agent_lookup.c */
	bool has_addr;
	bool looking;         /* it is being looked up */
	bool asking_host;     /* the host may answer at once */
	struct sockaddr_storage addr;
	int lookup_error;     /* of the last look-up; 0: none has failed */
	uint64_t lookup_ended; /* loop time of that, ms */
	/* agent_missing.c */
	enum absence absence;
	bool asked;           /* srun, about it */
	uint64_t looked;      /* loop time of the last question, ms */
	bool telling;         /* slurmd has not answered yet */
	unsigned refusals;    /* in a row, while UNHEARD */
};

struct agent_links {
	struct conn *first, *last;
	unsigned unproved;  /* inbound */
	struct listener *listener;
	struct neighbour *all; /* children in order, the parent */
	uint32_t count;
	struct neighbour *parent; /* NULL at the root */
	uint64_t lack_since; /* loop time, ms: no descriptor for a link */
	uint64_t lack_last;
};

int agent_links_open(struct agent *a);
void agent_links_close(struct agent *a);
void agent_links_free(struct agent *a);

struct neighbour *agent_neighbour(const struct agent *a, uint32_t position);
struct neighbour *agent_parent(const struct agent *a); /* NULL at the root */

/*
 * Send a frame, or keep it until the link is up. 0, or -ESHUTDOWN when the
 * neighbour has left or is lost.
 */
int agent_links_send(struct agent *a, struct neighbour *n, enum frame_type type,
		     const struct payload_vec *body);
/* The same, a message of the engine. */
int agent_links_send_message(struct agent *a, struct neighbour *n,
			     const void *head, size_t head_len,
			     const struct payload_vec *body);
int agent_links_send_bytes(struct agent *a, struct neighbour *n,
			   enum frame_type type, const void *data, size_t len);
/* Bytes that wait to be written to it, or for its link. */
size_t agent_neighbour_queued(const struct neighbour *n);
/* Nothing waits to be written to a neighbour. */
bool agent_links_flushed(const struct agent *a);
/*
 * A link could not be begun for this reason. When it is want of descriptors, and
 * stays so for AGENT_LACK_MS, the step is given up. `what`: see agent_give_up.
 */
void agent_links_lack(struct agent *a, const char *what, int error);
/* Give up the neighbours whose links are not up. */
void agent_links_abandon(struct agent *a);
/* The same for those to which nobody has tried to make a link. */
void agent_links_abandon_untried(struct agent *a);
/* Say goodbye to the parent, or to the children. */
void agent_links_leave(struct agent *a, bool parent);
/* Answer the goodbye of the parent, if it still waits for that. */
void agent_links_answer(struct agent *a);
/* None of these links is up any more. */
bool agent_links_gone(const struct agent *a, bool parent);

/* Connections; used by agent_wireup.c. */
const struct link_ops *agent_conn_ops(void);
struct conn *agent_conn_new(struct agent *a, struct neighbour *n);
void agent_conn_drop(struct conn *c);
/* This connection is the link now. */
void agent_neighbour_up(struct neighbour *n, struct conn *c);
/* It will never be one. `why` is for people. */
void agent_neighbour_lost(struct neighbour *n, const char *why);

/* ---- agent_wireup.c ---- */

/* Where the node at a position listens, as it has told. */
struct whereabouts {
	uint32_t from;
	uint16_t port;
	struct sockaddr_storage addr; /* AF_UNSPEC: at the node's address */
};

int agent_wireup_open(struct agent *a);
void agent_wireup_begin(struct agent *a);
/* It is proved; when its build is another one, that is said once. */
void agent_wireup_met(struct agent *a, const char *who, const struct link *l);
/* Start to make the link with this neighbour, if nobody has; calls nothing. */
void agent_wireup_start(struct neighbour *n);
/* Drop the oldest inbound connection that has proved nothing, if any. */
bool agent_wireup_drop_oldest(struct agent *a);
/* A neighbour says where it listens. */
void agent_wireup_told(struct agent *a, const struct whereabouts *w);
/* Events of a connection that is not (yet) the link. */
void agent_wireup_proved(struct conn *c);
int agent_wireup_frame(struct conn *c, enum frame_type type);
void agent_wireup_ended(struct conn *c, int error);
/* Has either side tried to connect? */
bool agent_wireup_tried(const struct neighbour *n);
/* No more attempts; close all its connections but the link. */
void agent_wireup_stop(struct neighbour *n);
/* Go on with the attempts now. */
void agent_wireup_again(struct neighbour *n);
/* A look-up of its address has ended. */
void agent_wireup_found(struct neighbour *n);
/* A frame for it could not be sent or kept: the loop declares it lost. */
void agent_wireup_send_failed(struct neighbour *n, int error);

/* ---- agent_lookup.c ---- */

/*
 * Have the neighbour's address in n->addr. 0; -EINPROGRESS: agent_wireup_found is
 * called when it is known, or known not to be; or the negative errno of that.
 */
int agent_lookup(struct neighbour *n);

/* ---- agent_missing.c ---- */

/* An attempt has failed. May lose the neighbour. */
void agent_missing_tried(struct neighbour *n, int error);
/* srun says that the ranks of a node have been started. 0 or -EPROTO. */
int agent_missing_started(struct agent *a, uint32_t position);
/* slurmd there was asked to tell it. False: nobody listens for the step there. */
void agent_missing_told(struct agent *a, uint32_t position, bool may_listen);
/* The connection to srun has come up. */
void agent_missing_srun_up(struct agent *a);
/* There is a neighbour about which srun is being asked. */
bool agent_missing_asks(const struct agent *a);

/* ---- agent_control.c ---- */

int agent_control_open(struct agent *a);
void agent_control_close(struct agent *a);
void agent_control_free(struct agent *a);
/* From the own engine. */
void agent_control_send(struct agent *a, const void *data, size_t len);
/* Have srun end the step, and say why; without srun through the host. */
void agent_control_end_step(struct agent *a, const char *why, int code);
/* Connect to srun, so that it can ask; not when that has failed before. */
void agent_control_connect(struct agent *a);
/* It has none, but will try: what comes of it is told to agent_links_answer. */
bool agent_control_will_connect(const struct agent *a);
/*
 * A reason to be connected to srun may have gone. Without any the link is closed: of
 * the nodes of a step only the first, and those that lack a way through it, keep one.
 */
void agent_control_unneeded(struct agent *a);
/*
 * A question to srun itself, past the parent. While there is no connection one
 * is made instead; the question is lost.
 */
void agent_control_ask(struct agent *a, const void *data, size_t len);
/*
 * The parent passes nothing on: connect to srun, and send it everything over that
 * connection while it is up. True once it is.
 */
bool agent_control_bypass(struct agent *a);
/* From a child; from the parent. 0 or -EPROTO. */
int agent_control_from_child(struct agent *a, struct neighbour *child,
			     struct payload *frame);
int agent_control_from_above(struct agent *a, struct payload *frame);
/*
 * The parent is gone. It has dealt with the first `dealt_with` frames we sent;
 * in order: it left with a goodbye.
 */
void agent_control_parent_gone(struct agent *a, bool in_order,
			       uint64_t dealt_with, const char *why);
/*
 * The parent has gone without a goodbye while this node leaves. An abort that it
 * was to pass on may be lost, and there is no time to connect to srun.
 */
void agent_control_parent_silent(struct agent *a, const char *why);
/* A frame that was kept for the parent, whose link never came up. */
void agent_control_unsent(struct agent *a, const struct payload_vec *frame);
bool agent_control_flushed(const struct agent *a);
void agent_control_leave(struct agent *a);
bool agent_control_gone(const struct agent *a);

/* ---- agent_slots.c ---- */

/* Without a region, or where the kernel lacks something: 0, and no slots. */
int agent_slots_open(struct agent *a);
void agent_slots_close(struct agent *a);
void agent_slots_free(struct agent *a); /* after the server */
void agent_slots_wake(struct agent *a);
void agent_slots_again(struct agent *a);

/* ---- agent_tell.c ---- */

int agent_tell_open(struct agent *a);
void agent_tell_close(struct agent *a);
void agent_tell_free(struct agent *a);
/*
 * Have a neighbour told where we listen. False: it will not be. With `answer`,
 * agent_missing_told is called when it has been.
 */
bool agent_tell_neighbour(struct agent *a, uint32_t position, bool answer);
/* Have the host end the step. */
void agent_tell_kill(struct agent *a, const char *why);
/* Check a told message. 0 or -EPROTO, -EACCES. */
int agent_tell_check(const struct agent *a, const void *data, size_t len,
		     struct whereabouts *out);

#endif
