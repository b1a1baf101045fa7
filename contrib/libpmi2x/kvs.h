/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The key-value space of the job as a process uses it: put, fence, get, with
 * any bytes as values.
 */
#pragma once

#include <stddef.h>

#include "value.h"

struct job;

/*
 * Put text (PMI's limits) or bytes (pmi2x.h's). 0; -ENAMETOOLONG (key),
 * -EINVAL (empty key), -EMSGSIZE (value); or an error of the wire.
 */
int kvs_put(struct job *job, const char *key, const char *value);
int kvs_put_bytes(struct job *job, const char *key, const void *value,
		  size_t len);

/* Enter the next fence and wait for its end. */
int kvs_fence(struct job *job);

/*
 * Get what was put as text or as bytes; `jobid` NULL: of this job. 0, -ENOENT
 * or an error of the wire; the caller frees the value.
 */
int kvs_get(struct job *job, const char *jobid, int source, const char *key,
	    struct value *out);
int kvs_get_bytes(struct job *job, const char *key, struct value *out);

/* Reads what `source` (-1: anybody) has put. 0 or an error; out is freed by the caller. */
typedef int kvs_reader(struct job *job, int source, const char *key,
		       struct value *out);
/*
 * Make the value that was put out of the bytes that its key has: where they are its
 * first piece, with the others. 0 or an error; then it is freed.
 */
int kvs_join(struct job *job, kvs_reader *read, int source, const char *key,
	     struct value *first);

/*
 * Look in the mapped region only: no lock, no system call. 1 and where the
 * value is (until the session ends), 0: there is no such key; -ENXIO: there is
 * no region, or it lacks what a group's barrier has brought; ask the server.
 */
int kvs_find(const struct job *job, const char *key, const char **value,
	     size_t *len);
