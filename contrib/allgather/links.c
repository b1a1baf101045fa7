/* SPDX-License-Identifier: BSD-3-Clause */
/* Exchanges messages between the leader of an element and its neighbours. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "frame.h"
#include "ring.h"

const char *ring_side_name(enum ring_side side)
{
	return side == SIDE_LEFT ? "left" : "right";
}

/* ---- failure ---- */

/* A leader that has failed sends nothing but this. */
static void send_abort(struct pmi2x_ring *r, enum ring_side side)
{
	struct frame f = { .kind = FRAME_ABORT };
	unsigned char header[FRAME_HEADER_LEN];
	struct iovec iov[2] = {
		{ header, sizeof(header) },
		{ r->error, strlen(r->error) },
	};

	frame_pack(&f, header);
	r->ops->send(r->transport, side, iov, 2, true);
}

void ring_fail(struct pmi2x_ring *r, const char *fmt, ...)
{
	va_list args;

	if (r->failed)
		return;
	r->failed = true;
	va_start(args, fmt);
	vsnprintf(r->error, sizeof(r->error), fmt, args);
	va_end(args);
	if (r->group)
		group_fail(r->group, r->error);
	for (int side = 0; r->transport && side < SIDES; side++)
		send_abort(r, side);
}

void ring_blame(struct pmi2x_ring *r, enum ring_side side, const char *reason)
{
	const struct neighbour *n = &r->neighbours[side];

	ring_fail(r, "rank %d on node %s: %s neighbour rank %d on node %s: %s",
		  r->rank, r->node, ring_side_name(side), n->rank, n->node,
		  reason);
}

void ring_on_broken(void *arg, enum ring_side side, const char *reason)
{
	struct pmi2x_ring *r = arg;
	struct neighbour *n = &r->neighbours[side];

	n->broken = true;
	snprintf(n->reason, sizeof(n->reason), "%s", reason);
}

/* ---- messages ---- */

/* No bundle of a job is longer. */
static uint64_t bundle_max(const struct pmi2x_ring *r)
{
	return (uint64_t)(r->size + 1) * (PMI2X_RING_BLOCK_MAX + 8);
}

static int take_chunk(struct pmi2x_ring *r, enum ring_side side,
		      struct frame *f)
{
	struct flow_chunk *c = &f->chunk;
	char *bundle;

	if (c->total > bundle_max(r) || flow_received(&r->flow, side, c)) {
		ring_blame(r, side, "sent a piece out of order");
		return -EPROTO;
	}
	bundle = store_bundle(&r->store, c->block, c->total);
	if (!bundle) {
		ring_fail(r, "rank %d on node %s: no memory for %llu bytes",
			  r->rank, r->node, (unsigned long long)c->total);
		return -ENOMEM;
	}
	memcpy(bundle + c->offset, f->bytes, c->len);
	r->counters.messages_received++;
	r->counters.bytes_received += c->len;
	return 0;
}

/*
 * A neighbour may be one operation ahead: then its message waits until this one
 * is over here. It may also have entered before this node has.
 */
static int on_chunk(struct pmi2x_ring *r, enum ring_side side, struct frame *f)
{
	uint32_t ahead = f->operation - r->generation;

	if (r->moving && ahead == 0)
		return take_chunk(r, side, f);
	if (ahead == 0 || (r->moving && ahead == 1))
		return -EAGAIN;
	ring_blame(r, side, "sent a piece of another operation");
	return -EPROTO;
}

int ring_on_message(void *arg, enum ring_side side, const void *data,
		    size_t len)
{
	struct pmi2x_ring *r = arg;
	struct frame f;

	if (r->failed)
		return 0;
	if (frame_parse(&f, data, len)) {
		ring_blame(r, side, "uses another protocol");
		return -EPROTO;
	}
	if (f.kind == FRAME_CHUNK)
		return on_chunk(r, side, &f);
	ring_fail(r, "%.*s", (int)f.len, (const char *)f.bytes);
	return 0;
}

static int send_chunk(struct pmi2x_ring *r, enum ring_side side,
		      const struct flow_chunk *c)
{
	struct frame f = { .kind = FRAME_CHUNK, .operation = r->generation,
			   .chunk = *c };
	unsigned char header[FRAME_HEADER_LEN];
	struct iovec iov[2] = { { header, sizeof(header) }, { NULL, c->len } };

	frame_pack(&f, header);
	iov[1].iov_base = store_bundle(&r->store, c->block, c->total) +
			  c->offset;
	return r->ops->send(r->transport, side, iov, 2, false);
}

static int send_side(struct pmi2x_ring *r, enum ring_side side)
{
	struct flow_chunk c;
	int count = 0;

	while (!r->failed && flow_next(&r->flow, side, FRAME_CHUNK_MAX, &c)) {
		/* A broken link is told by its upcall. */
		if (send_chunk(r, side, &c))
			break;
		flow_sent(&r->flow, side, &c);
		r->counters.messages_sent++;
		r->counters.bytes_sent += c.len;
		count++;
	}
	return count;
}

/* The operation at work cannot complete without that side. */
static bool needs(const struct pmi2x_ring *r, enum ring_side side)
{
	return !r->moving || !flow_side_received(&r->flow, side) ||
	       r->flow.out[side].step < r->flow.steps;
}

int ring_pump(struct pmi2x_ring *r)
{
	int count;

	if (!r->transport)
		return 0;
	count = r->ops->progress(r->transport);
	for (int side = 0; r->moving && side < SIDES; side++)
		count += send_side(r, side);
	for (int side = 0; side < SIDES; side++)
		if (r->neighbours[side].broken && needs(r, side))
			ring_blame(r, side, r->neighbours[side].reason);
	return count;
}

bool ring_moved(const struct pmi2x_ring *r)
{
	return flow_all_received(&r->flow) && flow_all_sent(&r->flow) &&
	       (!r->transport || r->ops->flushed(r->transport));
}
