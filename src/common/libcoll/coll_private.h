/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the files of libcoll share. One invariant carries everything: ranks
 * enter in order and links keep order, so for each kind
 *
 *   - every source (own slot or child) contributes to 0, 1, 2, ... in turn, and
 *     a counter a source says what it has contributed to;
 *   - collectives end in order, except that a fault ends all from some number
 *     on; those in flight are the contiguous range of struct coll_table.
 *
 *   coll.c         the events: entering, messages, ranks and links that go
 *   coll_op.c      the table of collectives in flight
 *   coll_gather.c  fence and gather over the tree
 *   coll_plan.c    fence and gather: agreeing on an algorithm
 *   coll_exchange.c  fence and gather by rounds between any two nodes
 *   coll_scan.c    ring
 *   coll_fault.c   faults: knowing, failing, telling
 *   coll_msg.c     wire form of messages
 */
#ifndef PMI2X_COLL_PRIVATE_H
#define PMI2X_COLL_PRIVATE_H

#include "libcoll/coll.h"

/* What one source adds to a ring; owns its references. */
struct coll_edges {
	struct payload *left, *right;
	uint64_t count;
};

/* What one source adds to a fence or gather; owns its references. */
struct coll_data {
	struct payload *first;    /* all there is, as a rule */
	struct payload_vec *rest; /* further pieces, or NULL */
	uint64_t bytes;           /* of these */
	uint64_t total;           /* that have come, ever */
	bool in;                  /* nothing more comes */
	bool announced;           /* a child: it has told its size */
	uint64_t size;            /* then: what it told */
};

struct coll_part {
	union {
		struct coll_edges edges;
		struct coll_data data;
	};
};

/* The result of a fence or gather while it comes and until its turn. */
struct coll_result {
	struct payload *bytes;  /* all of them, when they have come */
	struct payload *room;   /* where the host wants them, while they come; */
	struct payload_vec pieces; /* or, without that, what has come */
	size_t size;
	size_t received;
	uint64_t raw;           /* what they unpack to; 0: they are not packed */
	bool begun;             /* its first message has come */
	bool ended;
	struct payload *reason; /* ended without bytes: why; NULL: no memory */
};

/*
 *   OPEN -- PLAN, or nobody was told a size --> TREE
 *     +---- PLAN ----------------------------> EXCHANGE
 */
enum coll_route { COLL_OPEN, COLL_TREE, COLL_EXCHANGE };

/* A collective in flight. With all parts in, it waits for the parent. */
struct coll_op {
	enum coll_route route;    /* fence, gather */
	bool announced;           /* the parent was told the size */
	uint32_t missing;         /* parts that are not in, nor announced */
	uint32_t entrants;        /* own ranks that have entered */
	uint32_t next;            /* first part that has not gone up whole */
	uint64_t held;            /* bytes of parts that have not gone up */
	struct coll_result result;
	struct coll_part parts[]; /* own slots, then children: tree order */
};

/* The collectives of a kind in flight: [first, first + count). */
struct coll_table {
	uint32_t first; /* everything before has ended */
	uint32_t count;
	uint32_t cap;   /* of ring: a power of two, or 0 */
	struct coll_op **ring;
};

/* From which sequence number on a kind fails, and why. */
struct coll_bound {
	uint32_t from;          /* COLL_NEVER: not at all */
	struct payload *reason; /* text with its NUL; NULL: no memory for it */
};

struct coll_slot {
	uint32_t entered[COLL_KINDS];
	bool gone;
};

struct coll_peer {
	uint32_t position;
	uint32_t ups[COLL_KINDS];  /* child: contributions received */
	uint32_t told[COLL_KINDS]; /* the fault that it is known to know */
	bool lost;                 /* nothing goes there, nothing comes */
	bool active;               /* far: there has been something to say */
};

/* A round at the node that has the bytes. */
struct coll_serving {
	bool wanted;    /* WANT has come */
	bool over;      /* all was sent */
	uint64_t room;  /* what was wanted at most */
	uint64_t limit; /* held when the round began */
	uint64_t sent;
};

/*
 * A collective that goes by rounds. Outlives its coll_op as long as another
 * node needs what this one holds. The bytes held begin at `before` and go on at
 * the start behind the end.
 */
struct coll_exchange {
	struct coll_exchange *next;
	enum coll_kind kind;
	uint32_t seq;
	enum coll_algorithm algorithm;
	uint32_t rounds;
	bool started;  /* the plan has come; before, only WANTs are noted */
	bool done;     /* everything is here */
	uint32_t round; /* the one that is received */
	uint64_t before, total, held;
	struct payload *bytes; /* total */
	struct coll_serving serving[COLL_ROUNDS_MAX];
};

struct coll {
	struct tree_place place;
	uint32_t nodes;
	enum coll_algorithm algorithm;
	uint64_t announce_min; /* bytes; what is less goes up at once */
	struct coll_peer *far; /* other nodes that algorithms may need */
	uint32_t *far_positions;
	uint32_t nfar;
	struct coll_exchange *exchanges;
	uint32_t width;
	uint32_t piece;
	const struct coll_ops *ops;
	void *arg;
	const uint32_t *ranks; /* of the slots */
	uint32_t nslots;
	size_t pending;        /* collectives in flight with entrants */
	struct coll_slot *slots;
	struct coll_peer *peers; /* children, then parent (lost at the root) */
	struct coll_table tables[COLL_KINDS];
	uint32_t sent[COLL_KINDS]; /* fence, gather: whole contributions that
	                              have gone up: later ones wait */
	struct coll_bound fault[COLL_KINDS]; /* what cannot complete */
};

static inline bool coll_is_root(const struct coll *c)
{
	return c->place.parent == TREE_NONE;
}

static inline struct coll_peer *coll_parent(const struct coll *c)
{
	return &c->peers[c->place.children];
}

static inline bool coll_covered(const struct coll *c, enum coll_kind kind,
				uint32_t seq)
{
	return seq >= c->fault[kind].from;
}

/* How many parts a collective has: own slots and children. */
static inline uint32_t coll_nparts(const struct coll *c)
{
	return c->nslots + c->place.children;
}

/* Send to a neighbour, unless its link is lost. */
void coll_send(struct coll *c, const struct coll_peer *peer,
	       const struct coll_msg *msg, const struct payload_vec *body);

/* ---- coll_op.c ---- */

/* NULL when `seq` is not in flight. */
struct coll_op *coll_op_find(const struct coll *c, enum coll_kind kind,
			     uint32_t seq);
/*
 * The same, but a new one when `seq` is the next after those in flight, which
 * the invariant above promises. NULL: no memory.
 */
struct coll_op *coll_op_open(struct coll *c, enum coll_kind kind, uint32_t seq);
/* The first in flight has ended: free it. */
void coll_op_close_first(struct coll *c, enum coll_kind kind);
/* Free all in flight from `from` on. */
void coll_op_cut(struct coll *c, enum coll_kind kind, uint32_t from);
void coll_edges_clear(struct coll_edges *edges);
void coll_data_clear(struct coll_data *data);
void coll_table_free(struct coll *c, enum coll_kind kind);

/* ---- coll_gather.c ---- */

/*
 * Add bytes (NULL: none) to a part; `more` will come. Takes a reference. 0 or
 * -ENOMEM.
 */
int coll_gather_add(struct coll_op *op, uint32_t index, struct payload *data,
		    bool more);
/* Something was added: send up what can go, or at the root make the result. */
void coll_gather_advance(struct coll *c, enum coll_kind kind, uint32_t seq,
			 struct coll_op *op);
/* DOWN or REST came from the parent. 0, or -EPROTO with nothing changed. */
int coll_gather_down(struct coll *c, const struct coll_msg *msg,
		     struct coll_op *op, struct payload *body);
struct payload *coll_gather_room(struct coll *c, const struct coll_msg *msg,
				 struct coll_op *op, size_t len);

/* All references of a part, in order, into a list. 0 or -ENOMEM. */
int coll_data_list(const struct coll_data *d, struct payload_vec *out);
/* Send a list up, in messages of about a piece; `more` comes later. */
void coll_gather_send_up(struct coll *c, enum coll_kind kind, uint32_t seq,
			 const struct payload_vec *all, bool more);
/* Tell the host what has ended, in order. */
void coll_gather_end(struct coll *c, enum coll_kind kind);
/* It has failed alone: `reason` for everybody below and here. */
void coll_gather_fail(struct coll *c, enum coll_kind kind, uint32_t seq,
		      struct coll_op *op, const char *reason);
/* The contributions of all nodes are `parts`. NULL: *why says why. */
struct payload *coll_gather_combine(struct coll *c, enum coll_kind kind,
				    uint32_t seq,
				    const struct payload_vec *parts,
				    char why[COLL_REASON_MAX]);

/* ---- coll_plan.c ---- */

/* Whether anything but the tree may be taken. */
bool coll_plan_needed(const struct coll *c);
/* Everybody below has told what there is, the route is open. */
void coll_plan_ready(struct coll *c, enum coll_kind kind, uint32_t seq,
		     struct coll_op *op);
/* SIZE of a child; PLAN of the parent. 0 or -EPROTO. */
void coll_plan_size(struct coll *c, const struct coll_msg *msg,
		    struct coll_op *op, uint32_t index);
int coll_plan_receive(struct coll *c, const struct coll_msg *msg,
		      struct coll_op *op);

/* ---- coll_exchange.c ---- */

/* The bytes of own slots begin at `before` of `total`. */
void coll_exchange_start(struct coll *c, enum coll_kind kind, uint32_t seq,
			 enum coll_algorithm a, uint64_t before,
			 uint64_t total);
/* WANT, DATA. 0 or -EPROTO. */
int coll_exchange_receive(struct coll *c, struct coll_peer *peer,
			  const struct coll_msg *msg, struct payload *body);
struct payload *coll_exchange_room(struct coll *c, const struct coll_peer *peer,
				   const struct coll_msg *msg, size_t len);
/*
 * A node is gone. Lowers from[] to the exchanges that still need it; those for
 * which it would have needed this node do not wait for it any more.
 */
void coll_exchange_lost(struct coll *c, uint32_t position,
			uint32_t from[COLL_KINDS]);
/* The first collective under way by rounds here; COLL_NEVER: none. */
uint32_t coll_exchange_first(const struct coll *c, enum coll_kind kind);
/* Forget those of a kind from `from` on. */
void coll_exchange_cut(struct coll *c, enum coll_kind kind, uint32_t from);
/* How many have ended here, but others need them. */
size_t coll_exchange_lingering(const struct coll *c);
/* Set up the far peers. 0 or -ENOMEM. */
int coll_far_create(struct coll *c);
struct coll_peer *coll_far(const struct coll *c, uint32_t position);

/* ---- coll.c ---- */

void coll_peer_init(struct coll_peer *peer, uint32_t position);
/* NULL for what is no neighbour and not far, or one whose link is lost. */
struct coll_peer *coll_peer_at(const struct coll *c, uint32_t position);

/* ---- coll_scan.c ---- */

void coll_scan_ready(struct coll *c, uint32_t seq, struct coll_op *op);
/* 0, or -EPROTO with nothing changed. */
int coll_scan_down(struct coll *c, const struct coll_msg *msg,
		   struct payload *body);
/*
 * Take a ring message's body apart. 0, -EPROTO or -ENOMEM; `edges` is empty then.
 */
int coll_scan_split(const struct coll_msg *msg, struct payload *body,
		    struct coll_edges *edges);

/* ---- coll_fault.c ---- */

/* A fault has become known here: fail what it covers, tell the neighbours. */
void coll_fault_raise(struct coll *c, const uint32_t from[COLL_KINDS],
		      const char *why);
/* This node has no memory to go on with `seq` and all after it. */
void coll_fault_no_memory(struct coll *c, enum coll_kind kind, uint32_t seq);
/* Tell a neighbour what it is not known to know. */
void coll_fault_tell(struct coll *c, struct coll_peer *peer);
/* What operations are told about a covered collective of this kind. */
void coll_fault_describe(const struct coll *c, enum coll_kind kind,
			 struct coll_fault *out);
/* A reason as a payload, or NULL, and back. */
struct payload *coll_reason_new(const char *why);
void coll_reason_copy(char out[COLL_REASON_MAX], const struct payload *reason);
void coll_fault_free(struct coll *c);

#endif
