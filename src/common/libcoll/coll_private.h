/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Definitions that the files of libcoll share. One invariant carries everything: ranks
 * enter in order and links keep order, so for each kind
 *
 *   - every source (own slot or child) contributes to 0, 1, 2, ... in turn, and
 *     a counter a source says what it has contributed to;
 *   - collectives end in order, except that a fault ends all from some number
 *     on; those in flight are the contiguous range of struct coll_table.
 *
 * A series that is over (struct coll_bound past) ends all below some number, and every
 * source goes on there or later.
 *
 *   coll.c         the events: entering, messages, ranks and links that go
 *   coll_op.c      the table of collectives in flight
 *   coll_gather.c  fence and gather over the tree
 *   coll_scan.c    ring
 *   coll_fault.c   faults: knowing, failing, telling
 *   coll_series.c  series: beginning one, ending those before
 *   coll_fetch.c   fetches: see fetch.h
 *   coll_msg.c     wire form of messages
 *   subset*.c      collectives of some ranks: see subset_private.h
 */
#pragma once

#include "libcoll/fetch.h"

/* The contribution of one source to a ring; owns its references. */
struct coll_edges {
	struct payload *left, *right;
	uint64_t count;
};

/* The contribution of one source to a fence or gather; owns its references. */
struct coll_data {
	struct payload *first;    /* of what is not ready: all, as a rule */
	struct payload_vec *rest; /* further pieces, or NULL */
	uint64_t total;           /* bytes that have come, ever */
	bool in;                  /* nothing more comes */
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
	struct payload_vec pieces; /* or, without a result, the entries that have come */
	size_t size;
	size_t received;
	bool begun;             /* its first message has come */
	bool ended;
	struct payload *reason; /* ended without bytes: why; NULL: no memory */
};

/* A collective in flight. With all parts in, it waits for the parent. */
struct coll_op {
	uint32_t missing;         /* parts that are not in */
	uint32_t entrants;        /* own ranks that have entered */
	uint32_t next;            /* first part that is not in */
	struct payload_vec ready; /* of the parts up to that one: what has not
	                             gone up */
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
	uint32_t subsets;    /* entries that have not ended */
	uint32_t series;     /* begun after the first, */
	uint32_t over;       /* number of ended series: `series`, or one more */
	struct payload *over_why; /* the last of them; NULL: no memory */
	unsigned gone; /* enum coll_side */
	struct payload *why[COLL_SIDES]; /* reason of the loss; NULL: no memory for it */
};

static inline enum coll_side coll_side_of_kind(enum coll_kind kind)
{
	return kind == COLL_PMIX ? COLL_OF_PMIX : COLL_OF_PMI;
}

static inline enum coll_side coll_side_of_op(uint8_t op, uint8_t first_of_pmix)
{
	return op < first_of_pmix ? COLL_OF_PMI : COLL_OF_PMIX;
}

/* Why the slot has gone from one side. */
static inline const struct payload *coll_slot_why(const struct coll_slot *slot,
						  enum coll_side side)
{
	return slot->why[side == COLL_OF_PMIX];
}

struct coll_peer {
	uint32_t position;
	uint32_t ups[COLL_KINDS];  /* child: contributions received */
	uint32_t told[COLL_KINDS]; /* the fault that it is known to know */
	uint32_t past;             /* the end of past series that it is known to know */
	uint64_t subset_ups;       /* child: those that have not ended */
	uint64_t fetches;          /* from there, not answered */
	bool lost;                 /* nothing goes there, nothing comes */
	struct payload *why;       /* reason of the loss; NULL: no memory for it */
	struct payload *said;      /* why of the last fault that it told of */
};

struct coll {
	struct tree_place place;
	uint32_t piece;
	const struct coll_ops *ops;
	void *arg;
	struct budget *budget;
	const struct layout *layout;
	const uint32_t *ranks; /* of the slots */
	uint32_t nslots;
	size_t pending;        /* collectives in flight with entrants */
	struct coll_slot *slots;
	struct coll_peer *peers; /* children, then parent (lost at the root) */
	struct coll_table tables[COLL_KINDS];
	uint32_t sent[COLL_KINDS]; /* fence, gather: whole contributions that
	                              have gone up: later ones wait */
	struct coll_bound fault[COLL_KINDS]; /* the collectives that cannot complete, */
	struct coll_bound past; /* nor can PMIx fences before this one; 0: none */
	struct subset *subsets; /* see subset_private.h */
	size_t subset_entries;  /* of own ranks, that have not ended */
	uint64_t subset_ended;  /* subset operations that have ended */
	bool subset_no_memory;  /* to be said when the event ends */
	bool subset_dead;       /* all fail that need this node, */
	struct payload *subset_why; /* for this */
	struct fetch *fetches;      /* not answered, by the number given here */
	uint32_t fetch_id;          /* the number given last */
	uint64_t own_fetches;       /* of this node */
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
	return seq >= c->fault[kind].from ||
	       (kind == COLL_PMIX && seq < c->past.from);
}

static inline void coll_no_fault(uint32_t from[COLL_KINDS])
{
	for (int kind = 0; kind < COLL_KINDS; kind++)
		from[kind] = COLL_NEVER;
}

/* NULL for what is no neighbour, or one whose link is lost. */
struct coll_peer *coll_peer_at(const struct coll *c, uint32_t position);

/* How many ranks the nodes of a subtree have. */
uint32_t coll_ranks_within(const struct coll *c, struct tree_range range);

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
 * As above, but makes those up to `seq` which are not in flight yet: as a rule it is the
 * next one. NULL: no memory.
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
 * Add bytes (NULL: none) to a part; `more` will come. Takes a reference. Sends up
 * what can go, or at the root makes the result.
 */
void coll_gather_add(struct coll *c, enum coll_kind kind, uint32_t seq,
		     uint32_t index, struct payload *data, bool more);
/* DOWN or REST came from the parent. 0, or -EPROTO with nothing changed. */
int coll_gather_down(struct coll *c, const struct coll_msg *msg,
		     struct coll_op *op, struct payload *body);
struct payload *coll_gather_room(struct coll *c, const struct coll_msg *msg,
				 struct coll_op *op, size_t len);

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
/* As above, for one kind. */
void coll_fault_raise_from(struct coll *c, enum coll_kind kind, uint32_t seq,
			   const char *why);
/* As above, for all collectives of every kind that have not ended here. */
void coll_fault_raise_all(struct coll *c, const char *why);
/* This node lacks memory for collective `seq` and all later ones. */
void coll_fault_no_memory(struct coll *c, enum coll_kind kind, uint32_t seq);
/* Tell a neighbour what it is not known to know. */
void coll_fault_tell(struct coll *c, struct coll_peer *peer);
/* The fault that operations report for a covered collective. */
void coll_fault_describe(const struct coll *c, enum coll_kind kind, uint32_t seq,
			 struct coll_fault *out);
/* A reason as a payload, or NULL, and back. */
struct payload *coll_reason_new(const char *why);
void coll_reason_copy(char out[COLL_REASON_MAX], const struct payload *reason);
void coll_fault_free(struct coll *c);

/* ---- coll_series.c ---- */

/* SERIES came. 0 or -EPROTO. */
int coll_series_receive(struct coll *c, struct coll_peer *peer,
			const struct coll_msg *msg);
/* Tell a neighbour what it is not known to know. */
void coll_series_tell(struct coll *c, struct coll_peer *peer);
/* A child that has gone on in a later series: its next number may be this one. */
bool coll_series_skips(const struct coll *c, const struct coll_msg *msg);
void coll_series_free(struct coll *c);

/* ---- subset*.c ---- */

/* A rank or node is lost: fail the groups that need it. */
void coll_subsets_check(struct coll *c);
/* A message of subsets. 0 or -EPROTO. */
int coll_subset_receive(struct coll *c, struct coll_peer *peer,
			const struct coll_msg *msg, struct payload *body);
void coll_subsets_free(struct coll *c);

/* ---- coll_fetch.c ---- */

/* FETCH or FETCHED. 0 or -EPROTO. */
int coll_fetch_receive(struct coll *c, struct coll_peer *peer,
		       const struct coll_msg *msg, struct payload *body);
/* Fetches over this link, which is lost, or of this rank, get no answer. */
void coll_fetches_link_lost(struct coll *c, const struct coll_peer *peer);
void coll_fetches_rank_gone(struct coll *c, uint32_t slot, enum coll_side sides);
void coll_fetches_free(struct coll *c);
