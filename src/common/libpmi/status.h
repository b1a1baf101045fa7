/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The status of a step: what each node tells about itself when srun asks, in
 * numbers, and what the nodes say together: which collective waits for whom.
 * Used by the agents, by srun for its stall report, and to answer pmi2x trace.
 */
#ifndef PMI2X_STATUS_H
#define PMI2X_STATUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libcoll/coll.h"
#include "libutil/buf.h"

/* ---- of a node; pmi2x trace knows the form and the numbers, too ---- */

#define STATUS_RUNS_MAX 65536  /* of ranks */
#define STATUS_LINKS_MAX 2048
#define STATUS_NODE_MAX ((size_t)4 << 20) /* bytes, packed */

enum status_phase {
	STATUS_ABSENT,    /* the process has not registered */
	STATUS_FRESH,     /* running, PMI not started */
	STATUS_STARTING,
	STATUS_ACTIVE,
	STATUS_FINALIZED,
	STATUS_GONE,
	STATUS_IN_PMI,    /* active; has never started PMIx */
	STATUS_IN_PMIX,   /* active; has never started PMI */
	STATUS_PHASES,
};

/* Consecutive ranks that are equally far. */
struct status_run {
	uint32_t first, last;
	enum status_phase phase;
	bool stopped; /* by a signal or a debugger, or frozen */
	uint32_t entered[COLL_KINDS];
};

/*
 * A client that waits for a key of the store (libstore/store.h), and a rank that has come to it. A
 * client of pmi2x-sync has the number of its rank. A connection of PyTorch is known by the node and
 * the port that it comes from: that node knows the rank.
 */
struct status_waiter {
	uint32_t position; /* of the node */
	uint32_t id;       /* rank, or port */
	bool other;        /* it waits for another key */
};

#define STATUS_PORT_HIDDEN 1 /* the connections of the rank cannot be seen */

struct status_comer {
	uint32_t rank; /* of this node */
	uint16_t port; /* of a connection to PyTorch's TCPStore; 0: it has used pmi2x-sync */
};

struct status_keys {
	char *key;       /* that the oldest wait misses, for people; NULL: nobody waits for a key */
	uint32_t age_s;
	bool torch;      /* connections of PyTorch wait for the key */
	uint32_t nwaiters, ncomers;
	struct status_waiter *waiters;
	struct status_comer *comers;
};

struct node_status {
	uint32_t age_ms;   /* how long the node's ranks wait; 0: they do not */
	uint32_t requests; /* to srun or for attributes, without an answer */
	uint32_t ended[COLL_KINDS]; /* collectives that have ended here */
	struct status_run *runs;
	uint32_t nruns;
	char *wait; /* a line about a wait that is no collective and for no key, or NULL */
	struct status_keys keys;
};

enum status_link {
	STATUS_LINK_WAITING, /* not connected (yet) */
	STATUS_LINK_UP,
	STATUS_LINK_LEFT,
	STATUS_LINK_LOST,
};

/* Add a rank: to the last run when it continues that. runs has room. */
void status_add_rank(struct node_status *n, const struct status_run *rank);

/*
 * The packed form is this but `wait` and `keys`, the number of the node's links, and those; then
 * `wait` and `keys`, if there is one of them. 0 or the errors of buf_append.
 */
int status_pack(struct buf *b, const struct node_status *n);
int status_pack_waits(struct buf *b, const struct node_status *n);
/* `queued`: bytes that wait to be sent. */
int status_pack_link(struct buf *b, uint32_t position, bool is_parent,
		     enum status_link link, uint64_t queued);
/*
 * All but the links: these are for tools. 0, -EPROTO or -ENOMEM; on success call
 * status_free.
 */
int status_unpack(const void *data, size_t len, struct node_status *n);
/* Free all that the struct points to. */
void status_free(struct node_status *n);

/* ---- of the step; one thread at a time ---- */

/* For users whose ranks wait in different interfaces. */
#define STATUS_ONE_INTERFACE "all ranks of a step must use the same one"
#define STATUS_WAIT_MS 5000 /* nodes without an answer by then are silent */
#define STATUS_NODES_MAX (1u << 20)
#define STATUS_TEXT_MAX 1024 /* bytes of a report, NUL included */
#define STATUS_ANSWER_MAX ((size_t)256 << 20) /* bytes for a tool */

struct step_status;

/* The name of the node at a position; valid while the step_status is. */
typedef const char *(*status_name_fn)(void *arg, uint32_t position);

/* For `nodes` nodes. 0, -EINVAL or -ENOMEM. */
int step_status_create(struct step_status **out, uint32_t nodes,
		       status_name_fn name, void *arg);
void step_status_destroy(struct step_status *s); /* NULL is allowed */

/*
 * The packed status of the node at a position. 0; -EPROTO, -EEXIST, -ENOBUFS or
 * -ENOMEM: left out.
 */
int step_status_add(struct step_status *s, uint32_t position, const void *data,
		    size_t len);
bool step_status_complete(const struct step_status *s); /* all have answered */

/* A collective that has been entered and has not ended everywhere. */
struct stalled {
	enum coll_kind kind;
	uint32_t seq;
	uint32_t age_ms;  /* of the node that has waited longest */
	uint32_t missing; /* ranks; 0: all are in, or their nodes are silent */
};

/* The oldest of a kind that has not ended; false: there is none. */
bool step_status_stalled(const struct step_status *s, enum coll_kind kind,
			 struct stalled *out);
/*
 * True: ranks wait in `out` for ranks that wait for them in a fence of PMIx, so both wait
 * forever.
 */
bool step_status_crossed(const struct step_status *s, struct stalled *out);
/*
 * "fence 3: 12 s, waiting for 3 of 4096 ranks: 17, 1024-1025 (nodes n2, n65)".
 * Entries that do not fit are counted. Returns `out`.
 */
const char *step_status_text(const struct step_status *s,
			     const struct stalled *what,
			     char out[STATUS_TEXT_MAX]);
/*
 * "key x: 60 s, ranks 1-2 (nodes n1, n2) wait for it, and it has no value; rank 3 (node n3) has not
 * connected to the TCPStore": the key that has been waited for longest, of all nodes. False: nobody has
 * waited for a key for `least_s`, or there is no memory.
 */
bool step_status_key(const struct step_status *s, uint32_t least_s, char out[STATUS_TEXT_MAX],
		     uint32_t *age_s);
/*
 * For tools: STATUS_FORM and the name of the step; a number and the names of the
 * nodes; a number and the texts of what waits, collectives first; then to the end the position of each
 * node that has answered, and the bytes it has packed. 0 or the errors of buf_append.
 */
int step_status_pack(const struct step_status *s, const char *step,
		     struct buf *out);
#define STATUS_FORM "pmi2x-status 3"
#define STATUS_SOCKET "pmi2x-status" /* where tools ask: srun_server_status.c */

#endif
