/* SPDX-License-Identifier: BSD-3-Clause */
/* Views: results of gathers that callers read in place. */
#ifndef PMI2X_VIEWS_H
#define PMI2X_VIEWS_H

#include <pthread.h>

#include "gather.h"

struct session;

/* Owned by the caller until view_free; the session may end before that. */
struct pmix_view {
	struct gathered result; /* count 0: the session has ended */
	struct pmix_view *next;
};

struct views {
	pthread_mutex_t lock;
	struct pmix_view *first;
};

void views_init(struct views *v);
/* Empty all views; their owners free them later. */
void views_detach(struct session *s);
void views_destroy(struct views *v);

/* A view that takes the result over; NULL: no memory, the result is freed. */
struct pmix_view *view_new(struct session *s, struct gathered *result);
/* Takes the result's space back. `s` may be NULL, or a later session. */
void view_free(struct session *s, struct pmix_view *view);

#endif
