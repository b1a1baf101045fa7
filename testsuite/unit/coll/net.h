/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A step in memory for the tests of libcoll: one struct coll a node, links
 * that keep order and are slow at random, and ranks that check what they get.
 * Messages cross a link in their wire form.
 */
#ifndef PMI2X_COLL_NET_H
#define PMI2X_COLL_NET_H

#include <stdbool.h>
#include <stdint.h>

#include "libcoll/coll.h"
#include "libcoll/fetch.h"
#include "libcoll/subset.h"

#define NET_SEQ_MAX 1100 /* collectives of a kind that a rank may enter */
#define NET_GROUPS_MAX 16
#define NET_FETCHES_MAX 1024
#define NET_GROUP_SEQ_MAX 80 /* collectives of a group */

enum net_outcome { NET_NONE, NET_WAITING, NET_DONE, NET_FAILED };

struct net_frame {
	struct net_frame *next;
	struct payload *bytes;
	size_t header_len;
	bool has_body;
};

/* One direction between a node and its parent. */
struct net_link {
	uint32_t from, to;
	bool dead;     /* new messages vanish */
	bool detected; /* the receiver has been told: old ones vanish too */
	bool used;     /* something was sent */
	struct net_frame *head, *tail;
};

struct net_rank {
	bool gone;
	uint8_t outcome[COLL_KINDS][NET_SEQ_MAX];
};

/* Some ranks, ascending, and how their collectives have ended for each. */
struct net_group {
	uint32_t *ranks;
	uint32_t count;
	uint32_t *entered;
	uint8_t (*outcome)[NET_GROUP_SEQ_MAX]; /* by index in `ranks` */
};

struct net_fetch {
	uint32_t position, rank; /* who asks, whose */
	enum net_outcome outcome;
};

/* A question that a host has been asked and has not answered. */
struct net_asked {
	uint32_t position, from, rank;
	uint64_t token;
};

struct net_node {
	struct net *net;
	uint32_t position;
	struct coll *coll;
	bool left;
	char flooded[32]; /* all that it has been told, one after another */
};

struct net {
	uint32_t nnodes, nranks, nlinks;
	struct layout *layout;
	struct net_node *nodes;
	struct net_rank *ranks;
	struct net_group groups[NET_GROUPS_MAX];
	uint32_t ngroups;
	struct net_link *links; /* 2 * position: up from it; + 1: down to it;
	                           then, unless it is the tree forever, from
	                           each node to each */
	struct net_fetch fetches[NET_FETCHES_MAX];
	uint32_t nfetches;
	struct net_asked asked[NET_FETCHES_MAX];
	uint32_t nasked;
	uint64_t seed;
	uint32_t faults_sent;   /* fault messages, ever */
	uint32_t sent[COLL_MSG_TYPES]; /* messages, ever */
	bool lenient;           /* somebody lies: what is refused breaks its
	                           connection, and results are not checked */
	uint32_t combine_fails; /* fence of this number cannot be combined */
	char reason[COLL_REASON_MAX]; /* of the last failure told to a rank */
	void (*inside)(bool inside);  /* around calls of libcoll; may be NULL */
};

/* A random layout of `nranks` ranks; rank r on node r * nnodes / nranks when
 * `seed` is 0. */
struct net *net_new(uint32_t nnodes, uint32_t nranks, uint32_t width,
		    uint64_t seed);
void net_free(struct net *net);

/* The direction of a connection, in the tree. */
struct net_link *net_link(struct net *net, uint32_t from, uint32_t to);
/* Break a random connection, if it is there: see net_break. */
void net_break_any(struct net *net);
/* A node dies: its connections break, and those that others would make. */
void net_kill(struct net *net, uint32_t position);
/* Every end of a broken connection notices. */
void net_detect_all(struct net *net);
/* A node that is owed nothing and owes nothing says goodbye to all. */
void net_leave(struct net *net, uint32_t position);

uint32_t net_random(struct net *net, uint32_t below);

/* The rank enters its next collective: the error of libcoll, or 0. */
int net_enter(struct net *net, enum coll_kind kind, uint32_t rank);
uint32_t net_entered(const struct net *net, enum coll_kind kind, uint32_t rank);
void net_rank_gone(struct net *net, uint32_t rank);

/* ---- coll-net-groups.c ---- */

/* A group of these ranks, ascending: its index. */
uint32_t net_group(struct net *net, const uint32_t *ranks, uint32_t count);
/* Each rank is in it with a chance of one to `sparse`, one is for sure. */
uint32_t net_group_any(struct net *net, uint32_t sparse);
/* The i-th member enters the group's next collective: libcoll's error, or 0. */
int net_enter_group(struct net *net, uint32_t group, uint32_t i);
enum net_outcome net_group_outcome(const struct net *net, uint32_t group,
				   uint32_t i, uint32_t seq);
void net_groups_assert_settled(const struct net *net);
void net_groups_free(struct net *net);
void net_complete_subset(void *arg, uint32_t slot, uint64_t id,
			 struct payload *result, const char *why);

/* ---- coll-net-fetches.c ---- */

/* A node fetches something of a rank: libcoll's error, or 0. */
int net_fetch(struct net *net, uint32_t position, uint32_t rank);
/* The i-th of what hosts are asked is answered, and is none of them any more. */
int net_answer(struct net *net, uint32_t i, enum coll_fetch_status status);
void net_fetches_assert_settled(const struct net *net);
int net_fetch_asked(void *arg, uint64_t token, const struct coll_fetch *what);
void net_fetched(void *arg, uint64_t id, const struct coll_fetched *end);

/* Deliver one message of a random link; false when there is none. */
bool net_deliver(struct net *net);
void net_deliver_all(struct net *net);

/*
 * The connection of `position` with its parent breaks: of what is under way some
 * arrives, some does not. Each end must be told with net_detect.
 */
void net_break(struct net *net, uint32_t position);
/* The end that receives on `link` notices. Idempotent. */
void net_detect(struct net *net, struct net_link *link);

/* Give a node a message as if `from` had sent it. */
int net_inject(struct net *net, uint32_t from, uint32_t to,
	       const struct coll_msg *msg, const char *body);

enum net_outcome net_outcome(const struct net *net, enum coll_kind kind,
			     uint32_t rank, uint32_t seq);
/* Nothing is pending, and whatever any rank has entered has ended. */
void net_assert_settled(const struct net *net);

/* ---- for coll-net.c and coll-net-links.c ---- */

struct coll *net_coll_of(const struct net *net, uint32_t rank, uint32_t *slot);
/* Around calls of libcoll. */
void net_inside(const struct net *net, bool yes);
/* The queue of a link, which has a frame where one is taken. */
void net_frame_add(struct net_link *link, struct net_frame *frame);
struct net_frame *net_frame_take(struct net_link *link);
void net_frame_free(struct net_frame *frame);

#endif
