/* SPDX-License-Identifier: BSD-3-Clause */
/* The operations that MVAPICH2 starts and waits for, one of each kind. */
#include "mvapich.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "requests.h"
#include "views.h"

void mvapich_init(struct mvapich *m, struct requests *requests,
		  struct views *views)
{
	memset(m, 0, sizeof(*m));
	m->requests = requests;
	m->views = views;
	for (int i = 0; i < MVAPICH_KINDS; i++)
		pthread_mutex_init(&m->ops[i].lock, NULL);
}

void mvapich_destroy(struct mvapich *m)
{
	for (int i = 0; i < MVAPICH_KINDS; i++) {
		view_free(NULL, m->ops[i].view);
		free(m->ops[i].copy);
		pthread_mutex_destroy(&m->ops[i].lock);
	}
}

int mvapich_fence(struct mvapich *m, enum mvapich_kind kind)
{
	struct mvapich_op *op = &m->ops[kind];
	int rc;

	pthread_mutex_lock(&op->lock);
	rc = op->pending ? -EINVAL : request_fence(m->requests, &op->handle);
	op->pending = op->pending || !rc;
	pthread_mutex_unlock(&op->lock);
	return rc;
}

/* Release the result of the operation before this one. */
static int start_gather(struct mvapich *m, struct mvapich_op *op,
			const char *value, size_t stride)
{
	struct sink sink = { .view = &op->view };
	int rc;

	if (op->pending)
		return -EINVAL;
	if (op->view)
		view_free(m->views, op->view);
	op->view = NULL;
	free(op->copy);
	op->copy = NULL;
	rc = request_gather(m->requests, value, strlen(value), stride, &sink,
			    &op->handle);
	op->pending = !rc;
	return rc;
}

int mvapich_gather(struct mvapich *m, enum mvapich_kind kind, const char *value,
		   size_t stride)
{
	struct mvapich_op *op = &m->ops[kind];
	int rc;

	pthread_mutex_lock(&op->lock);
	rc = start_gather(m, op, value, stride);
	pthread_mutex_unlock(&op->lock);
	return rc;
}

/* A second waiter blocks on the lock until the first has completed it. */
int mvapich_wait(struct mvapich *m, enum mvapich_kind kind, mvapich_use *use,
		 size_t stride, void *to)
{
	struct mvapich_op *op = &m->ops[kind];
	int rc = 0;

	pthread_mutex_lock(&op->lock);
	if (op->pending)
		rc = request_wait(m->requests, op->handle);
	op->pending = false;
	if (!rc && use)
		rc = op->view ? use(op, stride, to) : -EINVAL;
	pthread_mutex_unlock(&op->lock);
	return rc;
}

int mvapich_copy(struct mvapich_op *op, size_t stride, void *to)
{
	gathered_copy(&op->view->result, to, stride, NULL);
	return 0;
}

/* A result that came as keys is laid out once in memory of our own. */
int mvapich_share(struct mvapich_op *op, size_t stride, void *to)
{
	const struct gathered *r = &op->view->result;

	if (r->stride == stride) {
		*(void **)to = (void *)r->bytes;
		return 0;
	}
	if (!op->copy) {
		op->copy = malloc((size_t)r->count * stride);
		if (!op->copy)
			return -ENOMEM;
		gathered_copy(r, op->copy, stride, NULL);
	}
	*(void **)to = op->copy;
	return 0;
}
