/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Definitions that the files about collectives of subsets share. The collectives of one
 * name in flight are a list: collective 0 is the first that has not ended here. Links
 * keep order, and every neighbour on the paths of the members has a part in each
 * collective, so
 *
 *   - the ups of a child are for 0, 1, 2, ... of what is in flight, after those
 *     that it has sent (subset_child.ups);
 *   - a down is for 0, which has gone up.
 *
 * A node's knowledge of a name depends on whether it has members. With some, its ranks
 * say who all the members are, and until one has entered it keeps what comes. Without,
 * each up tells what it needs: how many members there are below it, and whether all meet
 * here.
 *
 * Failure is for good: from some collective of a name on none completes, because
 * somebody has gone. A node drops those that it has in flight and tells the
 * neighbours on the paths, which do the same; nobody remembers it. Once a fault is
 * known, whoever has one in flight tells these neighbours the name and how many,
 * each of them the next, and so it comes to the node that knows why it fails. A message
 * that was under way before comes to a node that has dropped the collective: it is taken
 * for a new one, and fails again in the same way.
 *
 *   subset.c       the events: entering, messages, ends
 *   subset_op.c    what is in flight
 *   subset_name.c  names, and what follows from them at a node
 *   subset_fault.c what cannot complete, asking and telling
 */
#pragma once

#define HASH_NONFATAL_OOM 1

#include <uthash.h>

#include "libcoll/coll_private.h"
#include "libcoll/subset.h"

/* A rank of this node that waits in a collective. */
struct subset_entry {
	struct subset_entry *next; /* of a higher slot */
	uint32_t slot;
	uint64_t id;
	struct payload *data; /* until it goes up */
};

/* A collective in flight. */
struct subset_op {
	struct subset_op *next;
	struct subset_entry *entries;
	uint64_t in;            /* members whose contributions are here */
	uint64_t bytes;
	bool failed;            /* alone */
	struct payload *reason; /* why; NULL: no memory */
	struct payload *data[]; /* of the children, until they go up */
};

struct subset_child {
	uint32_t members; /* in its subtree; 0: none, or not known */
	uint32_t ups;     /* how many in flight it has contributed to */
	uint32_t asked;   /* how many it knows of */
};

/* A member on this node. */
struct subset_own {
	uint32_t slot;
	uint32_t entered; /* of what is in flight */
};

/* A name of which something is in flight. */
struct subset {
	UT_hash_handle hh;
	unsigned char key[COLL_KEY_SIZE];
	struct payload *name;    /* packed; NULL: not known, and then: */
	struct subset_own *own;  /* none, */
	uint32_t nown;           /* 0 */
	uint32_t members;        /* in this subtree; 0: not known yet */
	bool meets;              /* here, when `members` is known */
	bool last;               /* its members meet at the last of: */
	uint32_t above[COLL_DEPTH_MAX]; /* see coll_subset_msg, of the parent */
	uint32_t nabove;
	uint32_t sent;           /* how many in flight have gone up */
	uint32_t asked;          /* how many the parent knows of */
	bool wanted;             /* the name, by the parent */
	struct subset_op *first;
	uint32_t count;          /* in flight */
	struct subset_child children[];
};

/* ---- subset_op.c ---- */

struct subset *subset_find(const struct coll *c,
			   const unsigned char key[COLL_KEY_SIZE]);
/* A new one; NULL: no memory. */
struct subset *subset_new(struct coll *c,
			  const unsigned char key[COLL_KEY_SIZE]);
void subset_free(struct coll *c, struct subset *s);
struct subset_op *subset_op_at(const struct subset *s, uint32_t i);
/* As many in flight as `count`, or more. 0 or -ENOMEM. */
int subset_grow(struct coll *c, struct subset *s, uint32_t count);
/* Take the first, or all from one on, out of what is in flight. */
struct subset_op *subset_cut(struct coll *c, struct subset *s, uint32_t from);
struct subset_op *subset_take_first(struct coll *c, struct subset *s);
/* Tell the entrants of a list that was taken, which is freed. */
void subset_end(struct coll *c, struct subset_op *list, struct payload *result,
		const char *why);
/*
 * This operation failed, and later ones go on; its bytes are freed. `why` NULL: no memory.
 */
void subset_op_spoil(struct coll *c, struct subset_op *op, const char *why);
/* Add a contribution (NULL: none), of which a reference is taken, to `place`. */
void subset_op_add(struct coll *c, struct subset_op *op,
		   struct payload **place, struct payload *data);
/* All contributions in tree order. 0 or -ENOMEM. */
int subset_op_parts(const struct coll *c, const struct subset_op *op,
		    struct payload_vec *out);
void subset_op_clear(struct coll *c, struct subset_op *op);

/* ---- subset_name.c ---- */

/* The interface whose collective has this name. */
enum coll_side subset_side(const struct subset *s);
/* The series of PMIx that its collectives belong to. */
uint32_t subset_series(const struct subset *s);
/*
 * Index of the last of the ascending ranks that is not above `rank`; 0: none, or the first.
 */
uint32_t subset_find_rank(const uint32_t *ranks, uint32_t count, uint32_t rank);
/* 0, -EINVAL (no such name in this step) or -ENOMEM. */
int subset_name_pack(const struct coll *c, struct buf *b,
		     const struct coll_subset_name *name);
/*
 * Take the name, and set all that follows from it. 0, -ENOMEM, or -EPROTO: it is no valid
 * name, not this subset's, has no member here, or contradicts what children have sent.
 */
int subset_learn(struct coll *c, struct subset *s, struct payload *name);
/* For people. */
void subset_name_describe(const struct payload *name,
			  struct coll_subset_state *out);
/* The own member of this slot, or NULL. */
struct subset_own *subset_own(const struct subset *s, uint32_t slot);

/* ---- subset_fault.c ---- */

/*
 * Fail all but the first `from`, and tell the neighbours: also who has said so, and may
 * have been told of them meanwhile.
 */
void subset_fail(struct coll *c, struct subset *s, uint32_t from,
		 const char *why, bool told_by_parent);
/* Fail what cannot complete. */
void subset_check(struct coll *c, struct subset *s);
/* Once a fault is known: tell the neighbours on the paths what is in flight. */
void subset_ask(struct coll *c, struct subset *s);
/* OPEN or FAIL came. 0 or -EPROTO. */
int subset_receive_open(struct coll *c, struct coll_peer *peer,
			const struct coll_msg *msg, struct payload *body);
int subset_receive_fail(struct coll *c, struct coll_peer *peer,
			const struct coll_msg *msg);
/* All that `peer` has in flight of the name in its message fails. */
void subset_fail_back(struct coll *c, const struct coll_peer *peer,
		      const struct coll_msg *msg, const char *why);
/* No memory: this node takes part in nothing more; said before the event ends. */
void subset_no_memory(struct coll *c);
void subset_say_no_memory(struct coll *c);
/* True: a rank or node is known to be lost. */
bool subset_fault_known(const struct coll *c);

/* ---- subset.c ---- */

/* After each event: what can go on does, what has ended is forgotten. */
void subset_settle(struct coll *c, struct subset *s);

static inline bool subset_is_child(const struct coll *c,
				   const struct coll_peer *peer)
{
	return peer != coll_parent(c);
}

static inline struct subset_child *subset_child_of(const struct coll *c,
						   struct subset *s,
						   const struct coll_peer *peer)
{
	return &s->children[peer - c->peers];
}

/* A message about it, its key filled in. */
static inline struct coll_msg subset_msg(const struct subset *s,
					 enum coll_msg_type type)
{
	struct coll_msg msg = { .type = type };

	memcpy(msg.subset.key, s->key, COLL_KEY_SIZE);
	return msg;
}
