/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Allgather: every rank gives one value and gets those of all ranks.
 *
 * With the extension it is a collective of its own, and the result lies in the
 * region of the node (or is read over the socket where that cannot be mapped).
 * Without it a gather is puts, a fence, and a get of every rank's key.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "call.h"
#include "libshm/image.h"

struct job;

/* A gather under way. */
struct gather {
	struct call call;
	uint32_t sequence;
	size_t stride;
};

/* A result, until gathered_free. */
struct gathered {
	uint32_t count;
	const unsigned char *bytes; /* expanded: count * stride bytes */
	size_t stride;              /* 0: not expanded */
	struct image image;         /* when not expanded and not from keys */
	struct value *values;       /* from keys, in rank order; or NULL */
	void *owned;                /* memory of `bytes` or `image`, or NULL */
	uint64_t offset;            /* in the region, when `in_region` */
	bool in_region;
};

/*
 * Enter the next gather with `len` (<= PMI2X_MAX_VALLEN) bytes. `stride` > 0
 * asks for the expanded form; all ranks must use the same. 0 or an error of
 * the wire; after 0 wait for g->call, then gather_finish.
 */
int gather_start(struct job *job, const void *value, size_t len,
		 size_t stride, struct gather *g);
/* The call is done: get at the result, end the call. */
int gather_finish(struct job *job, struct gather *g, struct gathered *out);
/* The call is done, nobody wants the result. */
void gather_drop(struct job *job, struct gather *g);

/* All values side by side, if they have one length; else NULL. */
const unsigned char *gathered_even(const struct gathered *r, size_t *len);
/* The value of a rank (< count). In the expanded form len is stride. */
const void *gathered_value(const struct gathered *r, uint32_t rank,
			   size_t *len);
/* Nobody reads it any more. */
void gathered_free(struct job *job, struct gathered *r);
