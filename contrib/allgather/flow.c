/* SPDX-License-Identifier: BSD-3-Clause */
/* The progress of one allgather at one place. */
#include "flow.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int flow_init(struct flow *f, uint32_t n, uint64_t own_total)
{
	memset(f, 0, sizeof(*f));
	f->n = n;
	f->steps = schedule_steps(n);
	f->totals = calloc(n, sizeof(*f->totals));
	if (!f->totals)
		return -ENOMEM;
	f->totals[0] = own_total;
	return 0;
}

void flow_free(struct flow *f)
{
	free(f->totals);
	f->totals = NULL;
}

/* Bytes of the range of this step that are here to be sent to that side. */
static uint64_t available(const struct flow *f, enum ring_side side,
			  const struct schedule_range *range)
{
	const struct flow_at *out = &f->out[side];
	const struct flow_at *in = &f->in[other_side(side)];
	uint64_t length = range->end - range->first;

	if (out->step == 0 || in->step >= out->step)
		return length;
	/*
	 * The bytes to send next are coming in: no step is sent whole before it is
	 * here. Its range starts where the one received does, or later.
	 */
	if (in->done <= range->first)
		return 0;
	return in->done - range->first;
}

static uint64_t smaller(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

bool flow_next(const struct flow *f, enum ring_side side, uint32_t max,
	       struct flow_chunk *out)
{
	const struct flow_at *at = &f->out[side];
	struct schedule_range range;
	uint64_t have, length;

	if (at->step == f->steps)
		return false;
	out->step = at->step;
	out->block = schedule_sends(f->n, 0, side, at->step);
	out->total = f->totals[out->block];
	if (!out->total)
		return false;
	range = schedule_bytes(f->n, side, at->step, out->total);
	length = range.end - range.first;
	have = smaller(available(f, side, &range), length);
	if (have <= at->done)
		return false;
	out->offset = range.first + at->done;
	out->len = (uint32_t)smaller(have - at->done, max);
	return out->len == max || have == length;
}

static void advance(const struct flow *f, struct flow_at *at,
		    enum ring_side towards, const struct flow_chunk *chunk)
{
	struct schedule_range range = schedule_bytes(f->n, towards, at->step,
						     chunk->total);

	at->done += chunk->len;
	if (at->done == range.end - range.first) {
		at->step++;
		at->done = 0;
	}
}

void flow_sent(struct flow *f, enum ring_side side,
	       const struct flow_chunk *chunk)
{
	advance(f, &f->out[side], side, chunk);
}

int flow_received(struct flow *f, enum ring_side side,
		  struct flow_chunk *chunk)
{
	struct flow_at *at = &f->in[side];
	struct schedule_range range;
	uint64_t *total;

	if (at->step == f->steps || chunk->step != at->step ||
	    chunk->total < FLOW_BLOCK_MIN)
		return -EPROTO;
	chunk->block = schedule_receives(f->n, 0, side, at->step);
	total = &f->totals[chunk->block];
	range = schedule_bytes(f->n, other_side(side), at->step, chunk->total);
	if ((*total && *total != chunk->total) || !chunk->len ||
	    chunk->offset != range.first + at->done ||
	    chunk->len > range.end - chunk->offset)
		return -EPROTO;
	*total = chunk->total;
	advance(f, at, other_side(side), chunk);
	return 0;
}

bool flow_all_sent(const struct flow *f)
{
	return f->out[SIDE_LEFT].step == f->steps &&
	       f->out[SIDE_RIGHT].step == f->steps;
}

bool flow_side_received(const struct flow *f, enum ring_side side)
{
	return f->in[side].step == f->steps;
}

bool flow_all_received(const struct flow *f)
{
	return flow_side_received(f, SIDE_LEFT) &&
	       flow_side_received(f, SIDE_RIGHT);
}
