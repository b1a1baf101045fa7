/* SPDX-License-Identifier: BSD-3-Clause */
/* A queue between threads, and a descriptor that says that there is something in it. */
#include "helpers/pmixd/events.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct events {
	pthread_mutex_t lock;
	struct event *first, **last;
	int fd;
};

struct event *event_create(enum event_type type, const pmix_proc_t *proc)
{
	struct event *e = calloc(1, sizeof(*e));

	if (!e)
		return NULL;
	e->type = type;
	memcpy(e->nspace, proc->nspace, sizeof(e->nspace));
	e->rank = proc->rank;
	e->timeout_ms = EVENT_NO_TIMEOUT;
	return e;
}

void event_free(struct event *e)
{
	free(e->ranks);
	free(e->text);
	free(e->data);
	free(e->xns_connect);
	free(e);
}

int events_create(struct events **out)
{
	struct events *q = calloc(1, sizeof(*q));
	int rc;

	if (!q)
		return -ENOMEM;
	q->last = &q->first;
	q->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	rc = q->fd < 0 ? -errno : -pthread_mutex_init(&q->lock, NULL);
	if (rc) {
		if (q->fd >= 0)
			close(q->fd);
		free(q);
		return rc;
	}
	*out = q;
	return 0;
}

int events_fd(const struct events *q)
{
	return q->fd;
}

void events_push(struct events *q, struct event *e)
{
	bool was_empty;

	pthread_mutex_lock(&q->lock);
	was_empty = !q->first;
	*q->last = e;
	q->last = &e->next;
	pthread_mutex_unlock(&q->lock);
	if (was_empty)
		(void)eventfd_write(q->fd, 1);
}

struct event *events_take(struct events *q)
{
	struct event *e;
	eventfd_t count;

	pthread_mutex_lock(&q->lock);
	e = q->first;
	if (e) {
		q->first = e->next;
		if (!q->first)
			q->last = &q->first;
	} else {
		(void)eventfd_read(q->fd, &count);
	}
	pthread_mutex_unlock(&q->lock);
	return e;
}
