/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The names that MVAPICH2's start-up code looks for: one operation of each
 * kind, without a request in the caller's hands.
 */
#include "mvapich.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "api.h"
#include "pmi2.h"
#include "pmi2x.h"

#define STRIDE PMI2X_MAXLENGTH

void mvapich_init(struct mvapich *m)
{
	memset(m, 0, sizeof(*m));
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

/* ---- barrier and fence ---- */

static int start_fence(enum mvapich_kind kind)
{
	struct mvapich_op *op;
	struct session *s;
	int code, rc;

	s = pmi2_enter(&code);
	if (!s)
		return code;
	op = &s->mvapich.ops[kind];
	pthread_mutex_lock(&op->lock);
	rc = op->pending ? -EINVAL : request_fence(s, &op->handle);
	op->pending = op->pending || !rc;
	pthread_mutex_unlock(&op->lock);
	return pmi2_leave(s, rc);
}

/* A second waiter blocks on the lock until the first has completed it. */
static int finish(struct session *s, struct mvapich_op *op)
{
	int rc;

	if (!op->pending)
		return 0;
	rc = request_wait(s, op->handle);
	op->pending = false;
	return rc;
}

static int wait_fence(enum mvapich_kind kind)
{
	struct mvapich_op *op;
	struct session *s;
	int code, rc;

	s = pmi2_enter(&code);
	if (!s)
		return code;
	op = &s->mvapich.ops[kind];
	pthread_mutex_lock(&op->lock);
	rc = finish(s, op);
	pthread_mutex_unlock(&op->lock);
	return pmi2_leave(s, rc);
}

int PMI_Ibarrier(void)
{
	return start_fence(MVAPICH_BARRIER);
}

int PMI_Wait(void)
{
	return wait_fence(MVAPICH_BARRIER);
}

int PMI2_KVS_Ifence(void)
{
	return start_fence(MVAPICH_FENCE);
}

int PMI2_KVS_Wait(void)
{
	return wait_fence(MVAPICH_FENCE);
}

/* ---- gathers ---- */

/* What the operation before this one left is given back here. */
static int start_gather(struct session *s, struct mvapich_op *op,
			const char *value, size_t stride)
{
	struct sink sink = { .view = &op->view };
	int rc;

	if (op->pending)
		return -EINVAL;
	if (op->view)
		view_free(s, op->view);
	op->view = NULL;
	free(op->copy);
	op->copy = NULL;
	rc = request_gather(s, value, strlen(value), stride, &sink,
			    &op->handle);
	op->pending = !rc;
	return rc;
}

static int gather(enum mvapich_kind kind, const char *value, size_t stride)
{
	struct mvapich_op *op;
	struct session *s;
	int code, rc;

	if (!value)
		return PMI2_ERR_INVALID_ARG;
	if (strlen(value) >= STRIDE)
		return PMI2_ERR_INVALID_VAL_LENGTH;
	s = pmi2_enter(&code);
	if (!s)
		return code;
	op = &s->mvapich.ops[kind];
	pthread_mutex_lock(&op->lock);
	rc = start_gather(s, op, value, stride);
	pthread_mutex_unlock(&op->lock);
	return pmi2_leave(s, rc);
}

/* What a wait does with the view; under the operation's lock. */
typedef int use_view(struct session *s, struct mvapich_op *op, void *to);

static int wait_gather(enum mvapich_kind kind, use_view *use, void *to)
{
	struct mvapich_op *op;
	struct session *s;
	int code, rc;

	if (!to)
		return PMI2_ERR_INVALID_ARG;
	s = pmi2_enter(&code);
	if (!s)
		return code;
	op = &s->mvapich.ops[kind];
	pthread_mutex_lock(&op->lock);
	rc = finish(s, op);
	if (!rc)
		rc = op->view ? use(s, op, to) : -EINVAL;
	pthread_mutex_unlock(&op->lock);
	return pmi2_leave(s, rc);
}

static int copy_view(struct session *s, struct mvapich_op *op, void *to)
{
	gathered_copy(&op->view->result, to, STRIDE, NULL);
	return 0;
}

/* A result that came as keys is laid out once in memory of our own. */
static int share_view(struct session *s, struct mvapich_op *op, void *to)
{
	const struct gathered *r = &op->view->result;

	if (r->stride == STRIDE) {
		*(void **)to = (void *)r->bytes;
		return 0;
	}
	if (!op->copy) {
		op->copy = malloc((size_t)r->count * STRIDE);
		if (!op->copy)
			return -ENOMEM;
		gathered_copy(r, op->copy, STRIDE, NULL);
	}
	*(void **)to = op->copy;
	return 0;
}

int PMI2_Iallgather(const char value[])
{
	return gather(MVAPICH_GATHER, value, 0);
}

int PMI2_Iallgather_wait(void *buf)
{
	return wait_gather(MVAPICH_GATHER, copy_view, buf);
}

int PMI2_SHMEM_Iallgather(const char value[])
{
	return gather(MVAPICH_SHARED_GATHER, value, STRIDE);
}

int PMI2_SHMEM_Iallgather_wait(void **buf)
{
	return wait_gather(MVAPICH_SHARED_GATHER, share_view, buf);
}
