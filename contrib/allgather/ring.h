/* SPDX-License-Identifier: BSD-3-Clause */
/* The ring of this process: what its parts know of each other. */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "flow.h"
#include "group.h"
#include "pmi2x_allgather.h"
#include "store.h"
#include "transport.h"

#define NODE_NAME_MAX 64
#define RING_STALL_S 300 /* PMI2X_ALLGATHER_TIMEOUT */

enum op_phase {
	OP_QUEUED,   /* others before it are not complete */
	OP_ENTERED,  /* the block is given; the node's other ranks may not be in */
	OP_MOVING,   /* leader: blocks travel over the ring */
	OP_COMPLETE, /* `code` says how; nobody has waited for it yet */
};

/* An allgather, from its start until it has been waited for. */
struct op {
	struct op *next;
	pmi2x_ring_request id;
	enum op_phase phase;
	int code;
	const void *block;
	size_t len;
	char *buffer;
	size_t stride;
	size_t *lengths; /* NULL: all blocks have `stride` bytes */
	struct pmi_gather *pmi; /* where there is no transport */
};

/* A neighbour, as messages name it. */
struct neighbour {
	int rank; /* of its leader */
	char node[NODE_NAME_MAX];
	bool broken;
	char reason[TRANSPORT_REASON_MAX];
};

/* Tells the rings of the library and of its preloadable form apart. */
struct ring_use {
	const char *keys;    /* how the names of its keys start */
	const char *allowed; /* transports, where the user names none */
	unsigned int sequence; /* of the ring in the process, from 0 */
};

struct pmi2x_ring {
	pthread_mutex_t lock;
	pmi2x_ring_pmi pmi;
	int rank, size;
	struct ring_use use;
	char node[NODE_NAME_MAX];
	int64_t stall_ms; /* without progress, until an operation fails */

	/* The element that this process belongs to. */
	uint32_t elements;        /* of the ring; 0: over PMI */
	uint32_t members, index;  /* ranks of this element; own place */
	int *ranks;               /* of the members */
	struct group *group;      /* NULL: one member */

	/* The state of an element's leader. */
	const struct transport_ops *ops; /* NULL: one element */
	struct transport *transport;
	struct neighbour neighbours[SIDES];
	struct store store;
	struct flow flow;         /* of the operation that is moving */
	bool moving;
	uint32_t generation;      /* operations that were moved before */

	/* Operations in order; the first one that is not complete is at work. */
	struct op *first;
	uint64_t last_id;
	int64_t looked;           /* when it was last looked for progress */
	int64_t looked_around;    /* ... for others of the node */
	int64_t stalled;          /* ms without progress while looking */

	bool failed;              /* for good; `error` says why */
	char error[PMI2X_RING_ERROR_MAX];
	const char *name;         /* of what blocks travel over */
	pmi2x_ring_counters counters;
};

/* ---- create.c ---- */

/* As pmi2x_ring_create; `why` has PMI2X_RING_ERROR_MAX bytes. */
int ring_create(struct pmi2x_ring **out, const struct ring_use *use,
		const pmi2x_ring_pmi *pmi, char *why);

/* ---- links.c: the leader's side of the transport ---- */

/* Upcalls; `arg` is the ring. */
int ring_on_message(void *arg, enum ring_side side, const void *data,
		    size_t len);
void ring_on_broken(void *arg, enum ring_side side, const char *reason);

/* Send what can be sent, take what has come; the number of things done. */
int ring_pump(struct pmi2x_ring *r);
/* Everything has come and gone. */
bool ring_moved(const struct pmi2x_ring *r);

/*
 * The ring has failed: remember the first reason, tell the neighbours, the
 * members of the node, and every operation. `fmt` names who is to blame.
 */
void ring_fail(struct pmi2x_ring *r, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* As above, with a neighbour to blame. */
void ring_blame(struct pmi2x_ring *r, enum ring_side side, const char *reason);
/* "left" or "right". */
const char *ring_side_name(enum ring_side side);

/* ---- ops.c ---- */

/* Make progress; if there is none and `wait` holds, wait for some time. */
void ring_advance(struct pmi2x_ring *r, bool wait);

/*
 * A rank has given a block of another length than this one, where all must be
 * equal: say so. The ring goes on. PMI2_ERR_INVALID_VAL_LENGTH.
 */
int ring_refuse_length(struct pmi2x_ring *r, const struct op *op, int rank);
