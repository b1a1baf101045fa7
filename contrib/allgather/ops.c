/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The operations of a ring, one after the other: give the block to the node,
 * move the nodes' bundles (leader), copy the result into rank order.
 *
 *   queued -> entered -> complete                 member
 *   queued -> entered -> moving -> complete       leader
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bundle.h"
#include "clock.h"
#include "pmi2.h"
#include "pmi_gather.h"
#include "ring.h"

#define WAIT_MS 200       /* in the transport, then a look around */
#define LOOK_MAX_MS 1000  /* of a longer pause nobody here was waiting */
#define APART_MS 2000     /* between those who could speak, see patience() */

static struct op *op_at_work(struct pmi2x_ring *r)
{
	struct op *op = r->first;

	while (op && op->phase == OP_COMPLETE)
		op = op->next;
	return op;
}

static void complete(struct pmi2x_ring *r, struct op *op, int code)
{
	op->phase = OP_COMPLETE;
	op->code = code;
	r->counters.operations += code == PMI2_SUCCESS;
}

static void fail_all(struct pmi2x_ring *r)
{
	for (struct op *op = r->first; op; op = op->next)
		if (op->phase != OP_COMPLETE)
			complete(r, op, PMI2_FAIL);
}

static bool is_leader(const struct pmi2x_ring *r)
{
	return r->index == 0;
}

/* ---- the result ---- */

static int scatter_all(struct pmi2x_ring *r, const void *base, size_t used,
		       struct bundle_sink *sink)
{
	int rc = 0;

	for (uint32_t i = 0; !rc && i < r->elements; i++) {
		size_t len;
		const void *bundle = store_read(base, used, r->elements, i,
						&len);

		rc = bundle ? bundle_scatter(bundle, len, sink) : -EPROTO;
	}
	return rc;
}

int ring_refuse_length(struct pmi2x_ring *r, const struct op *op, int rank)
{
	snprintf(r->error, sizeof(r->error), "rank %d gave a block of another "
		 "length than rank %d, which gave %zu bytes", rank, r->rank,
		 op->len);
	return PMI2_ERR_INVALID_VAL_LENGTH;
}

static void explain(struct pmi2x_ring *r, struct op *op,
		    const struct bundle_sink *sink, int rc)
{
	if (rc == -EMSGSIZE)
		complete(r, op, ring_refuse_length(r, op, sink->culprit));
	else if (rc)
		ring_fail(r, "rank %d on node %s: wrong data for rank %u",
			  r->rank, r->node, sink->culprit);
	else
		ring_fail(r, "rank %d on node %s: only %u of %d ranks are in "
			  "the ring", r->rank, r->node, sink->count, r->size);
}

static void collect(struct pmi2x_ring *r, struct op *op, const void *base,
		    size_t used)
{
	struct bundle_sink sink = { .buffer = op->buffer,
		.stride = op->stride, .lengths = op->lengths,
		.size = r->size, .seen = calloc(1, r->size / 8 + 1) };
	int rc;

	if (!base || !sink.seen) {
		free(sink.seen);
		ring_fail(r, "rank %d on node %s: no memory for the result",
			  r->rank, r->node);
		return;
	}
	rc = scatter_all(r, base, used, &sink);
	if (!rc && sink.count == sink.size)
		complete(r, op, PMI2_SUCCESS);
	else
		explain(r, op, &sink, rc);
	free(sink.seen);
}

/* ---- the phases ---- */

static bool enter(struct pmi2x_ring *r, struct op *op)
{
	if (r->group && group_post(r->group, op->block, op->len)) {
		ring_fail(r, "rank %d on node %s: shared memory: %s", r->rank,
			  r->node, strerror(errno));
		return true;
	}
	op->phase = OP_ENTERED;
	return true;
}

static size_t block_len(struct pmi2x_ring *r, struct op *op, uint32_t member)
{
	return r->group ? group_block_len(r->group, member) : op->len;
}

static int read_block(struct pmi2x_ring *r, struct op *op, uint32_t member,
		      void *out)
{
	if (r->group)
		return group_read_block(r->group, member, out);
	if (op->len)
		memcpy(out, op->block, op->len);
	return 0;
}

/* The node's blocks become the first bundle of the store. */
static int bundle_up(struct pmi2x_ring *r, struct op *op,
		     struct bundle_entry *entries)
{
	size_t size;
	char *at;
	int rc;

	for (uint32_t i = 0; i < r->members; i++) {
		entries[i].rank = r->ranks[i];
		entries[i].len = block_len(r, op, i);
	}
	size = bundle_size(entries, r->members);
	rc = store_begin(&r->store, r->elements, size);
	if (rc)
		return rc;
	at = store_bundle(&r->store, 0, size);
	if (!at)
		return -ENOMEM;
	at = bundle_begin(at, entries, r->members);
	for (uint32_t i = 0; !rc && i < r->members; i++) {
		rc = read_block(r, op, i, at);
		at += entries[i].len;
	}
	return rc ? rc : flow_init(&r->flow, r->elements, size);
}

static void start_moving(struct pmi2x_ring *r, struct op *op)
{
	struct bundle_entry *entries = calloc(r->members, sizeof(*entries));
	int rc = entries ? bundle_up(r, op, entries) : -ENOMEM;

	free(entries);
	if (rc) {
		ring_fail(r, "rank %d on node %s: blocks of the node: %s",
			  r->rank, r->node, strerror(-rc));
		return;
	}
	r->moving = true;
	op->phase = OP_MOVING;
}

static bool entered(struct pmi2x_ring *r, struct op *op)
{
	const void *result;
	size_t used;

	if (!is_leader(r)) {
		if (!group_finished(r->group, false))
			return false;
		result = group_result(r->group, &used);
		collect(r, op, result, used);
		return true;
	}
	ring_pump(r);
	if (r->failed || (r->group && !group_entered(r->group, false)))
		return r->failed;
	start_moving(r, op);
	return true;
}

static uint64_t messages(const struct pmi2x_ring *r)
{
	return r->counters.messages_sent + r->counters.messages_received;
}

/* A sign of life of a neighbour that does not call is no progress. */
static bool moving(struct pmi2x_ring *r, struct op *op)
{
	uint64_t before = messages(r);

	ring_pump(r);
	if (r->failed || !ring_moved(r))
		return messages(r) != before || r->failed;
	r->moving = false;
	r->generation++;
	r->counters.steps += r->flow.steps;
	flow_free(&r->flow);
	if (r->group)
		group_finish(r->group, r->store.used);
	collect(r, op, r->store.base, r->store.used);
	return true;
}

/* Over PMI there is nothing but the request. */
static bool over_pmi(struct pmi2x_ring *r, struct op *op, bool wait)
{
	int code;

	if (op->phase == OP_QUEUED) {
		op->phase = OP_ENTERED;
		code = pmi_gather_start(r, op);
	} else {
		code = pmi_gather_step(r, op, wait);
	}
	if (code == PMI_GATHER_AGAIN)
		return false;
	complete(r, op, code);
	return true;
}

/* ---- waiting ---- */

/* Other processes of the node may have an error, or may have gone. */
static void look_around(struct pmi2x_ring *r, struct op *op)
{
	char text[PMI2X_RING_ERROR_MAX];
	int64_t now = clock_ms();
	int dead;

	if (!r->group || now - r->looked_around < GROUP_LOOK_MS)
		return;
	r->looked_around = now;
	if (group_failed(r->group, text))
		ring_fail(r, "%s", text);
	else if (group_leader_dead(r->group) &&
		 !group_finished(r->group, false))
		ring_fail(r, "rank %d on node %s, the leader of rank %d, has "
			  "exited or left the ring", r->ranks[0], r->node,
			  r->rank);
	else if (is_leader(r) && op->phase == OP_ENTERED) {
		dead = group_dead_missing(r->group);
		if (dead >= 0)
			ring_fail(r, "rank %d on node %s has exited or left "
				  "the ring", r->ranks[dead], r->node);
	}
}

static void wait_for(struct pmi2x_ring *r, struct op *op)
{
	if (!is_leader(r))
		group_finished(r->group, true);
	else if (op->phase == OP_MOVING)
		r->ops->wait(r->transport, WAIT_MS);
	else if (r->group)
		group_entered(r->group, true);
}

/* The side from which nothing comes, and whether anything has. */
static enum ring_side silent_side(const struct pmi2x_ring *r, bool *never)
{
	enum ring_side side = SIDE_LEFT;

	if (flow_side_received(&r->flow, side) ||
	    (r->flow.in[SIDE_RIGHT].step == 0 &&
	     !flow_side_received(&r->flow, SIDE_RIGHT)))
		side = SIDE_RIGHT;
	*never = r->flow.in[side].step == 0;
	return side;
}

static void blame_silent(struct pmi2x_ring *r, int seconds)
{
	char text[TRANSPORT_REASON_MAX];
	bool never;
	enum ring_side side = silent_side(r, &never);

	snprintf(text, sizeof(text), never ? "has not entered an allgather "
		 "within %d s" : "no data arrived for %d s", seconds);
	ring_blame(r, side, text);
}

static void too_long(struct pmi2x_ring *r, struct op *op)
{
	int seconds = (int)(r->stall_ms / 1000), missing;

	if (!is_leader(r)) {
		ring_fail(r, "rank %d on node %s, the leader of rank %d, did "
			  "not finish an allgather within %d s", r->ranks[0],
			  r->node, r->rank, seconds);
	} else if (op->phase == OP_ENTERED) {
		missing = group_missing(r->group);
		ring_fail(r, "rank %d on node %s has not entered an allgather "
			  "within %d s", r->ranks[missing < 0 ? 0 : missing],
			  r->node, seconds);
	} else {
		blame_silent(r, seconds);
	}
}

/*
 * A rank that knows less about the cause speaks later: first the leader that misses a
 * rank of its node, then the neighbours of a node from which nothing has come.
 */
static int64_t patience(const struct pmi2x_ring *r, const struct op *op)
{
	bool never;

	if (!is_leader(r))
		return r->stall_ms + 4 * APART_MS;
	if (op->phase != OP_MOVING)
		return r->stall_ms;
	silent_side(r, &never);
	return r->stall_ms + (never ? APART_MS : 2 * APART_MS);
}

/*
 * Only time in which somebody here looked counts: a process that computes, or
 * was suspended, has not waited.
 */
static void count_time(struct pmi2x_ring *r, struct op *op, bool progressed)
{
	int64_t now = clock_ms();
	int64_t passed = now - r->looked;

	r->looked = now;
	if (progressed) {
		r->stalled = 0;
		return;
	}
	r->stalled += passed < LOOK_MAX_MS ? passed : LOOK_MAX_MS;
	if (r->stalled > patience(r, op))
		too_long(r, op);
}

static bool step(struct pmi2x_ring *r, struct op *op)
{
	switch (op->phase) {
	case OP_QUEUED: return enter(r, op);
	case OP_ENTERED: return entered(r, op);
	case OP_MOVING: return moving(r, op);
	default: return true;
	}
}

/* Send the reason to the neighbours before this process is gone. */
static void say_goodbye(struct pmi2x_ring *r)
{
	int64_t end = clock_ms() + LOOK_MAX_MS;

	while (r->transport && !r->ops->flushed(r->transport) &&
	       clock_ms() < end) {
		r->ops->progress(r->transport);
		r->ops->wait(r->transport, 10);
	}
}

void ring_advance(struct pmi2x_ring *r, bool wait)
{
	struct op *op = op_at_work(r);
	bool progressed;

	if (!op)
		return;
	if (!r->failed && !r->elements) {
		over_pmi(r, op, wait);
		return;
	}
	progressed = r->failed || step(r, op);
	if (!progressed && wait) {
		wait_for(r, op);
		progressed = step(r, op);
	}
	if (!progressed) {
		look_around(r, op);
		count_time(r, op, false);
	} else {
		count_time(r, op, true);
	}
	if (r->failed) {
		say_goodbye(r);
		fail_all(r);
	}
}
