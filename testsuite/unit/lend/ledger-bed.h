/* SPDX-License-Identifier: BSD-3-Clause */
/* A ledger in memory, and what holds for it whatever has happened. */
#ifndef PMI2X_LEND_LEDGER_BED_H
#define PMI2X_LEND_LEDGER_BED_H

#include "lend/core/ledger.h"

#define BED_RANKS_MAX 8
#define BED_CORES_MAX 64

struct ledger_bed {
	uint32_t ranks;
	uint32_t each; /* cores of a rank; those of rank r begin with r * each */
	uint32_t memory[4 * BED_RANKS_MAX + BED_CORES_MAX + 1];
};

/* Ranks with cores of their own, and `factor` threads a core. All compute. */
void bed_make(struct ledger_bed *b, uint32_t ranks, uint32_t each, uint32_t factor);
struct ledger bed_ledger(struct ledger_bed *b);
/* A helper's turn; the nearest cores are those behind the rank's own. */
bool bed_share(struct ledger_bed *b, uint32_t rank);
enum ledger_state bed_state(struct ledger_bed *b, uint32_t rank);
/* Cores of others that a rank holds. */
uint32_t bed_held(struct ledger_bed *b, uint32_t rank);

/*
 * Fails the test unless ranks that compute have all of their cores, perhaps with a holder that
 * has yet to leave, ranks that wait hold none, and ranks that have gone own and hold none.
 */
void bed_check(struct ledger_bed *b);
/* Gives all helpers their turns in a copy, and checks it: also, each rank has its share. */
void bed_check_settled(const struct ledger_bed *b);

#endif
