/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The key-value space of the job as a process uses it: put, fence, get, with
 * any bytes as values.
 */
#ifndef PMI2X_KVS_H
#define PMI2X_KVS_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#include "libutil/buf.h"
#include "wire.h"

/*
 * A batch of records is sent before it passes this, so that it fits into one
 * message even if every byte must be doubled there.
 */
#define KVS_BATCH_MAX ((size_t)400 << 10)

struct kvs {
	pthread_mutex_t lock;
	struct buf batch; /* records put since the last fence (extension) */
	int lost;         /* why records that were put have not arrived, or 0 */
};

void kvs_init(struct kvs *k);
void kvs_destroy(struct kvs *k);

/*
 * The batch, until kvs_batch_unlock. What is in it has been acknowledged: it is
 * emptied when a request with all of it is ready, and nothing but the connection
 * can fail. 0, or what kvs_batch_lost has said: then no fence may be entered.
 */
int kvs_batch_lock(struct kvs *k, struct buf **batch);
void kvs_batch_unlock(struct kvs *k);
/* The server did not take records that had been taken out. */
void kvs_batch_lost(struct kvs *k, int error);

/*
 * Put text (PMI's limits) or bytes (pmi2x.h's). 0; -ENAMETOOLONG (key),
 * -EINVAL (empty key), -EMSGSIZE (value); or an error of the wire.
 */
int kvs_put(struct session *s, const char *key, const char *value);
int kvs_put_bytes(struct session *s, const char *key, const void *value,
		  size_t len);

/* Enter the next fence and wait for its end. */
int kvs_fence(struct session *s);

/*
 * Get what was put as text or as bytes; `jobid` NULL: of this job. 0, -ENOENT
 * or an error of the wire; the caller frees the value.
 */
int kvs_get(struct session *s, const char *jobid, int source, const char *key,
	    struct value *out);
int kvs_get_bytes(struct session *s, const char *key, struct value *out);

/*
 * Look in the mapped region only: no lock, no system call. 1 and where the
 * value is (until the session ends), 0: there is no such key; -ENXIO: there is
 * no region, ask the server.
 */
int kvs_find(const struct session *s, const char *key, const char **value,
	     size_t *len);

#endif
