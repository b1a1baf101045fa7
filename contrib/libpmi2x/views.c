/* SPDX-License-Identifier: BSD-3-Clause */
/* Keeps track of views, so that none outlives the memory it shows. */
#include "views.h"

#include <stdlib.h>
#include <string.h>

#include <utlist.h>

void views_init(struct views *v, struct job *job)
{
	v->job = job;
	v->first = NULL;
	pthread_mutex_init(&v->lock, NULL);
}

void views_destroy(struct views *v)
{
	struct pmix_view *view, *next;

	DL_FOREACH_SAFE(v->first, view, next)
		gathered_free(v->job, &view->result);
	pthread_mutex_destroy(&v->lock);
}

struct pmix_view *view_new(struct views *v, struct gathered *result)
{
	struct pmix_view *view = calloc(1, sizeof(*view));

	if (!view) {
		gathered_free(v->job, result);
		return NULL;
	}
	view->result = *result;
	memset(result, 0, sizeof(*result));
	pthread_mutex_lock(&v->lock);
	DL_APPEND(v->first, view);
	pthread_mutex_unlock(&v->lock);
	return view;
}

void view_free(struct views *v, struct pmix_view *view)
{
	if (v && view->result.count) {
		pthread_mutex_lock(&v->lock);
		DL_DELETE(v->first, view);
		pthread_mutex_unlock(&v->lock);
		gathered_free(v->job, &view->result);
	}
	free(view);
}
