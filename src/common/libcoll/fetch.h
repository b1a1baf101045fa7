/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fetching: a node asks the node of a rank for something of that rank, and no other
 * rank has to take part. Part of struct coll; its messages travel with the others,
 * node to node along the tree, and coll_receive, coll_link_lost and coll_rank_gone
 * serve both.
 *
 * The hosts decide what is fetched: a value by its key, or all that a rank has. The host
 * of the owner's node is asked (coll_ops.fetch_asked) and answers when it likes
 * (coll_fetch_answer), for it also keeps the time: libcoll has no clock. Fetches are
 * independent of one another and of collectives: they end in any order, and a fault of
 * collectives does not touch them.
 *
 * Each node on the way remembers from whom a fetch came until its answer has passed, so
 * that a fetch whose way breaks, or whose owner goes, ends with the reason at once.
 */
#pragma once

#include "libcoll/coll.h"

#define COLL_FETCH_PMIX 2 /* first op of PMIx, see coll_side */
#define COLL_FETCH_KEY_MAX 1024 /* bytes */
#define COLL_FETCH_AHEAD_MAX 256 /* fetches under way, for each rank of the node that
                                   asks; they share them */
#define COLL_FETCH_BYTES_MAX ((uint64_t)64 << 20) /* of what is fetched */
#define COLL_FETCH_FOREVER UINT32_MAX /* as a timeout */

enum coll_fetch_status {
	COLL_FETCH_FOUND,
	COLL_FETCH_ABSENT,  /* no such data, or not in time */
	COLL_FETCH_GONE,    /* the owner, or a node on the way */
	COLL_FETCH_REFUSED, /* no memory, over a limit, nobody to ask */
	COLL_FETCH_STATUSES,
};

struct coll_fetch {
	uint8_t op;       /* of the hosts' choice: what kind of thing is fetched; see
	                     COLL_FETCH_PMIX */
	uint32_t rank;    /* the rank whose data are fetched, of any node */
	uint32_t timeout; /* ms that the owner's host may wait for it; 0: not at all */
	const void *key;  /* any bytes; may be NULL when there are none */
	size_t key_len;
};

/* How one has ended. */
struct coll_fetched {
	enum coll_fetch_status status;
	struct payload *value; /* FOUND; NULL: it is empty */
	const char *why;       /* not FOUND: like "rank 3 on node n1 was killed" */
};

/*
 * Fetch something for this node. The description is copied. The end comes through
 * ops.fetched, with `id`, once and perhaps before this returns. `id` is the host's;
 * nothing looks at it.
 *
 * 0, or with nothing changed: -EINVAL (no such rank, or the key is too long), -EAGAIN
 * (COLL_FETCH_AHEAD_MAX reached) or -ENOMEM. coll_destroy ends nothing.
 */
int coll_fetch(struct coll *c, const struct coll_fetch *what, uint64_t id);

/*
 * Answer what fetch_asked has asked as `token`. 0, or -ENOENT: nobody waits for it any
 * more, because it has been answered, or the rank has gone.
 */
int coll_fetch_answer(struct coll *c, uint64_t token,
		      const struct coll_fetched *end);

/* How many fetches of this node have not ended. */
size_t coll_fetches_pending(const struct coll *c);
