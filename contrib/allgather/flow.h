/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How far one place is in one allgather: what it may send to each side next and
 * what must come next. Blocks are cut into chunks, and a chunk may be passed on
 * as soon as it has arrived, so a long block is on many links at once.
 *
 * Blocks are numbered by the distance of their owner to the right of this place:
 * 0 is its own, 1 its right neighbour's, n - 1 its left neighbour's. A place
 * needs to know no more about the ring than n.
 *
 * Pure: no system call, and nothing of the blocks but their lengths.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "schedule.h"

/* A piece of a block under way. */
struct flow_chunk {
	uint32_t step;   /* in which it travels */
	uint32_t block;  /* for this place; not on the wire */
	uint64_t total;  /* bytes of the whole block */
	uint64_t offset; /* of the piece in the block */
	uint32_t len;    /* of the piece */
};

/* The next piece of one direction: its step and the bytes before it. */
struct flow_at {
	uint32_t step;
	uint64_t done; /* bytes of this step's range */
};

struct flow {
	uint32_t n, steps;
	uint64_t *totals;            /* by block; 0: not known yet */
	struct flow_at out[SIDES];   /* the next bytes to send to that side */
	struct flow_at in[SIDES];    /* the next bytes to get from that side */
};

/* n places; own block of own_total bytes (at least FLOW_BLOCK_MIN). */
#define FLOW_BLOCK_MIN 2 /* so that no half is empty */
int flow_init(struct flow *f, uint32_t n, uint64_t own_total); /* 0 or -ENOMEM */
void flow_free(struct flow *f);

/*
 * The next piece for that side: `max` bytes, or the last of its step. False: that
 * is not here yet. Nothing is sent in smaller pieces, so how many there are follows
 * from the lengths alone, not from the speed of the links.
 */
bool flow_next(const struct flow *f, enum ring_side side, uint32_t max,
	       struct flow_chunk *out);
/* The chunk has been sent. */
void flow_sent(struct flow *f, enum ring_side side,
	       const struct flow_chunk *chunk);

/*
 * A piece has come from that side: check it and fill in its block. 0, or
 * -EPROTO when it is not what must come next.
 */
int flow_received(struct flow *f, enum ring_side side,
		  struct flow_chunk *chunk);

bool flow_all_sent(const struct flow *f);
bool flow_all_received(const struct flow *f);
/* Nothing more comes from that side. */
bool flow_side_received(const struct flow *f, enum ring_side side);
