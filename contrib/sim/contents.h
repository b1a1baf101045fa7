/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Contributions of ranks and the results that must come out, as libengine and libshm make
 * it: records, contributions to a gather, images. The value of a rank follows from its
 * number and the operation's.
 */
#pragma once

#include "libcoll/coll.h"
#include "sim.h"

/* ---- values ---- */

/*
 * Letters, digits, ';' and '=', which all protocols carry. `which`: the key of a
 * fence, 0 of an allgather, 0 (left) or 1 (right) of a ring.
 */
void contents_fill(void *at, uint32_t len, uint32_t rank, uint32_t op,
		   uint32_t which);
bool contents_value_is(const struct sim *s, uint32_t op, uint32_t rank,
		       uint32_t which, const void *value, size_t len);
/* The name of a key, in up to RECORD_KEY_MAX + 1 bytes with its NUL; its length. */
int contents_key(char *at, const struct scenario *sc, uint32_t keys,
		 uint32_t rank, uint32_t key);
/* A node looks at the values of ranks so far apart: of all, or of a sample. */
uint32_t contents_stride(const struct sim *s);

/* ---- for nodes without a server ---- */

/*
 * The length of one record of a fence, one contribution to a gather, both ring values.
 */
uint64_t contents_unit_len(const struct scenario *sc,
			   const struct scenario_op *op);

/* The contribution of the rank in `slot`; one reference, or NULL (no memory). */
struct payload *contents_of(struct sim_node *n, uint32_t op, uint32_t slot);
/* The value for its neighbours in a ring; NULL: nothing. */
struct payload *contents_edge(struct sim_node *n, uint32_t op, uint32_t slot,
			      bool left);

/* The result of contributions, in bytes; NULL with *error. */
struct payload *contents_image(const struct sim *s, enum coll_kind kind,
			       const struct payload_vec *parts, int *error);
/* How long it is, without bytes; 0 with *error. */
uint64_t contents_image_len(const struct sim *s, const struct scenario_op *op,
			    uint64_t bytes, int *error);

/* The result's length for the operation; 0: it has none that nodes hold. */
uint64_t contents_result_len(const struct sim *s, uint32_t op);
/*
 * Whether there is room for `each` bytes of results on each node. 0, or -1 with
 * an error that names the key and what is allowed instead.
 */
int contents_check_memory(struct sim *s, uint64_t each, const char *key,
			  const char *instead);

/* Stops the simulation when something is wrong. */
void contents_check_result(struct sim_node *n, uint32_t op,
			   const struct payload *result);

/* ---- for both ---- */

struct ring_value {
	const void *data;
	size_t len;
};

/* Checks the values that a ring has given to a rank; a wrong one stops the simulation. */
void contents_check_ring(struct sim_node *n, uint32_t op, uint32_t slot,
			 uint64_t rank, uint64_t size, struct ring_value left,
			 struct ring_value right);
