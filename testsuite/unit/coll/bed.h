/* SPDX-License-Identifier: BSD-3-Clause */
/* The bed (testsuite/bed/coll.h) as the unit tests of libcoll use it. */
#pragma once

#include "bed/coll.h"
#include "unit.h"

static inline void promise_is_broken(const char *what)
{
	fail_msg("%s", what);
}

static inline void free_bed(void *bed)
{
	bed_free(bed);
}

/* Messages are cut into small pieces: every history has several of them. */
static inline struct bed *new_bed(uint32_t nodes, uint32_t ranks, uint32_t width,
				  uint64_t seed)
{
	return unit_at_end(free_bed, bed_new(&(struct bed_options){
		.nodes = nodes, .ranks = ranks, .width = width, .piece = 24,
		.seed = seed, .seq_max = COLL_IN_FLIGHT_MAX + 76, .fetches_max = 1024,
		.groups_max = 16, .varied = true, .broken = promise_is_broken,
	}));
}

/* A test with a bed whose tree is binary, and whose ranks lie in order. */
#define BED_TEST(name, nodes, ranks) TEST_ON(name, struct bed *bed, new_bed(nodes, ranks, 2, 0))
