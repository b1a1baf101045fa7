/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Definitions that the files of the explored step share.
 *
 *   world.c          its life, and what may happen
 *   world_program.c  what ranks say and expect
 *   world_ops.c      what its nodes do
 *   world_end.c      what must be so at the end
 */
#ifndef PMI2X_EXPLORE_WORLD_PRIVATE_H
#define PMI2X_EXPLORE_WORLD_PRIVATE_H

#include "world.h"

#define VALUE_MAX 16
#define WHY "it is gone" /* one text, so that states do not differ by it */
#define SUBSETS 2

enum outcome { NOT_ENTERED, WAITING, DONE, FAILED };

struct frame {
	struct frame *next;
	uint32_t head_len, len;
	unsigned char bytes[]; /* the head, then the body */
};

/* One direction between two nodes. */
struct link {
	uint32_t from, to;
	bool made;     /* it is in the tree */
	bool dead;     /* what is sent now vanishes */
	bool detected; /* the receiver knows; what was under way is lost */
	struct frame *head, *tail;
};

struct rank {
	bool gone;
	uint8_t next; /* in the program */
	uint8_t failed_at; /* 1 + next when the first failure was told; 0: none */
	uint8_t outcome[COLL_KINDS][WORLD_SEQ];
	uint8_t fetched[WORLD_SEQ]; /* outcomes */
	uint8_t fetches;
	struct {
		uint8_t entered;
		uint8_t failed_at; /* 1 + entered when the first failure was told */
		uint8_t outcome[WORLD_SEQ];
	} in[SUBSETS];
};

/* A question to a host. */
struct asked {
	uint64_t token;
	uint32_t rank;
};

struct node {
	struct world *world;
	uint32_t position;
	struct coll *coll; /* NULL: dead */
	struct asked asked[WORLD_RANKS * WORLD_SEQ];
	uint32_t nasked;
};

struct world {
	const struct scenario *s;
	struct layout *layout;
	broken_fn *broken;
	uint32_t deaf;
	bool fault, broken_off; /* something has died; it is no single rank */
	struct node nodes[WORLD_NODES];
	struct rank ranks[WORLD_RANKS];
	struct link links[WORLD_LINKS]; /* from * WORLD_NODES + to */
};

/* ---- world.c ---- */

/* Collectives and fetches that it waits for. */
uint32_t unfinished(const struct world *w, const struct rank *r);
bool alive(const struct world *w, uint32_t position);

/* ---- world_program.c ---- */

/* Else what is explored is broken; does not return then. */
void must(const struct world *w, bool promise, const char *what);
/* Is it a letter of a fetch in the program (world.h)? */
bool is_fetch(char c);
/*
 * The rank whose value this rank fetches, and the rank that fetches this rank's: the
 * same, or none.
 */
uint32_t owner_for(const struct world *w, uint32_t rank);
/* Which subset it is of; SUBSETS: of none. */
uint32_t subset_of(char c);
bool is_member(const struct world *w, uint32_t subset, uint32_t rank);
/* How many they are. */
uint32_t members_of(const struct world *w, uint32_t subset,
		    uint32_t ranks[WORLD_RANKS]);
/* It is of all ranks, and its kind and number say which. */
bool is_of_all(char c);
enum coll_kind kind_of(char c);
const char *value_of(char out[VALUE_MAX], enum coll_kind kind,
		     uint32_t rank, uint32_t seq);
/* Is a result what ranks have been promised? */
bool is_text(const struct payload *p, const char *text);
bool result_is_right(const struct world *w, enum coll_kind kind,
		     uint32_t seq, const struct payload *result);
/* Ranks are in tree order. */
bool subset_is_right(const struct world *w, uint32_t subset,
		     uint32_t seq, const struct payload *result);
bool ring_is_right(const struct world *w, uint32_t seq, uint32_t rank,
		   const struct coll_ring_result *result);

/* ---- world_ops.c ---- */

extern const struct coll_ops world_ops; /* of a node, which is their argument */
struct link *link_to(struct world *w, uint32_t from, uint32_t to);
void make_link(struct world *w, uint32_t a, uint32_t b);

#endif
