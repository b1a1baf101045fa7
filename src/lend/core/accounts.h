/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Core microseconds that ranks were idle, lent and used, in memory that they share. Each rank adds
 * its own waits, and, when it leaves a core of another rank, how long it held that core.
 * Times are of one clock for all ranks of a node.
 */
#ifndef PMI2X_LEND_CORE_ACCOUNTS_H
#define PMI2X_LEND_CORE_ACCOUNTS_H

#include "lend/core/ledger.h"

#define ACCOUNTS_LATE_US 1000

typedef _Atomic uint64_t account_word;

struct account {
	account_word idle;    /* waits that were long enough to lend, on all cores of the rank */
	account_word lent;    /* its cores, held by others */
	account_word used;    /* cores of others, held by it */
	account_word late;    /* its cores, which others left more than a millisecond after it came back */
	account_word resumed; /* when it came back last */
};

/* A core that this rank holds. */
struct holding {
	uint64_t since; /* 0: it does not */
	uint32_t owner;
};

struct accounts {
	struct account *ranks; /* shared */
	uint32_t rank;
	struct holding held[LEDGER_CORES_MAX];
};

size_t accounts_size(uint32_t ranks);
/* View memory of accounts_size bytes, which was zero in the beginning, as a rank. */
void accounts_view(struct accounts *a, void *memory, uint32_t rank);
/* Whenever this rank may hold other cores than before. One thread at a time calls. */
void accounts_update(struct accounts *a, struct ledger *l, uint64_t now);
/* This rank has come back from a wait of this length with all of its cores. */
void accounts_resume(struct accounts *a, uint64_t waited, uint32_t cores, uint64_t now);

#endif
