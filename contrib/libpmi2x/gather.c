/* SPDX-License-Identifier: BSD-3-Clause */
/* Starts gathers and finds their results, with and without the extension. */
#include "gather.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libpmi/extension.h"
#include "session.h"

#define DONE_IN_SLOT 32 /* of them go into a slot with a gather */
#define DONE_MAX 4096 /* offsets remembered; more are not given back */

void gather_init(struct gather_state *g)
{
	memset(g, 0, sizeof(*g));
	pthread_mutex_init(&g->lock, NULL);
}

void gather_destroy(struct gather_state *g)
{
	free(g->done);
	pthread_mutex_destroy(&g->lock);
}

/* ---- space that is given back with the next gather ---- */

static void remember_done(struct gather_state *g, uint64_t offset)
{
	pthread_mutex_lock(&g->lock);
	if (g->done_count == g->done_cap && g->done_cap < DONE_MAX) {
		size_t cap = g->done_cap ? 2 * g->done_cap : 8;
		uint64_t *grown = realloc(g->done, cap * sizeof(*grown));

		if (grown) {
			g->done = grown;
			g->done_cap = cap;
		}
	}
	if (g->done_count < g->done_cap)
		g->done[g->done_count++] = offset;
	pthread_mutex_unlock(&g->lock);
}

/* The list as text, which the caller frees; NULL when it is empty. */
static char *take_done(struct gather_state *g)
{
	struct buf text;
	const char *done = NULL;

	buf_init(&text, DONE_MAX * 24);
	pthread_mutex_lock(&g->lock);
	for (size_t i = 0; i < g->done_count; i++)
		buf_printf(&text, "%s%llu", i ? "," : "",
			   (unsigned long long)g->done[i]);
	if (text.len)
		done = buf_cstr(&text);
	if (done)
		g->done_count = 0;
	pthread_mutex_unlock(&g->lock);
	if (!done)
		buf_free(&text);
	return text.data;
}

/* ---- with the extension ---- */

static int post_gather(struct session *s, const void *value, size_t len,
		       struct gather *g)
{
	char *done = take_done(&s->gather);
	int rc;

	call_begin(&g->call, s->conn, EXT_CMD_ALLGATHER,
		   EXT_CMD_ALLGATHER "-response");
	pmi_write_bytes(&g->call.writer, EXT_KEY_VALUE, value, len);
	pmi_write_int(&g->call.writer, EXT_KEY_STRIDE, g->stride);
	if (done)
		pmi_write_str(&g->call.writer, EXT_KEY_DONE, done);
	free(done);
	rc = call_post(&g->call);
	if (rc)
		call_end(&g->call);
	return rc;
}

/* As many as `max` of the list; the rest waits for the next gather. */
static size_t take_done_offsets(struct gather_state *g, uint64_t *to,
				size_t max)
{
	size_t n;

	pthread_mutex_lock(&g->lock);
	n = g->done_count < max ? g->done_count : max;
	g->done_count -= n;
	if (n)
		memcpy(to, g->done + g->done_count, n * sizeof(*to));
	pthread_mutex_unlock(&g->lock);
	return n;
}

static int start_extended(struct session *s, const void *value, size_t len,
			  struct gather *g)
{
	uint64_t done[DONE_IN_SLOT];
	int rc = -ENOSPC;

	if (!s->slots)
		return post_gather(s, value, len, g);
	slots_client_lock(s->slots);
	if (slots_client_fits(s->slots, len + sizeof(done)))
		rc = slots_client_enter(s->slots, &(struct slot_request){
			.kind = SLOT_GATHER,
			.response = EXT_CMD_ALLGATHER "-response",
			.data = value,
			.len = len,
			.stride = g->stride,
			.done = done,
			.ndone = take_done_offsets(&s->gather, done,
						   DONE_IN_SLOT),
		}, &g->call);
	if (rc == -ENOSPC) {
		rc = post_gather(s, value, len, g);
		slots_client_posted(s->slots, rc);
	}
	slots_client_unlock(s->slots);
	return rc;
}

/* Where the result of a gather that has ended lies. */
static int result_place(const struct gather *g, uint64_t *offset, uint64_t *len)
{
	const struct call *call = &g->call;
	int rc;

	if (call->slots) {
		*offset = call->offset;
		*len = call->length;
		return 0;
	}
	rc = wire_u64(call, EXT_KEY_OFFSET, offset);
	return rc ? rc : wire_u64(call, EXT_KEY_LENGTH, len);
}

static int read_once(struct session *s, uint64_t offset, unsigned char *to,
		     size_t len)
{
	const struct pmi_field *data = NULL;
	struct call call;
	int rc;

	call_begin(&call, s->conn, EXT_CMD_READ, EXT_CMD_READ "-response");
	pmi_write_int(&call.writer, EXT_KEY_OFFSET, offset);
	pmi_write_int(&call.writer, EXT_KEY_LENGTH, len);
	rc = call_run(&call);
	if (!rc)
		data = pmi_message_field(&call.reply, EXT_KEY_DATA);
	if (!rc && (!data || data->value_len != len))
		rc = -EPROTO;
	if (!rc)
		memcpy(to, data->value, len);
	call_end(&call);
	return rc;
}

static int read_over_socket(struct session *s, uint64_t len,
			    struct gathered *out)
{
	int rc = 0;

	if (len > REGION_SIZE_DEFAULT)
		return -EPROTO;
	out->owned = malloc(len ? len : 1);
	if (!out->owned)
		return -ENOMEM;
	out->bytes = out->owned;
	for (uint64_t at = 0; !rc && at < len; at += EXT_READ_MAX) {
		uint64_t n = len - at;

		rc = read_once(s, out->offset + at,
			       (unsigned char *)out->owned + at,
			       n < EXT_READ_MAX ? n : EXT_READ_MAX);
	}
	return rc;
}

static int reach(struct session *s, uint64_t len, struct gathered *out)
{
	if (!s->region)
		return read_over_socket(s, len, out);
	out->bytes = region_bytes(s->region, out->offset, len);
	return out->bytes ? 0 : -EPROTO;
}

static int check_result(struct session *s, const struct gather *g,
			uint64_t len, struct gathered *out)
{
	int rc;

	out->stride = g->stride;
	if (g->stride)
		return len == (uint64_t)s->size * g->stride ? 0 : -EPROTO;
	rc = image_open_trusted(&out->image, out->bytes, len);
	if (!rc && (out->image.kind != IMAGE_GATHER ||
		    out->image.count != (uint32_t)s->size))
		rc = -EPROTO;
	return rc;
}

static int finish_extended(struct session *s, struct gather *g,
			   struct gathered *out)
{
	uint64_t len;
	int rc = result_place(g, &out->offset, &len);

	if (rc)
		return rc;
	out->in_region = true;
	rc = reach(s, len, out);
	return rc ? rc : check_result(s, g, len, out);
}

/* ---- as put, fence and get ---- */

static void rank_key(char *out, size_t size, uint32_t sequence, int rank)
{
	snprintf(out, size, "pmi2x-gather-%u-%d", sequence, rank);
}

static int start_with_keys(struct session *s, const void *value, size_t len,
			   struct gather *g)
{
	char key[PMI_KEYLEN_MAX];
	int rc;

	rank_key(key, sizeof(key), g->sequence, s->rank);
	rc = kvs_put_bytes(s, key, value, len);
	return rc ? rc : s->ops->fence(s, &g->call);
}

static int finish_with_keys(struct session *s, struct gather *g,
			    struct gathered *out)
{
	char key[PMI_KEYLEN_MAX];
	int rc = 0;

	out->values = calloc(s->size, sizeof(*out->values));
	if (!out->values)
		return -ENOMEM;
	for (int r = 0; !rc && r < s->size; r++) {
		rank_key(key, sizeof(key), g->sequence, r);
		rc = kvs_get_bytes(s, key, &out->values[r]);
	}
	return rc;
}

/* ---- either ---- */

static uint32_t next_sequence(struct gather_state *g)
{
	uint32_t n;

	pthread_mutex_lock(&g->lock);
	n = g->sequence++;
	pthread_mutex_unlock(&g->lock);
	return n;
}

int gather_start(struct session *s, const void *value, size_t len,
		 size_t stride, struct gather *g)
{
	stamp(&s->stamps, EXT_STAMP_GATHER_IN);
	g->sequence = next_sequence(&s->gather);
	g->stride = stride;
	if (s->extension)
		return start_extended(s, value, len, g);
	return start_with_keys(s, value, len, g);
}

int gather_finish(struct session *s, struct gather *g, struct gathered *out)
{
	int rc = g->call.error;

	stamp(&s->stamps, EXT_STAMP_GATHER_OUT);
	memset(out, 0, sizeof(*out));
	out->count = s->size;
	if (!rc && s->extension)
		rc = finish_extended(s, g, out);
	else if (!rc)
		rc = finish_with_keys(s, g, out);
	call_end(&g->call);
	if (rc)
		gathered_free(s, out);
	return rc;
}

void gather_drop(struct session *s, struct gather *g)
{
	uint64_t offset, len;

	if (s->extension && !g->call.error && !result_place(g, &offset, &len))
		remember_done(&s->gather, offset);
	call_end(&g->call);
}

const unsigned char *gathered_even(const struct gathered *r, size_t *len)
{
	if (r->values)
		return NULL;
	if (!r->stride)
		return image_gather_even(&r->image, len);
	*len = r->stride;
	return r->bytes;
}

const void *gathered_value(const struct gathered *r, uint32_t rank,
			   size_t *len)
{
	if (r->values) {
		*len = r->values[rank].len;
		return r->values[rank].data;
	}
	if (!r->stride)
		return image_gather_value(&r->image, rank, len);
	*len = r->stride;
	return r->bytes + (size_t)rank * r->stride;
}

void gathered_free(struct session *s, struct gathered *r)
{
	if (r->in_region)
		remember_done(&s->gather, r->offset);
	for (uint32_t i = 0; r->values && i < r->count; i++)
		value_free(&r->values[i]);
	free(r->values);
	free(r->owned);
	memset(r, 0, sizeof(*r));
}
