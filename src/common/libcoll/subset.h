/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Collectives of some ranks of a step, by name: barriers of groups, and fences
 * among them. Part of struct coll; its messages travel with the others, and
 * coll_receive, coll_link_lost and coll_rank_gone serve both.
 *
 * A name is an operation, a series, a tag and the members. Every member enters the n-th
 * collective of a name together with the n-th of the others; the numbers follow
 * from the order in which each enters, so nobody has to tell them. A member may
 * enter the next one of a name before others have left the one before, and
 * before it has left it itself. Collectives of different names are independent.
 *
 * The contributions of the members meet at the node where their paths to the root meet,
 * go as one result to the nodes that have members, and pass no other node than those
 * between. A node has memory for a name as long as one of its collectives is in flight
 * there: O(children + own members), and O(members) where a rank has entered.
 *
 *   result: the contributions one after another, in tree order (layout_order);
 *           what one rank gives is one piece, which the host can find again.
 *
 * Failure. A member that has gone, a node that has left, a link that is lost
 * fail every collective that needs them, pending or entered later, with their
 * reason; one that all members have entered before still completes, as far as
 * its result can still arrive. Others are not affected. Until somebody has
 * gone nothing is sent about it; from then on (a fault is known, see coll.h) a
 * node that has a collective in flight asks the others on its paths.
 */
#pragma once

#include "libcoll/coll.h"

#define COLL_SUBSET_TAG_MAX 1024 /* bytes */
#define COLL_SUBSET_AHEAD_MAX 64 /* collectives, of any name, that a rank has
                                    entered and that have not ended */
#define COLL_SUBSET_BYTES_MAX ((uint64_t)256 << 20) /* of a result */

struct coll_subset_name {
	uint8_t op;            /* of the host's choice: who use one name do the
	                          same; see COLL_OP_PMIX */
	const void *tag;       /* any bytes; may be NULL when there are none */
	size_t tag_len;
	const uint32_t *ranks; /* of the members, ascending, none twice */
	uint32_t count;        /* 1 or more */
	uint32_t series;       /* of PMIx: coll_series of each member; else 0 */
};

/*
 * The rank in `slot` enters the next collective of a name with `contribution`
 * (NULL: nothing; a reference is taken). The name ends with the call. The end
 * comes through ops.complete_subset, with `id`, once and perhaps before this
 * returns. `id` is the host's; nothing looks at it.
 *
 * 0, or with nothing changed: -EINVAL (no such slot; the rank is no member; no
 * such rank in the step; not in order, or doubled; the tag or the contribution is
 * too long), -ENOMEM, -EAGAIN (COLL_SUBSET_AHEAD_MAX reached) or -ESHUTDOWN
 * (coll_rank_gone was called for it).
 *
 * Also after coll_rank_gone, and for a slot whose host does not care any more,
 * the end of what had been entered is told. coll_destroy tells nothing.
 */
int coll_enter_subset(struct coll *c, uint32_t slot,
		      const struct coll_subset_name *name,
		      struct payload *contribution, uint64_t id);

/*
 * Give up waiting: all collectives of subsets that are pending at this node,
 * and all that need it later, fail for `why`. Nothing happens where none is
 * pending.
 */
void coll_expire_subsets(struct coll *c, const char *why);

/*
 * How many entries of this node's ranks have not ended (they count in
 * coll_pending too), and how many ever have; also each operation that has ended here.
 */
size_t coll_subsets_pending(const struct coll *c);
uint64_t coll_subsets_ended(const struct coll *c);

/* Something is in flight here, even if only other nodes have entered it. */
bool coll_subsets_in_flight(const struct coll *c);

/* For messages to people: one that is in flight here. */
struct coll_subset_state {
	bool unnamed; /* only nodes below have entered it; `op` to `members` are not known */
	bool own;     /* unnamed: this node has members, none of which has entered it */
	uint8_t op;
	const char *tag;   /* `tag_len` bytes, not checked; valid until the next */
	size_t tag_len;    /* event of the object */
	uint32_t members;
	uint32_t nranks, nchildren; /* ranks and children that it waits for */
	bool waits_parent; /* all those are in: those who are missing are elsewhere */
};

/*
 * The `n`-th of them, from 0: false when there are no more. Writes which own members
 * (as ranks, ascending) and which children (as positions of subtrees) it waits
 * for to arrays with room for all own ranks and all children.
 */
bool coll_subset_at(const struct coll *c, size_t n,
		    struct coll_subset_state *out, uint32_t *missing_ranks,
		    uint32_t *missing_children);
