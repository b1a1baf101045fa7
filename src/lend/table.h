/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The table of a step's ranks on one node: shared memory that slurmstepd makes and passes
 * to each task as a descriptor. slurmstepd neither reads nor maps it. Each rank writes its
 * own facts in MPI_Init; the rank that reports reads all. Processes of the job's user can
 * write anything there, so a reader checks what it reads.
 */
#ifndef PMI2X_LEND_TABLE_H
#define PMI2X_LEND_TABLE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lend/core/accounts.h"
#include "lend/core/arrivals.h"
#include "lend/facts.h"
#include "lend/request.h"

#define LEND_GROUPS 64 /* communicators with different members */
#define LEND_RANKS_MAX 65536 /* of one node */

struct lend_entry {
	_Atomic uint32_t ready; /* 1: the facts are complete */
	struct lend_facts facts;
};

struct lend_table {
	_Atomic uint32_t arrived; /* entries that are ready; a futex */
	_Atomic uint32_t explained; /* 1: a rank has said why it does not lend */
	_Atomic uint32_t sleepers; /* ranks that nap */
	_Atomic uint32_t calls; /* a futex: grows when ranks that nap should look again */
	uint32_t unused[12];
	struct lend_entry entries[];
};

static inline size_t lend_table_size(uint32_t ranks)
{
	return sizeof(struct lend_table) + (size_t)ranks * sizeof(struct lend_entry);
}

/* Bytes of the memory: entries and, unless `cores` is 0, accounts, ledger and arrivals behind. */
size_t lend_memory_size(uint32_t ranks, uint32_t cores);
/*
 * Map the table of a place, and close its descriptor or, if cores are lent, set it close-on-exec.
 * NULL if the descriptor is not that of a table of this size: a program may have closed it,
 * and opened something else.
 */
struct lend_table *lend_table_map(const struct lend_place *place);
void lend_table_enter(struct lend_table *table, uint32_t slot,
		      const struct lend_facts *facts);
/*
 * Wait until all ranks have entered, `limit_ms` at most; then copy the facts of those that
 * have to `facts`, which has room for all. Returns their number.
 */
uint32_t lend_table_collect(struct lend_table *table, uint32_t ranks, int limit_ms,
			    struct lend_facts *facts);

#endif
