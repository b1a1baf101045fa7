/* SPDX-License-Identifier: BSD-3-Clause */
/* Starts gathers and finds their results, with and without the extension. */
#include "gather.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collective.h"
#include "conn.h"
#include "job.h"
#include "kvs.h"
#include "libpmi/extension.h"
#include "libshm/region.h"
#include "wire.h"

/* ---- with the extension ---- */

static int read_once(struct job *job, uint64_t offset, unsigned char *to,
		     size_t len)
{
	const struct pmi_field *data = NULL;
	struct call call;
	int rc;

	call_begin(&call, job->conn, EXT_CMD_READ, EXT_CMD_READ "-response");
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

static int read_over_socket(struct job *job, uint64_t len,
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

		rc = read_once(job, out->offset + at,
			       (unsigned char *)out->owned + at,
			       n < EXT_READ_MAX ? n : EXT_READ_MAX);
	}
	return rc;
}

static int reach(struct job *job, uint64_t len, struct gathered *out)
{
	if (!job->region)
		return read_over_socket(job, len, out);
	out->bytes = region_bytes(job->region, out->offset, len);
	return out->bytes ? 0 : -EPROTO;
}

static int check_result(struct job *job, const struct gather *g,
			uint64_t len, struct gathered *out)
{
	int rc;

	out->stride = g->stride;
	if (g->stride)
		return len == (uint64_t)job->size * g->stride ? 0 : -EPROTO;
	rc = image_open_trusted(&out->image, out->bytes, len);
	if (!rc && (out->image.kind != IMAGE_GATHER ||
		    out->image.count != (uint32_t)job->size))
		rc = -EPROTO;
	return rc;
}

static int finish_extended(struct job *job, struct gather *g,
			   struct gathered *out)
{
	uint64_t len = g->call.outcome.length;
	int rc;

	out->offset = g->call.outcome.offset;
	out->in_region = true;
	rc = reach(job, len, out);
	return rc ? rc : check_result(job, g, len, out);
}

/* ---- as put, fence and get ---- */

static void rank_key(char *out, size_t size, uint32_t sequence, int rank)
{
	snprintf(out, size, "pmi2x-gather-%u-%d", sequence, rank);
}

static int start_with_keys(struct job *job, const void *value, size_t len,
			   struct gather *g)
{
	char key[PMI_KEYLEN_MAX];
	int rc;

	rank_key(key, sizeof(key), g->sequence, job->rank);
	rc = kvs_put_bytes(job, key, value, len);
	return rc ? rc : job->ops->fence(job, &g->call);
}

static int finish_with_keys(struct job *job, struct gather *g,
			    struct gathered *out)
{
	char key[PMI_KEYLEN_MAX];
	int rc = 0;

	out->values = calloc(job->size, sizeof(*out->values));
	if (!out->values)
		return -ENOMEM;
	for (int r = 0; !rc && r < job->size; r++) {
		rank_key(key, sizeof(key), g->sequence, r);
		rc = kvs_get_bytes(job, key, &out->values[r]);
	}
	return rc;
}

/* ---- either ---- */

int gather_start(struct job *job, const void *value, size_t len,
		 size_t stride, struct gather *g)
{
	rank_trace_note(&job->trace, RANK_TRACE_GATHER_IN);
	g->sequence = atomic_fetch_add(&job->gathers, 1);
	g->stride = stride;
	if (job->extension)
		return collective_gather(job, value, len, stride, &g->call);
	return start_with_keys(job, value, len, g);
}

int gather_finish(struct job *job, struct gather *g, struct gathered *out)
{
	int rc = g->call.error;

	rank_trace_note(&job->trace, RANK_TRACE_GATHER_OUT);
	memset(out, 0, sizeof(*out));
	out->count = job->size;
	if (!rc && job->extension)
		rc = finish_extended(job, g, out);
	else if (!rc)
		rc = finish_with_keys(job, g, out);
	call_end(&g->call);
	if (rc)
		gathered_free(job, out);
	return rc;
}

void gather_drop(struct job *job, struct gather *g)
{
	if (job->extension && !g->call.error)
		collective_done(job, g->call.outcome.offset);
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

void gathered_free(struct job *job, struct gathered *r)
{
	if (r->in_region)
		collective_done(job, r->offset);
	for (uint32_t i = 0; r->values && i < r->count; i++)
		value_free(&r->values[i]);
	free(r->values);
	free(r->owned);
	memset(r, 0, sizeof(*r));
}
