/* SPDX-License-Identifier: BSD-3-Clause */
/* A rank that lends: it joins the ledger, waits and resumes; its helper takes and gives back. */
#ifndef PMI2X_LEND_LENDER_H
#define PMI2X_LEND_LENDER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "lend/core/accounts.h"
#include "lend/core/arrivals.h"
#include "lend/table.h"

struct lender {
	atomic_bool active;
	bool naps_only; /* no core is lent: waits only nap */
	bool moves;     /* its threads go to cores of others */
	bool reports;   /* what lending has brought */
	int fd;         /* of the table, with this rank's lock */
	dev_t device;   /* these two: the file of that descriptor */
	ino_t inode;
	uint32_t slot, ranks;
	struct lend_table *table;
	struct ledger ledger;
	struct arrivals arrivals;
	struct accounts accounts;
	struct lend_cores own;
	uint32_t *order; /* all cores, the nearest first */
};

/*
 * In MPI_Init, before that of MPI. `threads` of the team; 0: the rank only lends. NULL, or
 * why the rank takes no part. The lender stays until the process ends.
 */
const char *lender_start(struct lender *l, const struct lend_place *place,
			 struct lend_table *table, const struct lend_cores *cores,
			 uint32_t threads);
/*
 * Call test(arg) until it returns true, and lend while that takes long. `limit_ms` ends it,
 * too; 0: no limit, and the ranks that are waited for do not make a lender_call. False: the
 * limit came first. One thread only may wait.
 */
bool lender_wait(struct lender *l, bool (*test)(void *arg), void *arg, int limit_ms);
/* This rank has come to where others may wait for it: those that nap look again. */
void lender_call(struct lender *l);
/* The rank lends for good. */
void lender_stop(struct lender *l);
/* When all ranks have stopped, the one that reports writes to stderr what lending has brought. */
void lender_report(struct lender *l);

#endif
