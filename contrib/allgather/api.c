/* SPDX-License-Identifier: BSD-3-Clause */
/* The functions of pmi2x_allgather.h: arguments, the lock, the requests. */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "clock.h"
#include "pmi2.h"
#include "pmi_gather.h"
#include "ring.h"

/* Rings are created in the same order by all; their keys must differ. */
static atomic_uint rings;

int pmi2x_ring_create(pmi2x_ring **ring, const pmi2x_ring_pmi *pmi, char *why,
		      size_t whylen)
{
	struct ring_use use = { "pmi2x-ag", NULL, 0 };
	char text[PMI2X_RING_ERROR_MAX];
	int code;

	if (!ring || (!why && whylen))
		return PMI2_ERR_INVALID_ARG;
	*ring = NULL;
	use.sequence = atomic_fetch_add(&rings, 1);
	code = ring_create(ring, &use, pmi, text);
	if (whylen)
		snprintf(why, whylen, "%s", code ? text : "");
	return code;
}

/* ---- requests ---- */

static int refuse(struct pmi2x_ring *r, int code, const char *text)
{
	if (!r->failed)
		snprintf(r->error, sizeof(r->error), "%s", text);
	return code;
}

static int start(pmi2x_ring *r, const struct op *wanted,
		 pmi2x_ring_request *request)
{
	struct op *op, **end;

	if (r->failed)
		return PMI2_FAIL;
	op = malloc(sizeof(*op));
	if (!op)
		return refuse(r, PMI2_ERR_NOMEM, "no memory");
	*op = *wanted;
	op->id = *request = ++r->last_id;
	for (end = &r->first; *end; end = &(*end)->next)
		;
	*end = op;
	r->looked = clock_ms();
	/* Enter at once when nothing is before it: others may be waiting. */
	ring_advance(r, false);
	return PMI2_SUCCESS;
}

static struct op **find(pmi2x_ring *r, pmi2x_ring_request request)
{
	struct op **at = &r->first;

	while (*at && (*at)->id != request)
		at = &(*at)->next;
	return at;
}

static int take(struct op **at)
{
	struct op *op = *at;
	int code = op->code;

	*at = op->next;
	pmi_gather_free(op);
	free(op);
	return code;
}

int pmi2x_ring_wait(pmi2x_ring *r, pmi2x_ring_request request)
{
	struct op **at;
	int code;

	if (!r)
		return PMI2_ERR_INVALID_ARG;
	pthread_mutex_lock(&r->lock);
	at = find(r, request);
	r->looked = clock_ms();
	while (*at && (*at)->phase != OP_COMPLETE)
		ring_advance(r, true);
	code = *at ? take(at) : refuse(r, PMI2_ERR_INVALID_ARG,
				       "no such request");
	/* Other ranks may wait for the steps that follow. */
	ring_advance(r, false);
	pthread_mutex_unlock(&r->lock);
	return code;
}

int pmi2x_ring_test(pmi2x_ring *r, pmi2x_ring_request request, int *flag)
{
	struct op **at;
	int code = PMI2_SUCCESS;

	if (!r || !flag)
		return PMI2_ERR_INVALID_ARG;
	pthread_mutex_lock(&r->lock);
	at = find(r, request);
	*flag = 0;
	if (!*at) {
		code = refuse(r, PMI2_ERR_INVALID_ARG, "no such request");
	} else {
		ring_advance(r, false);
		if ((*at)->phase == OP_COMPLETE) {
			*flag = 1;
			code = take(at);
		}
	}
	pthread_mutex_unlock(&r->lock);
	return code;
}

/* ---- operations ---- */

static int check_and_start(pmi2x_ring *r, const struct op *op,
			   pmi2x_ring_request *request)
{
	int code;

	if (!r || !request || (!op->block && op->len) ||
	    (!op->buffer && op->stride))
		return PMI2_ERR_INVALID_ARG;
	pthread_mutex_lock(&r->lock);
	if (op->len > PMI2X_RING_BLOCK_MAX)
		code = refuse(r, PMI2_ERR_INVALID_VAL_LENGTH,
			      "the block is too long");
	else
		code = start(r, op, request);
	pthread_mutex_unlock(&r->lock);
	return code;
}

int pmi2x_ring_iallgather(pmi2x_ring *r, const void *block, size_t len,
			  void *buffer, pmi2x_ring_request *request)
{
	struct op op = { .block = block, .len = len, .buffer = buffer,
			 .stride = len };

	return check_and_start(r, &op, request);
}

int pmi2x_ring_iallgather_v(pmi2x_ring *r, const void *block, size_t len,
			    void *buffer, size_t stride, size_t lengths[],
			    pmi2x_ring_request *request)
{
	struct op op = { .block = block, .len = len, .buffer = buffer,
			 .stride = stride, .lengths = lengths };

	if (!lengths)
		return PMI2_ERR_INVALID_ARG;
	return check_and_start(r, &op, request);
}

int pmi2x_ring_allgather(pmi2x_ring *r, const void *block, size_t len,
			 void *buffer)
{
	pmi2x_ring_request request;
	int code = pmi2x_ring_iallgather(r, block, len, buffer, &request);

	return code ? code : pmi2x_ring_wait(r, request);
}

int pmi2x_ring_allgather_v(pmi2x_ring *r, const void *block, size_t len,
			   void *buffer, size_t stride, size_t lengths[])
{
	pmi2x_ring_request request;
	int code = pmi2x_ring_iallgather_v(r, block, len, buffer, stride,
					   lengths, &request);

	return code ? code : pmi2x_ring_wait(r, request);
}

/* ---- what there is ---- */

const char *pmi2x_ring_error(const pmi2x_ring *r)
{
	return r ? r->error : "";
}

const char *pmi2x_ring_transport(const pmi2x_ring *r)
{
	return r ? r->name : "";
}

int pmi2x_ring_get_counters(pmi2x_ring *r, pmi2x_ring_counters *out)
{
	if (!r || !out)
		return PMI2_ERR_INVALID_ARG;
	pthread_mutex_lock(&r->lock);
	*out = r->counters;
	pthread_mutex_unlock(&r->lock);
	return PMI2_SUCCESS;
}
