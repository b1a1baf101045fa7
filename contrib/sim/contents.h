/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What ranks contribute and what must come out, as libpmi and libshm make it:
 * records, contributions to a gather, images. The value of a rank follows from
 * its number and the operation's.
 */
#ifndef PMI2X_SIM_CONTENTS_H
#define PMI2X_SIM_CONTENTS_H

#include "libcoll/coll.h"
#include "sim.h"

/* Of one record of a fence, one contribution to a gather, both ring values. */
uint64_t contents_unit_len(const struct scenario *sc,
			   const struct scenario_op *op);

/* What the rank in `slot` contributes; one reference, or NULL (no memory). */
struct payload *contents_of(struct sim_node *n, uint32_t op, uint32_t slot);
/* What it shows to its neighbours in a ring; NULL: nothing. */
struct payload *contents_edge(struct sim_node *n, uint32_t op, uint32_t slot,
			      bool left);

/* The result of contributions, in bytes; NULL with *error. */
struct payload *contents_image(const struct sim *s, enum coll_kind kind,
			       const struct payload_vec *parts, int *error);
/* How long it is, without bytes; 0 with *error. */
uint64_t contents_image_len(const struct sim *s, const struct scenario_op *op,
			    uint64_t bytes, int *error);

/* Both stop the simulation when something is wrong. */
void contents_check_result(struct sim_node *n, uint32_t op,
			   const struct payload *result);
void contents_check_ring(struct sim_node *n, uint32_t op, uint32_t slot,
			 const struct coll_ring_result *result);

#endif
