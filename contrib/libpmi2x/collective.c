/* SPDX-License-Identifier: BSD-3-Clause */
/* The choice of a collective's transport, and what that transport sends. */
#include "collective.h"

#include <errno.h>
#include <string.h>

#include "conn.h"
#include "job.h"
#include "slots_client.h"

static int enter(struct job *job, const struct entry *e, struct call *call)
{
	struct transport *socket = conn_transport(job->conn), *slots;
	int rc;

	if (!job->slots)
		return socket->ops->enter(socket, e, call);
	slots = slots_client_transport(job->slots);
	rc = slots->ops->enter(slots, e, call);
	if (rc != -ENOSPC)
		return rc;
	rc = socket->ops->enter(socket, e, call);
	if (!rc)
		slots->ops->skip(slots);
	return rc;
}

static int collective_enter(struct job *job, const struct entry *e, struct call *call)
{
	int rc;

	pthread_mutex_lock(&job->entering);
	rc = enter(job, e, call);
	pthread_mutex_unlock(&job->entering);
	return rc;
}

int collective_fence(struct job *job, struct call *call)
{
	struct batch *b = &job->batch;
	int rc;

	pthread_mutex_lock(&b->lock);
	rc = b->lost;
	if (!rc)
		rc = collective_enter(job, &(struct entry){
			.kind = SLOT_FENCE,
			.data = b->records.data,
			.len = b->records.len,
		}, call);
	if (!rc)
		buf_free(&b->records);
	pthread_mutex_unlock(&b->lock);
	return rc;
}

/* ---- gathers ---- */

void collective_done(struct job *job, uint64_t offset)
{
	pthread_mutex_lock(&job->done.lock);
	(void)buf_append(&job->done.offsets, &offset, sizeof(offset));
	pthread_mutex_unlock(&job->done.lock);
}

/* The newest of them; the rest waits for the next gather. */
static size_t take_done(struct done *d, uint64_t to[ENTRY_DONE_MAX])
{
	size_t len = ENTRY_DONE_MAX * sizeof(*to);

	pthread_mutex_lock(&d->lock);
	if (len > d->offsets.len)
		len = d->offsets.len;
	d->offsets.len -= len;
	if (len)
		memcpy(to, d->offsets.data + d->offsets.len, len);
	pthread_mutex_unlock(&d->lock);
	return len / sizeof(*to);
}

int collective_gather(struct job *job, const void *value, size_t len,
		      size_t stride, struct call *call)
{
	uint64_t done[ENTRY_DONE_MAX];

	return collective_enter(job, &(struct entry){
		.kind = SLOT_GATHER,
		.data = value,
		.len = len,
		.stride = stride,
		.done = done,
		.ndone = take_done(&job->done, done),
	}, call);
}

/* ---- rings ---- */

static int take_place(const struct job *job, struct call *call,
		      struct ring_place *out)
{
	struct ring_place *at = &call->outcome.place;

	if (!at->size) /* Slurm's stock plugin: all of the job */
		at->size = job->size;
	if (at->rank < 0 || at->rank >= at->size)
		return -EPROTO;
	*out = *at;
	memset(at, 0, sizeof(*at));
	return 0;
}

int collective_ring(struct job *job, const void *value, size_t len,
		    struct ring_place *out)
{
	const struct entry e = { .kind = SLOT_RING, .data = value, .len = len };
	struct call call;
	int rc = collective_enter(job, &e, &call);

	if (rc)
		return rc;
	rc = call_wait(&call);
	if (!rc)
		rc = take_place(job, &call, out);
	call_end(&call);
	return rc;
}
