/* SPDX-License-Identifier: BSD-3-Clause */
/* The ring by the server's own command, or with put, fence and get. */
#include "ring.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "job.h"
#include "kvs.h"
#include "wire.h"

static void rank_key(char *out, size_t size, unsigned int sequence, int rank)
{
	snprintf(out, size, "pmi2x-ring-%u-%d", sequence, rank);
}

static int get_from(struct job *job, unsigned int sequence, int rank,
		    struct value *out)
{
	char key[PMI_KEYLEN_MAX];

	rank_key(key, sizeof(key), sequence, rank);
	return kvs_get_bytes(job, key, out);
}

/* The ring of the fallback has the order of the ranks. */
static int ring_with_keys(struct job *job, const char *value,
			  struct ring_place *out)
{
	unsigned int sequence = atomic_fetch_add(&job->rings, 1);
	char key[PMI_KEYLEN_MAX];
	int rc;

	out->rank = job->rank;
	out->size = job->size;
	rank_key(key, sizeof(key), sequence, job->rank);
	rc = kvs_put_bytes(job, key, value, strlen(value));
	if (!rc)
		rc = kvs_fence(job);
	if (!rc)
		rc = get_from(job, sequence, (job->rank + job->size - 1) % job->size,
			      &out->left);
	if (!rc)
		rc = get_from(job, sequence, (job->rank + 1) % job->size,
			      &out->right);
	return rc;
}

int ring_exchange(struct job *job, const char *value, struct ring_place *out)
{
	int rc = -EMSGSIZE;

	memset(out, 0, sizeof(*out));
	if (strlen(value) < PMI_VALLEN_MAX)
		rc = job->ops->ring(job, value, out);
	if (rc == -ENOTSUP)
		rc = ring_with_keys(job, value, out);
	if (rc) {
		value_free(&out->left);
		value_free(&out->right);
	}
	return rc;
}
