/* SPDX-License-Identifier: BSD-3-Clause */
/* State of the calls that MVAPICH2 looks for: one operation of each kind. */
#ifndef PMI2X_MVAPICH_H
#define PMI2X_MVAPICH_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct pmix_view;

enum mvapich_kind {
	MVAPICH_BARRIER,
	MVAPICH_FENCE,
	MVAPICH_GATHER,
	MVAPICH_SHARED_GATHER,
	MVAPICH_KINDS,
};

struct mvapich_op {
	pthread_mutex_t lock; /* held while a thread waits for the operation */
	bool pending;
	uint64_t handle;
	struct pmix_view *view; /* of the gathers */
	void *copy; /* of a shared one that had to be laid out here, or NULL */
};

struct mvapich {
	struct mvapich_op ops[MVAPICH_KINDS];
};

void mvapich_init(struct mvapich *m);
void mvapich_destroy(struct mvapich *m); /* the views are detached before */

#endif
