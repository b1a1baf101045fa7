/* SPDX-License-Identifier: BSD-3-Clause */
/* Views: results of gathers that callers read in place. */
#pragma once

#include <pthread.h>

#include "gather.h"

struct job;

/* Owned by the caller until view_free; the session may end before that. */
struct pmix_view {
	struct gathered result; /* count 0: the session has ended */
	struct pmix_view *prev, *next;
};

struct views {
	struct job *job;
	pthread_mutex_t lock;
	struct pmix_view *first;
};

void views_init(struct views *v, struct job *job);
/* Empties all views; their owners free them later. */
void views_destroy(struct views *v);

/* A view that takes the result over; NULL: no memory, the result is freed. */
struct pmix_view *view_new(struct views *v, struct gathered *result);
/* Takes the result's space back. `v` may be NULL, or of a later session. */
void view_free(struct views *v, struct pmix_view *view);
