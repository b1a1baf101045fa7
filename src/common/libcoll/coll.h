/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Collectives between the nodes of a step as state machines: messages in,
 * messages out. One object a node. Calls no system function; the host passes
 * events in and gets operations back through struct coll_ops.
 *
 * A collective is named by its kind and its sequence number: the n-th fence
 * that a rank enters is fence n for everybody (n from 0). Any number may be in
 * flight; those of one kind end in order, the kinds independently.
 *
 *   fence, gather, PMIx fence: contributions go up the tree; the root combines
 *                  them once (coll_ops.combine) and the result goes down unparsed.
 *   ring:          a scan: only the edge values of each subtree travel.
 *
 * Below, what is said of a gather holds for the other kinds but the ring, too.
 *
 * Failure. A fault says from which sequence number on the collectives of each
 * kind can no longer complete, and why. It is known to a node locally
 * (coll_rank_gone, coll_link_lost) or by message, is passed on to every
 * neighbour that does not know as much, and fails what it covers, pending or
 * entered later, with its reason. Collectives below that number still complete.
 *
 * Series. A PMIx program that ranks run begins a series of numbers (COLL_SERIES), so
 * that its fences never meet those of the program before: that one may have been killed
 * before a fence that other ranks have entered. A rank begins its next series
 * (coll_next_series), or its program is known to have ended (coll_end_series): from then on
 * what has not ended of the series before fails everywhere.
 *
 * Re-entrancy: an operation of coll_ops must not call back into the same
 * coll object; hosts queue. One thread at a time.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libcoll/layout.h"
#include "libcoll/tree.h"
#include "libutil/buf.h"
#include "libutil/log.h"
#include "libutil/pack.h"
#include "libutil/payload.h"

/* PMIx: the fences of its clients, which are gathers with numbers of their own. */
enum coll_kind { COLL_FENCE, COLL_GATHER, COLL_RING, COLL_PMIX, COLL_KINDS };

/*
 * The two interfaces that a rank may use, and may be gone from one by one, as bits.
 * COLL_PMIX, and the operations of subsets from COLL_OP_PMIX and of fetches from
 * COLL_FETCH_PMIX on, are of PMIx; all others are of PMI.
 */
enum coll_side { COLL_OF_PMI = 1, COLL_OF_PMIX = 2, COLL_OF_ALL = 3 };
#define COLL_SIDES 2
#define COLL_OP_PMIX 16

/* "fence", "allgather", "ring", "PMIx fence" */
const char *coll_kind_name(enum coll_kind kind);

#define COLL_REASON_MAX 512     /* bytes of a fault's reason, NUL included */
#define COLL_NEVER UINT32_MAX   /* in coll_fault.from: this kind is not hit */
#define COLL_SERIES 4096        /* a series begins with a multiple of it, and the
                                   first one that is free: a long one takes several */
#define COLL_IN_FLIGHT_MAX 1024 /* collectives of a kind pending at a node */
#define COLL_PIECE 65536        /* bytes of a message, about, by default */
#define COLL_BYTES_MAX ((uint64_t)2 << 30) /* of a result, and of what a
                                              subtree contributes to it */

/*
 * Given to an operation, `from` is what the node knows of every kind, and the
 * reason is that of the collective which failed. All COLL_NEVER: this one
 * alone failed (coll_ops.combine did), later ones are not affected; or all of its series
 * have.
 */
struct coll_fault {
	uint32_t from[COLL_KINDS]; /* first that cannot complete */
	bool series; /* its whole series has failed; `from` has no meaning */
	char reason[COLL_REASON_MAX];
};

enum coll_msg_type {
	COLL_MSG_UP,    /* a subtree's contribution, child to parent */
	COLL_MSG_DOWN,  /* the result, parent to child */
	COLL_MSG_REST,  /* more of the result, after COLL_MSG_DOWN */
	COLL_MSG_FAULT, /* collectives that cannot complete; to any neighbour */
	/*
	 * Messages of a subset, see subset.h: only to those neighbours that need them.
	 */
	COLL_MSG_SUB_UP,   /* a subtree's contribution, child to parent */
	COLL_MSG_SUB_DOWN, /* the result, parent to child */
	COLL_MSG_SUB_OPEN, /* the members of a subset; a fault is known */
	COLL_MSG_SUB_FAIL, /* a group operation that cannot complete */
	/* See fetch.h. */
	COLL_MSG_FETCH,   /* asks, towards the owner */
	COLL_MSG_FETCHED, /* answers, the same way back */
	COLL_MSG_FLOOD,   /* see coll_flood */
	COLL_MSG_SERIES,  /* all of lower numbers cannot complete */
	COLL_MSG_TYPES,
};

#define COLL_KEY_SIZE 16 /* bytes */
#define COLL_DEPTH_MAX 20 /* of a node below the root: LAYOUT_NODES_MAX, and a
                             width of 2 */

/*
 * The part of a message that describes a subset. The key is a hash of its name. Numbers
 * are relative to what has gone over the link before, so both ends of it know the same
 * ones: ups are answered by downs, in order.
 */
struct coll_subset_msg {
	unsigned char key[COLL_KEY_SIZE];
	int32_t first;    /* OPEN: how many are in flight; FAIL: how many do
	                     not fail; to the child: from the one that has no DOWN
	                     yet on; to the parent: that has no UP yet (negative:
	                     some that have had one fail, too) */
	uint32_t members; /* UP: in the subtree */
	uint32_t above[COLL_DEPTH_MAX]; /* UP: members in the subtree of the
	                     receiver, of its parent, and so on, as long as these
	                     nodes have none themselves, to where all meet */
	uint32_t nabove;
	bool last;        /* UP: all meet at the last of these nodes */
};

/* The fields of a fetch message. */
struct coll_fetch_msg {
	uint32_t id;      /* of who sent FETCH, on this link alone */
	uint8_t op;       /* FETCH */
	uint32_t rank;    /* FETCH */
	uint32_t timeout; /* FETCH: ms */
	uint8_t status;   /* FETCHED: enum coll_fetch_status */
};

/*
 * A message between neighbours. The body is carried beside the header, never
 * parsed by libcoll:
 *   fence, gather UP: contributions of the subtree, in tree order; what one
 *                     rank has contributed is never divided;
 *   fence, gather DOWN, REST: the combined result, from its beginning;
 *   ring: `left_len` bytes of the left edge value, then the right edge value;
 *   SUB_UP:   the contributions of the subtree, in tree order;
 *   SUB_DOWN: the result;
 *   SUB_OPEN: the name;
 *   FETCH:    the key;
 *   FETCHED:  what was fetched;
 *   FLOOD:    what all nodes are told.
 */
struct coll_msg {
	enum coll_msg_type type;
	enum coll_kind kind; /* UP, DOWN, REST, SERIES */
	uint32_t seq;        /* the same; SERIES: the first of a series */
	bool more;           /* fence, gather UP: another one follows */
	uint64_t size;       /* fence, gather DOWN: bytes of the result */
	uint64_t count;      /* ring UP: ring-count of the subtree;
	                        ring DOWN: ring-count before the subtree */
	uint64_t total;      /* ring DOWN: ring-count of all */
	uint32_t left_len;   /* ring */
	bool failed;         /* fence, gather, SUB DOWN, SUB_UP: this one alone
	                        failed, for fault.reason; there is no body */
	struct coll_fault fault; /* FAULT; failed DOWN, SUB, FETCHED, SERIES: the reason */
	struct coll_subset_msg subset; /* SUB */
	struct coll_fetch_msg fetch; /* FETCH, FETCHED */
};

/* True: the message is about a collective with a kind and a sequence number. */
static inline bool coll_msg_has_kind(const struct coll_msg *msg)
{
	return msg->type < COLL_MSG_FAULT;
}

/* True: the message is one of SUB. */
static inline bool coll_msg_is_subset(const struct coll_msg *msg)
{
	return msg->type >= COLL_MSG_SUB_UP && msg->type <= COLL_MSG_SUB_FAIL;
}

/*
 * Append the header's wire form. 0 or the errors of buf_append; on failure
 * nothing is appended.
 */
int coll_msg_pack(struct buf *b, const struct coll_msg *msg);
/*
 * Read a header back; what follows it is the body. 0 or -EPROTO. Bytes of a
 * reason that are not printable ASCII become '?': it goes to logs and
 * terminals.
 */
int coll_msg_unpack(struct cursor *c, struct coll_msg *msg);
/* As above, for `len` bytes which are a header and nothing else. 0 or -EPROTO. */
int coll_msg_read(const void *head, size_t len, struct coll_msg *msg);

struct coll_fetch; /* these two: fetch.h */
struct coll_fetched;

/* The result of a ring for one slot of this node. Valid during the call only. */
struct coll_ring_result {
	uint64_t rank;           /* ring-count before this rank */
	uint64_t size;           /* ring-count of all */
	struct payload *left;    /* the right value of the one before, */
	struct payload *right;   /* the left value of the one after; an empty
	                            value may be NULL */
};

struct coll_ops {
	/*
	 * Queue a message for the neighbour at `position`. `body` may be NULL or
	 * empty; message and list end with the call, payloads are referenced by
	 * the callee if kept.
	 */
	void (*send)(void *arg, uint32_t position, const struct coll_msg *msg,
		     const struct payload_vec *body);
	/*
	 * At the root: make the result of a fence or gather from all
	 * contributions, in tree order. Returns one reference, or NULL with a
	 * negative errno in *error: the collective then fails everywhere.
	 */
	struct payload *(*combine)(void *arg, enum coll_kind kind, uint32_t seq,
				   const struct payload_vec *parts, int *error);
	/*
	 * A place for a result that comes in pieces: a payload of `size` bytes,
	 * or NULL. The bytes arrive in order and are sent on from there; they
	 * are to be trusted by nobody before `complete`. So is the size: memory
	 * is needed for those bytes only that `extend` has asked for. NULL as an
	 * operation: the pieces are kept as they come, and joined at the end.
	 */
	struct payload *(*room)(void *arg, enum coll_kind kind, uint32_t seq,
				size_t size);
	/*
	 * The first `len` bytes of such a payload are about to be written. 0, or
	 * a negative errno: the rest is kept elsewhere. NULL as an operation:
	 * they always can.
	 */
	int (*extend)(void *arg, struct payload *room, size_t len);
	/*
	 * Fence or gather `seq` has ended for every rank of this node that has
	 * entered it and has not been told: with its result (may be an empty
	 * payload), or with `fault` (result is then NULL). Success comes once
	 * and is for all slots. A failure may come more than once for one seq:
	 * first for those that had entered it, then, inside coll_enter, for
	 * each later entrant on its own. A host therefore keeps, for each slot,
	 * which sequence numbers it waits for, and ends those that name `seq`.
	 * Slots that were reported gone are not left out.
	 */
	void (*complete)(void *arg, enum coll_kind kind, uint32_t seq,
			 struct payload *result,
			 const struct coll_fault *fault);
	/*
	 * Ring `seq` has ended for `slot`, which entered it; result is NULL
	 * when `fault` is set. Exactly once for each slot and seq.
	 */
	void (*complete_ring)(void *arg, uint32_t seq, uint32_t slot,
			      const struct coll_ring_result *result,
			      const struct coll_fault *fault);
	/*
	 * The collective that the rank in `slot` has entered as `id` with
	 * coll_enter_subset has ended: with the result (a payload, may be empty; valid
	 * during the call unless a reference is taken), the same for all members, or
	 * NULL and `why`. Exactly once for each entry. Needed by who calls
	 * coll_enter_subset.
	 */
	void (*complete_subset)(void *arg, uint32_t slot, uint64_t id,
				struct payload *result, const char *why);
	/*
	 * A node fetches data of a rank of this node: answer `token` later with
	 * coll_fetch_answer (see Re-entrancy). `what` is valid during the call. 0, or a
	 * negative errno, which rejects the request: -ENOMEM, or no such data. Without this
	 * operation every request is rejected.
	 */
	int (*fetch_asked)(void *arg, uint64_t token,
			   const struct coll_fetch *what);
	/*
	 * The fetch that coll_fetch began as `id` has ended, exactly once. `end` is
	 * valid during the call, unless a reference to the value is taken. Users of
	 * coll_fetch need this operation.
	 */
	void (*fetched)(void *arg, uint64_t id, const struct coll_fetched *end);
	/*
	 * Another node has sent this message to all nodes. It is valid during the call
	 * unless a reference is taken. Without this operation such messages are ignored.
	 */
	void (*flooded)(void *arg, struct payload *what);
};

/* Options: equal at all nodes of a step, but for the budget. */
struct coll_options {
	uint32_t tree_width; /* TREE_WIDTH_MIN..TREE_WIDTH_MAX, or _AUTO */
	uint32_t piece;      /* bytes after which a message is cut, so that what
	                        is large is passed on while it comes; 0:
	                        COLL_PIECE */
	struct budget *budget; /* of this node: where lists of the members of
	                          subsets count; or NULL */
};

struct coll;

/*
 * Create the node at `position`. The layout is shared, not owned. Reserves
 * O(children + own ranks) memory, and as much again for each collective in
 * flight. 0, -EINVAL (position outside the layout, or a tree width out of
 * range) or -ENOMEM.
 */
int coll_create(struct coll **out, const struct layout *layout,
		uint32_t position, const struct coll_options *options,
		const struct coll_ops *ops, void *arg);
void coll_destroy(struct coll *c);

const struct tree_place *coll_place(const struct coll *c);

/*
 * How many collectives of a kind the rank in `slot` has entered: the sequence
 * number of its next one.
 */
uint32_t coll_entered(const struct coll *c, enum coll_kind kind, uint32_t slot);

/* How many collectives of a kind have ended at this node. */
uint32_t coll_ended(const struct coll *c, enum coll_kind kind);

/*
 * Collective `seq` and all later ones of its kind fail everywhere, for `why`;
 * nothing happens when it has ended here.
 */
void coll_expire(struct coll *c, enum coll_kind kind, uint32_t seq,
		 const char *why);

/*
 * The rank in `slot` enters its next fence or gather with `contribution` (may
 * be NULL for nothing; a reference is taken). Writes the sequence number, which
 * is that of coll_entered, before it calls any operation. The end comes through
 * ops.complete, perhaps before this returns. 0, or with nothing changed:
 * -ENOMEM, -EAGAIN (COLL_IN_FLIGHT_MAX reached), -ESHUTDOWN (coll_rank_gone was
 * called for it), -EOVERFLOW (sequence numbers are used up) or -EINVAL (no such
 * slot, or a ring).
 */
int coll_enter(struct coll *c, enum coll_kind kind, uint32_t slot,
	       struct payload *contribution, uint32_t *seq);

/* Why the rank may not enter: 0, or the errors of coll_enter but -ENOMEM. */
int coll_may_enter(const struct coll *c, enum coll_kind kind, uint32_t slot);

/* Enters the ring, with the values that the rank shows to its two neighbours. */
int coll_enter_ring(struct coll *c, uint32_t slot, uint64_t count,
		    struct payload *left, struct payload *right, uint32_t *seq);

#define COLL_FLOOD_BYTES_MAX (64u << 10)

/*
 * Tell all other nodes something, through ops.flooded: each once, in the order in which
 * this node tells. Nodes that cannot be reached are not told. It has nothing to do with
 * collectives. 0, -EMSGSIZE (over COLL_FLOOD_BYTES_MAX, or empty) or -ENOMEM.
 */
int coll_flood(struct coll *c, struct payload *what);

/*
 * A message came from the neighbour at `from`. `body` is one contiguous
 * payload or NULL; a reference is taken when kept. 0, or -EPROTO for what a
 * neighbour in the tree cannot have sent (nothing changes; the host breaks
 * the link).
 */
int coll_receive(struct coll *c, uint32_t from, const struct coll_msg *msg,
		 struct payload *body);

/*
 * Memory for the body of this message, `len` > 0 bytes, while it arrives: one reference to
 * a payload of that length. Fill it, and give it to coll_receive with the same message
 * before any other message of that neighbour. NULL: use any memory. The call saves a copy
 * in coll_receive, and is never needed.
 */
struct payload *coll_body_room(struct coll *c, uint32_t from,
			       const struct coll_msg *msg, size_t len);

/*
 * The rank in `slot` will enter nothing more of these sides, whether it finalized,
 * crashed or never started: what it has not entered can no longer complete, and every
 * node learns so at once, since a rank anywhere may wait for it already. `why`
 * reads like "rank 3 on node n1 was killed"; copied. Idempotent for each side.
 *
 * The end of a step is no exception, and cheap: its ranks have entered the same
 * number of collectives, so the first to go says all there is to say, and a
 * fault crosses each link at most once in each direction.
 */
void coll_rank_gone(struct coll *c, uint32_t slot, enum coll_side sides,
		    const char *why);

/*
 * The rank in `slot` begins another series of PMIx, if it has entered anything in this
 * one, or in any case with `missed`: others may have entered what it has not. Collectives
 * of this series that have not ended fail everywhere, for `why`, also those of subsets.
 */
void coll_next_series(struct coll *c, uint32_t slot, bool missed, const char *why);
/*
 * The program of the slot has ended, and the rank has started no other: its series fails,
 * as above.
 */
void coll_end_series(struct coll *c, uint32_t slot, const char *why);
/* Series that the rank has begun after the first: of the same program the same number. */
uint32_t coll_series(const struct coll *c, uint32_t slot);

/*
 * The link to a neighbour is gone for good, or (`in_order`) the neighbour said
 * goodbye: every collective that still needs it fails. From now on nothing is
 * sent to it, and what it sends is -EPROTO. Idempotent.
 */
void coll_link_lost(struct coll *c, uint32_t position, bool in_order,
		    const char *why);

/*
 * A link to this neighbour has been made: it is told the fault, if there is one
 * to tell. (Messages before that are sent as well; the host queues them.) A
 * link that was reported lost stays lost.
 */
void coll_link_up(struct coll *c, uint32_t position);

/*
 * How many collectives this node's ranks have entered that have not ended: each
 * counts once, however many ranks have entered it; of a subset each entry does.
 */
size_t coll_pending(const struct coll *c);

/*
 * For messages to people: the next collective in flight, entered here or known
 * from a child, at or after the pair (*kind, *seq), which is updated; false
 * when there is none. Writes which own slots (as ranks, ascending) and which
 * children (as positions of subtrees) it still waits for; *waits_parent says
 * that all those are in and the result is awaited. The arrays have room for all
 * own ranks and all children. Start with kind and seq 0, go on with seq + 1.
 */
bool coll_next_pending(const struct coll *c, enum coll_kind *kind,
		       uint32_t *seq, uint32_t *missing_ranks, uint32_t *nranks,
		       uint32_t *missing_children, uint32_t *nchildren,
		       bool *waits_parent);
