/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the agent of a node tells about a running step when it is asked: how far
 * each of its ranks is, what has ended, and how its links are. Of fixed-width
 * numbers only; names are known to srun.
 */
#ifndef PMI2X_STATE_H
#define PMI2X_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include "libcoll/coll.h"
#include "libutil/buf.h"
#include "libutil/pack.h"

#define STATE_RUNS_MAX 65536  /* of ranks */
#define STATE_LINKS_MAX 2048  /* of a node */
#define STATE_BYTES_MAX ((size_t)4 << 20) /* packed */

enum state_phase {
	STATE_ABSENT,    /* the process has not registered */
	STATE_FRESH,     /* it runs, and has not started PMI */
	STATE_STARTING,
	STATE_ACTIVE,
	STATE_FINALIZED,
	STATE_GONE,
	STATE_PHASES,
};

/* Consecutive ranks of a node that are equally far. */
struct state_run {
	uint32_t first, last;
	enum state_phase phase;
	bool stopped; /* by a signal, or by a debugger */
	uint32_t entered[COLL_KINDS];
};

enum state_link_state {
	STATE_LINK_WAITING, /* not connected (yet) */
	STATE_LINK_UP,
	STATE_LINK_LEFT,
	STATE_LINK_LOST,
	STATE_LINK_STATES,
};

struct state_link {
	uint32_t position;
	bool is_parent;
	enum state_link_state state;
	uint64_t queued; /* bytes that wait to be sent */
};

struct node_state {
	uint32_t age_ms;   /* how long the node's ranks wait; 0: they do not */
	uint32_t requests; /* to srun or for attributes, without an answer */
	uint32_t ended[COLL_KINDS]; /* collectives that have ended here */
	struct state_run *runs;
	uint32_t nruns;
	struct state_link *links;
	uint32_t nlinks;
};

/* 0 or the errors of buf_append. */
int state_pack(struct buf *b, const struct node_state *s);
/* 0, -EPROTO or -ENOMEM; on success free with state_free. */
int state_unpack(const void *data, size_t len, struct node_state *s);
void state_free(struct node_state *s);

/* Add a rank: to the last run when it continues that. runs has room. */
void state_add_rank(struct node_state *s, const struct state_run *rank);

const char *state_phase_name(enum state_phase phase);
const char *state_link_name(enum state_link_state state);

#endif
