/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fence and gather: contributions are strung together on the way up, combined
 * once at the root, and the result is shared on the way down.
 */
#include "libcoll/coll_private.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static int collect(const struct coll *c, const struct coll_op *op,
		   struct payload_vec *parts)
{
	int rc = 0;

	payload_vec_init(parts);
	for (uint32_t i = 0; !rc && i < coll_nparts(c); i++)
		rc = payload_vec_add(parts, op->parts[i].data);
	return rc;
}

static void send_up(struct coll *c, enum coll_kind kind, uint32_t seq,
		    struct coll_op *op, const struct payload_vec *parts)
{
	struct coll_msg msg = {
		.type = COLL_MSG_UP, .kind = kind, .seq = seq,
	};

	/* The bytes may be many and the result may be long in coming. */
	for (uint32_t i = 0; i < coll_nparts(c); i++)
		coll_part_clear(&op->parts[i]);
	coll_send(c, coll_parent(c), &msg, parts);
}

/* The first in flight has ended, by `msg`: for the children and here. */
static void deliver(struct coll *c, const struct coll_msg *msg,
		    struct payload *result)
{
	struct payload_vec body = { .items = &result };

	if (result && result->len)
		body.count = 1;
	if (result)
		body.bytes = result->len;
	for (uint32_t i = 0; i < c->place.children; i++)
		coll_send(c, &c->peers[i], msg, &body);
	coll_op_close_first(c, msg->kind);
	c->ops->complete(c->arg, msg->kind, msg->seq, result,
			 msg->failed ? &msg->fault : NULL);
}

static void affect_no_other(struct coll_fault *fault)
{
	for (int kind = 0; kind < COLL_KINDS; kind++)
		fault->from[kind] = COLL_NEVER;
}

static void combine(struct coll *c, enum coll_kind kind, uint32_t seq,
		    const struct payload_vec *parts, int error)
{
	struct coll_msg msg = {
		.type = COLL_MSG_DOWN, .kind = kind, .seq = seq,
	};
	struct payload *result = NULL;

	if (!error)
		result = c->ops->combine(c->arg, kind, seq, parts, &error);
	if (!result) {
		msg.failed = true;
		affect_no_other(&msg.fault);
		snprintf(msg.fault.reason, sizeof(msg.fault.reason),
			 "the contributions to %s %u could not be combined: %s",
			 coll_kind_name(kind), seq, strerror(-error));
	}
	deliver(c, &msg, result);
	payload_unref(result);
}

void coll_gather_ready(struct coll *c, enum coll_kind kind, uint32_t seq,
		       struct coll_op *op)
{
	struct payload_vec parts;
	int rc = collect(c, op, &parts);

	if (coll_is_root(c))
		combine(c, kind, seq, &parts, rc);
	else if (rc)
		coll_fault_no_memory(c, kind, seq);
	else
		send_up(c, kind, seq, op, &parts);
	payload_vec_clear(&parts);
}

void coll_gather_down(struct coll *c, const struct coll_msg *msg,
		      struct payload *body)
{
	struct payload *nothing = NULL;
	struct coll_msg down = *msg;

	affect_no_other(&down.fault);
	if (!body && !msg->failed)
		body = nothing = payload_virtual(0);
	if (!body && !msg->failed)
		coll_fault_no_memory(c, msg->kind, msg->seq);
	else
		deliver(c, &down, msg->failed ? NULL : body);
	payload_unref(nothing);
}
