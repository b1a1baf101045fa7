/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Definitions that the files of the explored step share.
 *
 *   world.c      its life, and what may happen
 *   world_end.c  what must be so at the end
 */
#pragma once

#include "bed/coll.h"
#include "world.h"

#define SUBSETS 2 /* groups of the bed: even ranks, upper half */

struct rank {
	uint8_t next;      /* in the program */
	uint8_t failed_at; /* 1 + next when the first failure was told; 0: none */
	uint8_t fetches;
	uint8_t subset_failed_at[SUBSETS]; /* 1 + collectives entered then */
};

struct world {
	const struct scenario *s;
	struct bed *bed;
	bool fault, broken_off; /* something has died; it is no single rank */
	struct rank ranks[WORLD_RANKS];
};

/* A letter of a program (world.h): its subset; SUBSETS: of none. */
uint32_t subset_of(char c);
/* A collective of all ranks. */
bool is_of_all(char c);
enum coll_kind kind_of(char c);
/* Collectives and fetches that the rank waits for. */
uint32_t unfinished(const struct world *w, uint32_t rank);
