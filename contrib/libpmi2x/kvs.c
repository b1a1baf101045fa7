/* SPDX-License-Identifier: BSD-3-Clause */
/* Put, fence and get, above whichever wire the session has. */
#include "kvs.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libshm/records.h" /* RECORD_VALUE_MAX */
#include "pmi2x.h"
#include "session.h"
#include "text.h"

void kvs_init(struct kvs *k)
{
	pthread_mutex_init(&k->lock, NULL);
	buf_init(&k->batch, KVS_BATCH_MAX + 2 * RECORD_VALUE_MAX);
}

void kvs_destroy(struct kvs *k)
{
	buf_free(&k->batch);
	pthread_mutex_destroy(&k->lock);
}

int kvs_batch_lock(struct kvs *k, struct buf **batch)
{
	pthread_mutex_lock(&k->lock);
	*batch = &k->batch;
	return k->lost;
}

void kvs_batch_unlock(struct kvs *k)
{
	pthread_mutex_unlock(&k->lock);
}

void kvs_batch_lost(struct kvs *k, int error)
{
	pthread_mutex_lock(&k->lock);
	k->lost = error;
	pthread_mutex_unlock(&k->lock);
}

static int check_key(const char *key, size_t limit)
{
	if (!*key)
		return -EINVAL;
	return strlen(key) < limit ? 0 : -ENAMETOOLONG;
}

int kvs_put(struct session *s, const char *key, const char *value)
{
	int rc = check_key(key, PMI_KEYLEN_MAX);

	stamp(&s->stamps, EXT_STAMP_PUT);
	if (!rc && strlen(value) >= PMI_VALLEN_MAX)
		rc = -EMSGSIZE;
	if (rc)
		return rc;
	return s->ops->put(s, key, strlen(key), value, strlen(value));
}

/* Can this session's server keep any bytes under one key? */
static bool carries_bytes(const struct session *s)
{
	return s->extension || !s->conn;
}

/* Piece 0 goes under the key itself, piece i under "<key>.<i>". */
static int piece_key(char *out, size_t size, const char *key, size_t i)
{
	int n = i ? snprintf(out, size, "%s.%zu", key, i)
		  : snprintf(out, size, "%s", key);

	return n < 0 || (size_t)n >= size ? -ENAMETOOLONG : 0;
}

static int put_pieces(struct session *s, const char *key,
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
			rc = s->ops->put(s, name, strlen(name),
					 text->data + at, n);
		at += n;
	}
	return rc;
}

int kvs_put_bytes(struct session *s, const char *key, const void *value,
		  size_t len)
{
	struct value text = { NULL, 0 };
	int rc = check_key(key, PMI2X_MAX_KEYLEN);

	stamp(&s->stamps, EXT_STAMP_PUT);
	if (!rc && len > PMI2X_MAX_VALLEN)
		rc = -EMSGSIZE;
	if (rc)
		return rc;
	if (carries_bytes(s) && !text_is_marked(value, len))
		return s->ops->put(s, key, strlen(key), value, len);
	rc = text_encode(value, len, &text);
	if (!rc && carries_bytes(s))
		rc = s->ops->put(s, key, strlen(key), text.data, text.len);
	else if (!rc)
		rc = put_pieces(s, key, &text);
	value_free(&text);
	return rc;
}

int kvs_fence(struct session *s)
{
	struct call call;
	int rc;

	stamp(&s->stamps, EXT_STAMP_FENCE_IN);
	rc = s->ops->fence(s, &call);
	if (rc)
		return rc;
	rc = call_wait(&call);
	call_end(&call);
	stamp(&s->stamps, EXT_STAMP_FENCE_OUT);
	return rc;
}

int kvs_find(const struct session *s, const char *key, const char **value,
	     size_t *len)
{
	if (!s->region)
		return -ENXIO;
	return region_find(s->region, key, strlen(key), value, len);
}

static bool is_own_job(struct session *s, const char *jobid)
{
	const char *own;

	return !jobid || (!session_jobid(s, &own) && !strcmp(jobid, own));
}

int kvs_get(struct session *s, const char *jobid, int source, const char *key,
	    struct value *out)
{
	const char *value;
	size_t len;
	int found = -ENXIO;

	if (is_own_job(s, jobid)) {
		jobid = NULL;
		found = kvs_find(s, key, &value, &len);
	}
	if (found > 0)
		return value_set(out, value, len);
	if (found == 0)
		return -ENOENT;
	return s->ops->get(s, jobid, source, key, out);
}

static int append_piece(struct session *s, const char *key, size_t i,
			struct value *text, size_t total)
{
	struct value piece = { NULL, 0 };
	char name[PMI_KEYLEN_MAX];
	int rc = piece_key(name, sizeof(name), key, i);

	if (!rc)
		rc = kvs_get(s, NULL, -1, name, &piece);
	if (!rc && (piece.len == 0 || piece.len > total - text->len))
		rc = -EPROTO;
	if (!rc) {
		memcpy(text->data + text->len, piece.data, piece.len);
		text->len += piece.len;
	}
	value_free(&piece);
	return rc;
}

static int get_pieces(struct session *s, const char *key, struct value *text)
{
	long total = text_length(text->data, text->len);
	char *grown;
	int rc = 0;

	if (total < (long)text->len)
		return -EPROTO;
	grown = realloc(text->data, total + 1);
	if (!grown)
		return -ENOMEM;
	text->data = grown;
	for (size_t i = 1; !rc && text->len < (size_t)total; i++)
		rc = append_piece(s, key, i, text, total);
	text->data[text->len] = '\0';
	return rc;
}

int kvs_get_bytes(struct session *s, const char *key, struct value *out)
{
	int rc = kvs_get(s, NULL, -1, key, out);

	if (!rc)
		rc = get_pieces(s, key, out);
	if (!rc)
		rc = text_decode(out);
	if (rc)
		value_free(out);
	return rc;
}
