/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A step of libcoll in memory: one struct coll a node, links that keep order, and ranks
 * that check what they get. Messages cross a link in their wire form. A policy outside
 * chooses what happens next: a random number, all orders in turn, or a fuzzer's bytes.
 *
 *   coll.c          the life of the step, its ranks and nodes
 *   coll_links.c    queues of links, and how links break
 *   coll_ops.c      operations of the nodes, values of the ranks
 *   coll_groups.c   collectives of groups (subset.h)
 *   coll_fetches.c  fetches (fetch.h)
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "libcoll/coll.h"
#include "libcoll/fetch.h"
#include "libcoll/subset.h"

#define BED_VALUE_MAX 64      /* bytes of a value, as a string */
#define BED_GROUP_SEQ_MAX 80  /* collectives of a group */
#define BED_ALL (COLL_NEVER - 1)

enum bed_outcome { BED_NONE, BED_WAITING, BED_DONE, BED_FAILED };

/* Facts about the past. The state of the step does not depend on them. */
struct bed_record {
	uint64_t seed;                 /* of bed_random */
	uint32_t faults_sent;          /* messages, ever */
	uint32_t sent[COLL_MSG_TYPES]; /* messages, ever */
	char reason[COLL_REASON_MAX];  /* of the last failure of a rank or fetch */
};

struct bed_options {
	uint32_t nodes, ranks, width, piece; /* for the last two see coll_options */
	uint64_t seed;        /* of a random layout; 0: rank r on node r * nodes / ranks */
	uint32_t seq_max;     /* collectives of a kind that a rank may enter */
	uint32_t fetches_max, groups_max;
	bool varied;          /* values differ in length, bodies are placed at random, and
	                         a link that breaks loses messages at random; else states
	                         differ by as little as possible */
	bool alone;           /* only the node at `position` exists: its neighbours are
	                         the policy, may lie, and results are not checked */
	uint32_t position;
	bool is_deaf;         /* faults that are sent to the node at `deaf` vanish, so that */
	uint32_t deaf;        /* a breach must be found */
	void (*broken)(const char *what); /* a promise is broken; does not return */
	struct bed_record *record;        /* NULL: its own */
};

struct bed_frame {
	struct bed_frame *next;
	uint32_t header_len, len;
	unsigned char bytes[]; /* the header, then the body; none: a goodbye */
};

/* One direction between a node and its parent. */
struct bed_link {
	uint32_t from, to; /* TREE_NONE: the root has no parent */
	bool dead;         /* new messages vanish */
	bool detected;     /* the receiver knows: old ones vanish too */
	struct bed_frame *head, *tail;
};

/* Ranks, ascending, and how their collectives have ended for each. */
struct bed_group {
	uint32_t *ranks;
	uint32_t count;
	uint32_t *entered;
	uint8_t (*outcome)[BED_GROUP_SEQ_MAX]; /* by index in `ranks` */
};

struct bed_fetch {
	uint32_t position, rank; /* the node that asks, and the owner */
	enum bed_outcome outcome;
};

/* A question that a host has been asked and has not answered. */
struct bed_asked {
	uint32_t position, from, rank;
	uint64_t token;
};

struct bed_node {
	struct bed *bed;
	uint32_t position;
	struct coll *coll; /* NULL: dead */
	char flooded[32];  /* all that it has been told, one after another */
};

struct bed {
	struct bed_options o;
	uint32_t nnodes, nranks, nlinks; /* as in `o`; two links a node */
	bool ready;                      /* operations may be called */
	struct layout *layout;
	struct bed_node *nodes;
	bool *gone;                      /* by rank */
	uint8_t *outcomes;               /* see bed_outcome_of */
	struct bed_link *links;          /* 2 * position: up from it; + 1: down to it */
	struct bed_group *groups;
	uint32_t ngroups;
	struct bed_fetch *fetches;       /* by id */
	uint32_t nfetches;               /* of bed_fetch */
	struct bed_asked *asked;         /* by position, then by age */
	uint32_t nasked;
	uint32_t combine_fails;          /* fence of this number cannot be combined;
	                                    BED_ALL: nothing can */
	bool (*refuses)(const struct bed *b, const struct coll_fetch *what);
	                                 /* a host, to be asked; may be NULL */
	void (*inside)(bool inside);     /* around calls of libcoll; may be NULL */
	struct bed_record *record;
};

/* The options are copied. */
struct bed *bed_new(const struct bed_options *options);
void bed_free(struct bed *b);
uint32_t bed_random(struct bed *b, uint32_t below);
/* Unless `promise` the bed is broken: does not return then. */
void bed_must(const struct bed *b, bool promise, const char *what);
void bed_inside(const struct bed *b, bool yes);
/* Every collective, group and fetch has ended, and no node that lives remembers any. */
void bed_check_settled(const struct bed *b);

/* ---- ranks and nodes ---- */

struct coll *bed_coll_of(const struct bed *b, uint32_t rank, uint32_t *slot);
uint32_t bed_entered(const struct bed *b, enum coll_kind kind, uint32_t rank);
/* The rank enters its next collective: the error of libcoll, or 0. */
int bed_enter(struct bed *b, enum coll_kind kind, uint32_t rank);
/* With these values, of which only a ring uses `count` and `right`. */
int bed_enter_with(struct bed *b, enum coll_kind kind, uint32_t rank,
		   uint64_t count, struct payload *left, struct payload *right);
uint8_t *bed_outcome_of(const struct bed *b, enum coll_kind kind, uint32_t rank,
			uint32_t seq);
enum bed_outcome bed_outcome(const struct bed *b, enum coll_kind kind,
			     uint32_t rank, uint32_t seq);
void bed_rank_gone(struct bed *b, uint32_t rank);
/* The node and its ranks are gone. Its messages may still arrive. */
void bed_kill(struct bed *b, uint32_t position);

/* ---- coll_links.c ---- */

/* One direction of a connection in the tree; NULL: there is none. */
struct bed_link *bed_link(const struct bed *b, uint32_t from, uint32_t to);
/* The other direction. */
struct bed_link *bed_back(const struct bed *b, const struct bed_link *link);
void bed_frame_add(struct bed_link *link, struct bed_frame *frame);
void bed_link_empty(struct bed_link *link);
/* Deliver the first message of a link that has one. */
void bed_deliver_on(struct bed *b, struct bed_link *link);
/* Deliver one message of a random link; false when there is none. */
bool bed_deliver(struct bed *b);
void bed_deliver_all(struct bed *b);
/* Give a node a message as if `from` had sent it: libcoll's error, or 0. */
int bed_inject(struct bed *b, uint32_t from, uint32_t to,
	       const struct coll_msg *msg, const char *body);
/* The connection of `position` with its parent breaks. Each end is told by bed_detect. */
void bed_break(struct bed *b, uint32_t position);
/* Break a random connection, if it is there. */
void bed_break_any(struct bed *b);
/* The end that receives on `link` notices that it is broken. Idempotent. */
void bed_detect(struct bed *b, struct bed_link *link);
/* Every end of a broken connection notices. */
void bed_detect_all(struct bed *b);
/* A node that is owed nothing and owes nothing says goodbye to all. */
void bed_leave(struct bed *b, uint32_t position);

/* ---- coll_ops.c ---- */

extern const struct coll_ops bed_ops; /* of a struct bed_node */
/* The value of a rank, as a string. */
const char *bed_value(const struct bed *b, char out[BED_VALUE_MAX], const char *what,
		      uint32_t rank, uint32_t seq);
uint64_t bed_ring_count(const struct bed *b, uint32_t rank, uint32_t seq);
/* NULL for an empty one. */
struct payload *bed_payload(const char *text);
bool bed_is_text(const struct payload *p, const char *text);
/* Note a failure, which has a reason. */
void bed_note_reason(struct bed *b, const char *why);

/* ---- coll_groups.c ---- */

/* A group of these ranks, ascending: its index. */
uint32_t bed_group(struct bed *b, const uint32_t *ranks, uint32_t count);
/* Each rank is in it with a chance of one to `sparse`, one is for sure. */
uint32_t bed_group_any(struct bed *b, uint32_t sparse);
/* Index of the rank in the group; its count: the rank is no member. */
uint32_t bed_group_index(const struct bed_group *g, uint32_t rank);
/* The i-th member enters the group's next collective: libcoll's error, or 0. */
int bed_enter_group(struct bed *b, uint32_t group, uint32_t i);
enum bed_outcome bed_group_outcome(const struct bed *b, uint32_t group, uint32_t i,
				   uint32_t seq);
void bed_groups_free(struct bed *b);
void bed_complete_subset(void *arg, uint32_t slot, uint64_t id,
			 struct payload *result, const char *why);

/* ---- coll_fetches.c ---- */

/* A node fetches something of a rank, with the next id: libcoll's error, or 0. */
int bed_fetch(struct bed *b, uint32_t position, uint32_t rank);
int bed_fetch_as(struct bed *b, uint32_t id, uint32_t position, uint32_t rank);
/* With an operation and a key of the policy's choice. */
int bed_fetch_with(struct bed *b, uint32_t id, uint32_t position,
		   const struct coll_fetch *what);
/* The i-th of what hosts are asked is answered, and is none of them any more. */
int bed_answer(struct bed *b, uint32_t i, enum coll_fetch_status status);
int bed_fetch_asked(void *arg, uint64_t token, const struct coll_fetch *what);
void bed_fetched(void *arg, uint64_t id, const struct coll_fetched *end);
