/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests: non-blocking collectives between their start and their completion.
 *
 * A handle names a slot and the generation of its use, so a stale or made-up
 * handle is an error. One thread completes a request; a second one that tries
 * the same handle gets an error. Requests complete in any order.
 */
#pragma once

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#include "fetch.h"
#include "gather.h"

#define REQUESTS_MAX 4096 /* under way at a time */

struct pmix_view;
struct request;
struct views;
struct job;

struct requests {
	struct job *job;
	struct views *views;
	pthread_mutex_t lock;
	struct request **slots;
	size_t cap;
	uint32_t count;      /* slots there are; some may be empty */
	uint64_t generation; /* of the next request; never used twice */
};

/* The place of a gather's result when its request is completed. */
struct sink {
	void *buffer;           /* count * slot_len bytes, or NULL */
	size_t slot_len;
	int *lengths;           /* uncut lengths, or NULL */
	struct pmix_view **view; /* NULL: none */
};

/* The place of a fetched value. */
struct fetch_sink {
	void *value;
	size_t *len; /* in: room; out: the value's, also when it is more */
};

void requests_init(struct requests *r, struct job *job, struct views *views);
void requests_destroy(struct requests *r);

/* 0; -EBUSY (REQUESTS_MAX), -ENOMEM, or an error of the wire. */
int request_fence(struct requests *t, uint64_t *handle);
int request_gather(struct requests *t, const void *value, size_t len,
		   size_t stride, const struct sink *sink, uint64_t *handle);

/* As above; or the errors of fetch_start. */
int request_fetch(struct requests *t, int rank, const char *key, int timeout,
		  const struct fetch_sink *sink, uint64_t *handle);

/*
 * Wait for the end, or look whether it is there (*done). The handle is used up
 * when the request is complete, with or without success. The request's error;
 * -EINVAL: no such request.
 */
int request_wait(struct requests *t, uint64_t handle);
int request_test(struct requests *t, uint64_t handle, int *done);

/*
 * At the end of a session: wait for what nobody waited for, drop the results; fetches
 * are given up.
 */
void requests_complete_all(struct requests *t);

/* Copy a result into count slots of slot_len bytes, cut or filled with zeros. */
void gathered_copy(const struct gathered *r, void *buffer, size_t slot_len,
		   int *lengths);
