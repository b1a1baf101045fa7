/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The path to an event: a chain of times at which nodes got busy, each because a
 * message came or a rank entered. Shared and counted.
 */
#pragma once

#include "units.h"

#define PATH_STEPS_MAX 4096  /* of a chain; what is earlier is dropped */
#define PATH_NO_RANK UINT32_MAX

struct path {
	uint32_t refs;
	uint32_t steps;    /* of the chain that ends here */
	uint32_t position; /* of the node that got busy */
	uint32_t rank;     /* the rank that entered, or PATH_NO_RANK */
	sim_time at;
	struct path *from; /* the path of the sender */
};

/* One reference, or NULL. Takes its own reference to `from`. */
struct path *path_new(uint32_t position, uint32_t rank, sim_time at,
		      struct path *from);
struct path *path_ref(struct path *p);   /* NULL stays NULL */
void path_unref(struct path *p);         /* NULL is allowed */
/* How many of a chain happened at or after a time. */
uint32_t path_steps_since(const struct path *p, sim_time since);
