/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of requests, and what completing each kind means. */
#include "requests.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "job.h"
#include "libutil/array.h"
#include "views.h"
#include "wire.h"

#define SLOT_BITS 12

_Static_assert(REQUESTS_MAX == 1 << SLOT_BITS, "a handle names any slot");

enum kind { KIND_FENCE, KIND_GATHER, KIND_FETCH };

struct request {
	uint64_t handle;
	bool claimed; /* some thread is completing it */
	enum kind kind;
	struct call *call; /* of the one of these two */
	struct gather gather; /* a fence uses only its call */
	struct fetch fetch;
	struct sink sink;
	struct fetch_sink to;
	size_t room;
};

/*
 * Generations start at the time of the session in microseconds, so that a
 * handle of an earlier session is not taken for one of this.
 */
void requests_init(struct requests *r, struct job *job, struct views *views)
{
	struct timespec now;

	memset(r, 0, sizeof(*r));
	r->job = job;
	r->views = views;
	pthread_mutex_init(&r->lock, NULL);
	clock_gettime(CLOCK_MONOTONIC, &now);
	r->generation = (uint64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000 + 1;
}

void requests_destroy(struct requests *r)
{
	free(r->slots);
	pthread_mutex_destroy(&r->lock);
}

/* ---- the table ---- */

static int place(struct requests *t, struct request *r)
{
	uint32_t slot = 0;
	int rc;

	while (slot < t->count && t->slots[slot])
		slot++;
	if (slot == REQUESTS_MAX)
		return -EBUSY;
	rc = array_grow(&t->slots, slot, &t->cap, sizeof(*t->slots));
	if (rc)
		return rc;
	if (slot == t->count)
		t->count++;
	t->slots[slot] = r;
	r->handle = t->generation++ << SLOT_BITS | slot;
	return 0;
}

/* A claimed request in the table: it is nobody else's until it is released. */
static int request_new(struct requests *t, enum kind kind, struct request **out)
{
	struct request *r = calloc(1, sizeof(*r));
	int rc;

	if (!r)
		return -ENOMEM;
	r->claimed = true;
	r->kind = kind;
	r->call = kind == KIND_FETCH ? &r->fetch.call : &r->gather.call;
	pthread_mutex_lock(&t->lock);
	rc = place(t, r);
	pthread_mutex_unlock(&t->lock);
	if (rc)
		free(r);
	else
		*out = r;
	return rc;
}

static void request_free(struct requests *t, struct request *r)
{
	uint32_t slot = r->handle & (REQUESTS_MAX - 1);

	pthread_mutex_lock(&t->lock);
	t->slots[slot] = NULL;
	pthread_mutex_unlock(&t->lock);
	free(r);
}

static struct request *claim(struct requests *t, uint64_t handle)
{
	uint32_t slot = handle & (REQUESTS_MAX - 1);
	struct request *r = NULL;

	pthread_mutex_lock(&t->lock);
	if (slot < t->count)
		r = t->slots[slot];
	if (r && (r->handle != handle || r->claimed))
		r = NULL;
	if (r)
		r->claimed = true;
	pthread_mutex_unlock(&t->lock);
	return r;
}

static void release(struct requests *t, struct request *r)
{
	pthread_mutex_lock(&t->lock);
	r->claimed = false;
	pthread_mutex_unlock(&t->lock);
}

/* ---- start ---- */

/* Give out the handle of a request that was started; free one that was not. */
static int started(struct requests *t, struct request *r, int rc,
		   uint64_t *handle)
{
	if (rc) {
		request_free(t, r);
		return rc;
	}
	*handle = r->handle;
	release(t, r);
	return 0;
}

int request_fence(struct requests *t, uint64_t *handle)
{
	struct request *r;
	int rc = request_new(t, KIND_FENCE, &r);

	if (rc)
		return rc;
	rank_trace_note(&t->job->trace, RANK_TRACE_FENCE_IN);
	rc = t->job->ops->fence(t->job, &r->gather.call);
	return started(t, r, rc, handle);
}

int request_gather(struct requests *t, const void *value, size_t len,
		   size_t stride, const struct sink *sink, uint64_t *handle)
{
	struct request *r;
	int rc = request_new(t, KIND_GATHER, &r);

	if (rc)
		return rc;
	r->sink = *sink;
	rc = gather_start(t->job, value, len, stride, &r->gather);
	return started(t, r, rc, handle);
}

int request_fetch(struct requests *t, int rank, const char *key, int timeout,
		  const struct fetch_sink *sink, uint64_t *handle)
{
	struct request *r;
	int rc = request_new(t, KIND_FETCH, &r);

	if (rc)
		return rc;
	r->to = *sink;
	r->room = *sink->len;
	rc = fetch_start(t->job, rank, key, timeout, &r->fetch);
	return started(t, r, rc, handle);
}

/* ---- completion ---- */

static void fill_slot(char *slot, size_t slot_len, const void *value, size_t len)
{
	size_t copied = len < slot_len ? len : slot_len;

	if (copied)
		memcpy(slot, value, copied);
	memset(slot + copied, 0, slot_len - copied);
}

void gathered_copy(const struct gathered *r, void *buffer, size_t slot_len,
		   int *lengths)
{
	char *to = buffer;
	size_t len;
	const unsigned char *even = gathered_even(r, &len);

	for (uint32_t i = 0; i < r->count; i++, to += slot_len) {
		const void *value = even ? even + i * len :
					   gathered_value(r, i, &len);

		fill_slot(to, slot_len, value, len);
		if (lengths)
			lengths[i] = (int)len;
	}
}

static int deliver(struct requests *t, const struct sink *sink,
		   struct gathered *result)
{
	if (sink->view) {
		*sink->view = view_new(t->views, result);
		return *sink->view ? 0 : -ENOMEM;
	}
	gathered_copy(result, sink->buffer, sink->slot_len, sink->lengths);
	gathered_free(t->job, result);
	return 0;
}

static int complete_fence(struct requests *t, struct request *r)
{
	int rc = r->gather.call.error;

	rank_trace_note(&t->job->trace, RANK_TRACE_FENCE_OUT);
	call_end(&r->gather.call);
	return rc;
}

static int complete_gather(struct requests *t, struct request *r)
{
	struct gathered result;
	int rc = gather_finish(t->job, &r->gather, &result);

	return rc ? rc : deliver(t, &r->sink, &result);
}

static int complete_fetch(struct requests *t, struct request *r)
{
	struct value v = { NULL, 0 };
	int rc = fetch_finish(t->job, &r->fetch, &v);

	if (rc)
		return rc;
	*r->to.len = v.len;
	if (v.len > r->room)
		rc = -ENOBUFS;
	else if (v.len)
		memcpy(r->to.value, v.data, v.len);
	value_free(&v);
	return rc;
}

/* The call is done. The request is the caller's to free. */
static int complete(struct requests *t, struct request *r)
{
	switch (r->kind) {
	case KIND_GATHER:
		return complete_gather(t, r);
	case KIND_FETCH:
		return complete_fetch(t, r);
	default:
		return complete_fence(t, r);
	}
}

int request_wait(struct requests *t, uint64_t handle)
{
	struct request *r = claim(t, handle);
	int rc;

	if (!r)
		return -EINVAL;
	call_wait(r->call);
	rc = complete(t, r);
	request_free(t, r);
	return rc;
}

int request_test(struct requests *t, uint64_t handle, int *done)
{
	struct request *r = claim(t, handle);
	int rc;

	if (!r)
		return -EINVAL;
	*done = call_test(r->call);
	if (!*done) {
		release(t, r);
		return 0;
	}
	rc = complete(t, r);
	request_free(t, r);
	return rc;
}

static void drop(struct requests *t, struct request *r)
{
	if (r->kind == KIND_FETCH && !call_test(r->call))
		fetch_cancel_all(t->job);
	call_wait(r->call);
	if (r->kind == KIND_GATHER)
		gather_drop(t->job, &r->gather);
	else if (r->kind == KIND_FETCH)
		fetch_drop(&r->fetch);
	else
		call_end(r->call);
	request_free(t, r);
}

/* The handle of a slot, 0 of an empty one; false: there is no such slot. */
static bool handle_of(struct requests *t, uint32_t slot, uint64_t *handle)
{
	bool exists;

	pthread_mutex_lock(&t->lock);
	exists = slot < t->count;
	*handle = exists && t->slots[slot] ? t->slots[slot]->handle : 0;
	pthread_mutex_unlock(&t->lock);
	return exists;
}

void requests_complete_all(struct requests *t)
{
	uint64_t handle;

	for (uint32_t i = 0; handle_of(t, i, &handle); i++) {
		struct request *r = claim(t, handle);

		if (r)
			drop(t, r);
	}
}
