/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fence and gather: agreeing on the way. Nobody but the root knows how much there
 * is in all, and what is little must not wait for an agreement. So what is
 * little goes up at once, and is kept until the result comes; of what is more
 * only the size goes up (SIZE), and the root then says which way all of it
 * takes (PLAN):
 *
 *   the tree: those that told a size now send their data up;
 *   another:  the plan goes to every node, with the place of its bytes among all;
 *             data that went up for nothing was little.
 */
#include "libcoll/coll_private.h"

#include <errno.h>
#include <stdio.h>

bool coll_plan_needed(const struct coll *c)
{
	return c->announce_min != UINT64_MAX;
}

/* What the subtree contributes. */
static uint64_t subtree_bytes(const struct coll *c, const struct coll_op *op)
{
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < coll_nparts(c); i++)
		bytes += op->parts[i].data.announced ? op->parts[i].data.size :
						       op->parts[i].data.bytes;
	return bytes;
}

static uint64_t own_bytes(const struct coll *c, const struct coll_op *op)
{
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < c->nslots; i++)
		bytes += op->parts[i].data.bytes;
	return bytes;
}

/* Send up all there is, and keep it: the plan may be another. */
static void send_little(struct coll *c, enum coll_kind kind, uint32_t seq,
			struct coll_op *op)
{
	struct payload_vec all;
	int rc = 0;

	payload_vec_init(&all);
	for (uint32_t i = 0; !rc && i < coll_nparts(c); i++)
		if (op->parts[i].data.first)
			rc = coll_data_list(&op->parts[i].data, &all);
	c->sent[kind]++;
	if (rc)
		coll_fault_no_memory(c, kind, seq);
	else
		coll_gather_send_up(c, kind, seq, &all, false);
	payload_vec_clear(&all);
}

static void announce(struct coll *c, enum coll_kind kind, uint32_t seq,
		     struct coll_op *op, uint64_t bytes)
{
	struct coll_msg msg = {
		.type = COLL_MSG_SIZE, .kind = kind, .seq = seq, .size = bytes,
	};

	op->announced = true;
	c->sent[kind]++;
	coll_send(c, coll_parent(c), &msg, NULL);
}

/* Over the tree: who told a size may send. */
static void take_tree(struct coll *c, enum coll_kind kind, uint32_t seq,
		      struct coll_op *op)
{
	struct coll_msg msg = {
		.type = COLL_MSG_PLAN, .kind = kind, .seq = seq,
		.algorithm = COLL_BY_TREE,
	};

	op->route = COLL_TREE;
	for (uint32_t i = 0; i < c->place.children; i++) {
		if (!op->parts[c->nslots + i].data.announced)
			continue;
		op->missing++;
		coll_send(c, &c->peers[i], &msg, NULL);
	}
	coll_gather_advance(c, kind, seq, op);
}

/* By rounds: every child learns where the bytes of its subtree begin. */
static void take_exchange(struct coll *c, const struct coll_msg *plan,
			  struct coll_op *op)
{
	uint64_t before = plan->count;
	struct coll_msg msg = *plan;

	msg.count += own_bytes(c, op);
	for (uint32_t i = 0; i < c->place.children; i++) {
		struct coll_data *d = &op->parts[c->nslots + i].data;

		coll_send(c, &c->peers[i], &msg, NULL);
		msg.count += d->announced ? d->size : d->bytes;
		coll_data_clear(d);
	}
	op->route = COLL_EXCHANGE;
	coll_exchange_start(c, plan->kind, plan->seq, plan->algorithm, before,
			    plan->total);
}

static bool anyone_announced(const struct coll *c, const struct coll_op *op)
{
	for (uint32_t i = c->nslots; i < coll_nparts(c); i++)
		if (op->parts[i].data.announced)
			return true;
	return false;
}

static enum coll_algorithm choose(const struct coll *c,
				  const struct coll_op *op, uint64_t bytes)
{
	if (c->algorithm != COLL_BY_CHOICE)
		return bytes ? c->algorithm : COLL_BY_TREE;
	if (!anyone_announced(c, op)) /* all of it has come already */
		return COLL_BY_TREE;
	return algorithm_choose(c->nodes, bytes);
}

static void decide(struct coll *c, enum coll_kind kind, uint32_t seq,
		   struct coll_op *op, uint64_t bytes)
{
	struct coll_msg plan = {
		.type = COLL_MSG_PLAN, .kind = kind, .seq = seq, .total = bytes,
	};
	char why[COLL_REASON_MAX];

	if (bytes > COLL_BYTES_MAX) {
		snprintf(why, sizeof(why),
			 "the contributions to %s %u are over %llu MiB",
			 coll_kind_name(kind), seq,
			 (unsigned long long)(COLL_BYTES_MAX >> 20));
		coll_gather_fail(c, kind, seq, op, why);
		return;
	}
	plan.algorithm = choose(c, op, bytes);
	if (plan.algorithm == COLL_BY_TREE)
		take_tree(c, kind, seq, op);
	else
		take_exchange(c, &plan, op);
}

void coll_plan_ready(struct coll *c, enum coll_kind kind, uint32_t seq,
		     struct coll_op *op)
{
	uint64_t bytes = subtree_bytes(c, op);

	if (coll_is_root(c))
		decide(c, kind, seq, op, bytes);
	else if (bytes < c->announce_min)
		send_little(c, kind, seq, op);
	else
		announce(c, kind, seq, op, bytes);
}

void coll_plan_size(struct coll *c, const struct coll_msg *msg,
		    struct coll_op *op, uint32_t index)
{
	struct coll_data *d = &op->parts[index].data;

	d->announced = true;
	d->size = msg->size < COLL_BYTES_MAX ? msg->size : COLL_BYTES_MAX + 1;
	op->missing--;
	coll_gather_advance(c, msg->kind, msg->seq, op);
}

int coll_plan_receive(struct coll *c, const struct coll_msg *msg,
		      struct coll_op *op)
{
	uint64_t bytes = subtree_bytes(c, op);

	if (op->route != COLL_OPEN || op->missing)
		return -EPROTO;
	if (msg->algorithm == COLL_BY_TREE) {
		if (!op->announced)
			return -EPROTO;
		take_tree(c, msg->kind, msg->seq, op);
		return 0;
	}
	if (msg->total > COLL_BYTES_MAX || msg->count > msg->total ||
	    bytes > msg->total - msg->count)
		return -EPROTO;
	take_exchange(c, msg, op);
	return 0;
}
