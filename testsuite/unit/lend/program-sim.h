/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Whole hybrid programs on one node, in virtual time, over the ledger itself. The model:
 *
 * - Each rank has `each` cores and factor * each threads. A parallel region gives each thread
 *   the same work, and ends with the last one. Threads of a core share it evenly.
 * - After `regions` regions all ranks meet. A rank that has waited LEND_AFTER_US lends.
 * - A helper acts HELPER_US after a change: it uses ledger_share, and binds the threads again.
 *   A thread that moves loses MOVE_US.
 * - A rank whose cores are used naps, and comes back up to NAP_US late. It computes at once,
 *   beside threads that have yet to leave.
 * - A region of more threads than cores costs REGION_US more, as measured with libgomp.
 */
#ifndef PMI2X_LEND_PROGRAM_SIM_H
#define PMI2X_LEND_PROGRAM_SIM_H

#include "ledger-bed.h"

#define SIM_LEND_AFTER_US 200.0
#define SIM_HELPER_US 50.0
#define SIM_MOVE_US 5.0
#define SIM_NAP_US 100.0
#define SIM_REGION_US 10.0

struct sim_program {
	uint32_t ranks, each;
	uint32_t factor;     /* threads a core; 1: as without the library */
	bool lends;
	uint32_t regions;    /* between two meetings */
	uint32_t meetings;
	double region_us;    /* of a rank with load 1 on its own cores */
	double load[BED_RANKS_MAX];
	double jitter;       /* part of a region's work by which it varies */
};

/* Duration of the program in microseconds. Invariants of the ledger are asserted. */
double sim_run(const struct sim_program *p);

#endif
