/* SPDX-License-Identifier: BSD-3-Clause */
/* Keeps track of views, so that none outlives the memory it shows. */
#include "views.h"

#include <stdlib.h>
#include <string.h>

#include "session.h"

void views_init(struct views *v)
{
	v->first = NULL;
	pthread_mutex_init(&v->lock, NULL);
}

void views_destroy(struct views *v)
{
	pthread_mutex_destroy(&v->lock);
}

struct pmix_view *view_new(struct session *s, struct gathered *result)
{
	struct pmix_view *view = calloc(1, sizeof(*view));

	if (!view) {
		gathered_free(s, result);
		return NULL;
	}
	view->result = *result;
	memset(result, 0, sizeof(*result));
	pthread_mutex_lock(&s->views.lock);
	view->next = s->views.first;
	s->views.first = view;
	pthread_mutex_unlock(&s->views.lock);
	return view;
}

static void unlink_view(struct views *v, struct pmix_view *view)
{
	struct pmix_view **at = &v->first;

	while (*at && *at != view)
		at = &(*at)->next;
	if (*at)
		*at = view->next;
}

void view_free(struct session *s, struct pmix_view *view)
{
	if (s && view->result.count) {
		pthread_mutex_lock(&s->views.lock);
		unlink_view(&s->views, view);
		pthread_mutex_unlock(&s->views.lock);
		gathered_free(s, &view->result);
	}
	free(view);
}

void views_detach(struct session *s)
{
	struct pmix_view *next;

	for (struct pmix_view *v = s->views.first; v; v = next) {
		next = v->next;
		gathered_free(s, &v->result);
		v->next = NULL;
	}
	s->views.first = NULL;
}
