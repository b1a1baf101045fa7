/* SPDX-License-Identifier: BSD-3-Clause */
/* Put, fence and get, above whichever wire the job has. */
#include "kvs.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libshm/region.h"
#include "pmi2x.h"
#include "job.h"
#include "text.h"

static int check_key(const char *key, size_t limit)
{
	if (!*key)
		return -EINVAL;
	return strlen(key) < limit ? 0 : -ENAMETOOLONG;
}

int kvs_put(struct job *job, const char *key, const char *value)
{
	int rc = check_key(key, PMI_KEYLEN_MAX);

	rank_trace_note(&job->trace, RANK_TRACE_PUT);
	if (!rc && strlen(value) >= PMI_VALLEN_MAX)
		rc = -EMSGSIZE;
	if (rc)
		return rc;
	return job->ops->put(job, key, strlen(key), value, strlen(value));
}

/* Can this job's server keep any bytes under one key? */
static bool carries_bytes(const struct job *job)
{
	return job->extension || !job->conn;
}

/* Piece 0 goes under the key itself, piece i under "<key>.<i>". */
static int piece_key(char *out, size_t size, const char *key, size_t i)
{
	int n = i ? snprintf(out, size, "%s.%zu", key, i)
		  : snprintf(out, size, "%s", key);

	return n < 0 || (size_t)n >= size ? -ENAMETOOLONG : 0;
}

static int put_pieces(struct job *job, const char *key,
		      const struct value *text)
{
	char name[PMI_KEYLEN_MAX];
	size_t at = 0;
	int rc = 0;

	for (size_t i = 0; !rc && (i == 0 || at < text->len); i++) {
		size_t n = text->len - at;

		if (n > TEXT_PIECE)
			n = TEXT_PIECE;
		rc = piece_key(name, sizeof(name), key, i);
		if (!rc)
			rc = job->ops->put(job, name, strlen(name),
					 text->data + at, n);
		at += n;
	}
	return rc;
}

int kvs_put_bytes(struct job *job, const char *key, const void *value,
		  size_t len)
{
	struct value text = { NULL, 0 };
	int rc = check_key(key, PMI2X_MAX_KEYLEN);

	rank_trace_note(&job->trace, RANK_TRACE_PUT);
	if (!rc && len > PMI2X_MAX_VALLEN)
		rc = -EMSGSIZE;
	if (rc)
		return rc;
	if (carries_bytes(job) && !text_is_marked(value, len))
		return job->ops->put(job, key, strlen(key), value, len);
	rc = text_encode(value, len, &text);
	if (!rc && carries_bytes(job))
		rc = job->ops->put(job, key, strlen(key), text.data, text.len);
	else if (!rc)
		rc = put_pieces(job, key, &text);
	value_free(&text);
	return rc;
}

int kvs_fence(struct job *job)
{
	unsigned int groups = atomic_load(&job->groups_done);
	struct call call;
	int rc;

	rank_trace_note(&job->trace, RANK_TRACE_FENCE_IN);
	rc = job->ops->fence(job, &call);
	if (rc)
		return rc;
	rc = wire_wait(&call);
	rank_trace_note(&job->trace, RANK_TRACE_FENCE_OUT);
	if (!rc)
		atomic_store(&job->groups_fenced, groups);
	return rc;
}

/*
 * After a barrier of a group the server may know newer values than the region. A
 * fence brings them there, but for what a group's member puts while it is in that
 * fence with another thread: what is not in the region may be elsewhere ever after.
 */
int kvs_find(const struct job *job, const char *key, const char **value,
	     size_t *len)
{
	unsigned int groups = atomic_load(&job->groups_done);
	int found;

	if (!job->region || groups != atomic_load(&job->groups_fenced))
		return -ENXIO;
	found = region_find(job->region, key, strlen(key), value, len);
	return found == 0 && groups ? -ENXIO : found;
}

static bool is_own_job(struct job *job, const char *jobid)
{
	const char *own;

	return !jobid || (!wire_job_name(job, &own) && !strcmp(jobid, own));
}

int kvs_get(struct job *job, const char *jobid, int source, const char *key,
	    struct value *out)
{
	const char *value;
	size_t len;
	int found = -ENXIO;

	if (is_own_job(job, jobid)) {
		jobid = NULL;
		found = kvs_find(job, key, &value, &len);
	}
	if (found > 0)
		return value_set(out, value, len);
	if (found == 0)
		return -ENOENT;
	return job->ops->get(job, jobid, source, key, out);
}

static int get_piece(struct job *job, int source, const char *key,
		     struct value *out)
{
	return kvs_get(job, NULL, source, key, out);
}

static int append_piece(struct job *job, kvs_reader *read, int source,
			const char *key, struct value *text, size_t total)
{
	struct value piece = { NULL, 0 };
	int rc = read(job, source, key, &piece);

	if (!rc && (piece.len == 0 || piece.len > total - text->len))
		rc = -EPROTO;
	if (!rc) {
		memcpy(text->data + text->len, piece.data, piece.len);
		text->len += piece.len;
	}
	value_free(&piece);
	return rc;
}

static int join_pieces(struct job *job, kvs_reader *read, int source,
		       const char *key, struct value *text)
{
	long total = text_length(text->data, text->len);
	char name[PMI_KEYLEN_MAX];
	char *grown;
	int rc = 0;

	if (total < (long)text->len)
		return -EPROTO;
	grown = realloc(text->data, total + 1);
	if (!grown)
		return -ENOMEM;
	text->data = grown;
	for (size_t i = 1; !rc && text->len < (size_t)total; i++) {
		rc = piece_key(name, sizeof(name), key, i);
		if (!rc)
			rc = append_piece(job, read, source, name, text, total);
	}
	text->data[text->len] = '\0';
	return rc;
}

int kvs_join(struct job *job, kvs_reader *read, int source, const char *key,
	     struct value *first)
{
	int rc = join_pieces(job, read, source, key, first);

	if (!rc)
		rc = text_decode(first);
	if (rc)
		value_free(first);
	return rc;
}

int kvs_get_bytes(struct job *job, const char *key, struct value *out)
{
	int rc = kvs_get(job, NULL, -1, key, out);

	return rc ? rc : kvs_join(job, get_piece, -1, key, out);
}
