/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The ledger of the cores of a node: which rank of a step owns each, which lends it, and
 * which holds it. It lies in memory that the ranks share, and makes no system call.
 *
 * One atomic word for each core has one of these states:
 *
 *     owned    by its owner, which computes
 *     lent     free for other ranks, while its owner waits in MPI
 *     held     by another rank, while its owner waits
 *     wanted   by its owner, which computes on it again; the holder has yet to leave
 *
 * and moves
 *
 *     from     by                          to
 *     owned    ledger_wait of the owner    lent
 *     lent     ledger_resume of the owner  owned
 *     lent     ledger_share of another     held
 *     held     ledger_wait of the holder   lent
 *     held     ledger_resume of the owner  wanted
 *     wanted   ledger_wait of the owner    held
 *     wanted   ledger_share of the holder  owned
 *     wanted   ledger_wait of the holder   owned
 *
 * A rank that has gone (ledger_leave) owns and holds nothing, whatever the words say: its
 * cores are lent. So the end of a rank is one store, which any other rank can make.
 *
 * Each rank has two threads that call: one in ledger_wait and ledger_resume, one (its helper)
 * in ledger_share. Any process of the user can write into the memory: numbers are checked
 * before they are used, and what is no number of a rank counts as a rank that has gone.
 */
#ifndef PMI2X_LEND_CORE_LEDGER_H
#define PMI2X_LEND_CORE_LEDGER_H

#include <stddef.h>

#include "lend/core/atomics.h"

#define LEDGER_RANKS_MAX 1024 /* of one node */
#define LEDGER_CORES_MAX 4096

enum ledger_state {
	LEDGER_ABSENT, /* the rank has not joined */
	LEDGER_JOINS,
	LEDGER_COMPUTES,
	LEDGER_WAITS,
	LEDGER_GONE,
};

struct ledger_rank {
	lend_word state;   /* enum ledger_state */
	lend_word own;     /* cores */
	lend_word threads; /* that compute */
	lend_word waited;  /* how long in MPI, of late: a rank that waits little is late */
};

/* A process's view of the shared memory. */
struct ledger {
	struct ledger_rank *ranks;
	lend_word *cores;
	lend_word *changes; /* a futex for helpers: grows when they should look again */
	uint32_t nranks;
	uint32_t ncores;
};

size_t ledger_size(uint32_t ranks, uint32_t cores);
/* View memory of ledger_size bytes, which was zero before the first rank joined. */
void ledger_view(struct ledger *l, void *memory, uint32_t ranks, uint32_t cores);

/*
 * A rank with its cores and the number of its threads; it computes. False: another rank that
 * has not gone owns one of the cores, and this rank takes no part. If both join at the same
 * time, neither may take part.
 */
bool ledger_join(struct ledger *l, uint32_t rank, const uint32_t *cores, uint32_t ncores,
		 uint32_t threads);
/* The rank has ended, or lends for good. */
void ledger_leave(struct ledger *l, uint32_t rank);

/* The rank waits: its cores are lent, and it holds none of others. */
void ledger_wait(struct ledger *l, uint32_t rank);
/*
 * The rank computes again on all of its cores, after a wait of this length. Returns how many
 * of them others have yet to leave: if any, wake their helpers.
 */
uint32_t ledger_resume(struct ledger *l, uint32_t rank, uint32_t waited);
/*
 * The helper's turn: leave cores that their owners want, and hold as many lent ones as is the
 * rank's share, the first ones of `order` (numbers of all cores, the nearest first). True: the
 * rank's threads must move.
 */
bool ledger_share(struct ledger *l, uint32_t rank, const uint32_t *order);

/* The cores on which a rank that computes should have its threads; returns their number. */
uint32_t ledger_places(struct ledger *l, uint32_t rank, const uint32_t *order,
		       uint32_t *places);
/* True: another rank holds one of the rank's cores. */
bool ledger_is_used(struct ledger *l, uint32_t rank);

/* ---- one core, for tests and reports ---- */

#define LEDGER_NOBODY UINT32_MAX

struct ledger_core {
	uint32_t owner;  /* LEDGER_NOBODY: no rank has joined with it */
	uint32_t holder; /* LEDGER_NOBODY: lent */
	bool wanted;     /* the owner computes, and the holder is another */
};

struct ledger_core ledger_core_at(struct ledger *l, uint32_t core);

#endif
