/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Functions that MVAPICH2's start-up code needs: one operation of each kind, without a
 * request in the caller's hands. Any thread; errors as requests.h, and -EINVAL: one of
 * that kind is under way already, or there is none to wait for.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pmix_view;
struct requests;
struct views;

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
	struct requests *requests;
	struct views *views;
	struct mvapich_op ops[MVAPICH_KINDS];
};

void mvapich_init(struct mvapich *m, struct requests *requests,
		  struct views *views);
void mvapich_destroy(struct mvapich *m); /* the views are detached before */

/* Start a barrier or fence, or a gather of `value`. */
int mvapich_fence(struct mvapich *m, enum mvapich_kind kind);
int mvapich_gather(struct mvapich *m, enum mvapich_kind kind, const char *value,
		   size_t stride);

/* A wait hands the gather's view to this; under the operation's lock. */
typedef int mvapich_use(struct mvapich_op *op, size_t stride, void *to);
/* Wait for it; `use` NULL: it has no result. */
int mvapich_wait(struct mvapich *m, enum mvapich_kind kind, mvapich_use *use,
		 size_t stride, void *to);
/* Copy the result to the buffer `to`; or let the pointer `to` point at it. */
mvapich_use mvapich_copy, mvapich_share;
