/* SPDX-License-Identifier: BSD-3-Clause */
/* The ring by the server's own command, or with put, fence and get. */
#include "ring.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "session.h"

static void rank_key(char *out, size_t size, unsigned int sequence, int rank)
{
	snprintf(out, size, "pmi2x-ring-%u-%d", sequence, rank);
}

static int get_from(struct session *s, unsigned int sequence, int rank,
		    struct value *out)
{
	char key[PMI_KEYLEN_MAX];

	rank_key(key, sizeof(key), sequence, rank);
	return kvs_get_bytes(s, key, out);
}

/* The ring of the fallback has the order of the ranks. */
static int ring_with_keys(struct session *s, const char *value,
			  struct ring_place *out)
{
	unsigned int sequence = atomic_fetch_add(&s->ring_sequence, 1);
	char key[PMI_KEYLEN_MAX];
	int rc;

	out->rank = s->rank;
	out->size = s->size;
	rank_key(key, sizeof(key), sequence, s->rank);
	rc = kvs_put_bytes(s, key, value, strlen(value));
	if (!rc)
		rc = kvs_fence(s);
	if (!rc)
		rc = get_from(s, sequence, (s->rank + s->size - 1) % s->size,
			      &out->left);
	if (!rc)
		rc = get_from(s, sequence, (s->rank + 1) % s->size,
			      &out->right);
	return rc;
}

int ring_exchange(struct session *s, const char *value, struct ring_place *out)
{
	int rc = -EMSGSIZE;

	memset(out, 0, sizeof(*out));
	if (strlen(value) < PMI_VALLEN_MAX)
		rc = s->ops->ring(s, value, out);
	if (rc == -ENOTSUP)
		rc = ring_with_keys(s, value, out);
	if (rc) {
		value_free(&out->left);
		value_free(&out->right);
	}
	return rc;
}
