/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Nodes that are libcoll alone, the object code of slurmstepd's agent: small
 * enough for a million ranks. Messages go through the wire form. With `payload =
 * bytes` contributions and results are made by libshm, and every result is
 * looked at; otherwise they have lengths only, the same.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "contents.h"
#include "libcoll/coll.h"
#include "libcoll/subset.h"
#include "sim.h"

static struct coll *coll_of(const struct sim_node *n)
{
	return n->state;
}

static bool has_bytes(const struct sim_node *n)
{
	return n->sim->scenario->payload == PAYLOAD_BYTES;
}

/* Bytes of a group are few, and libcoll reads some: who takes part. */
static bool needs_bytes(const struct sim_node *n, const struct coll_msg *msg)
{
	return has_bytes(n) || coll_msg_is_subset(msg);
}

/* ---- operations of libcoll ---- */

/* One reference that counts as held. Takes over the reference to `bytes`. */
static struct payload *held(struct sim_node *n, size_t len,
			    struct payload *bytes)
{
	struct payload *p = payload_held(n, len, bytes);

	payload_unref(bytes);
	return p;
}

/*
 * Payloads that an agent's queue keeps until they have been sent: a piece of the
 * result, or contributions, which libcoll itself gives up.
 */
static struct payload *keep(struct sim_node *n, const struct coll_msg *msg,
			    const struct payload_vec *body)
{
	if (body->count == 1)
		return payload_ref(body->items[0]);
	return held(n, body->bytes,
		    needs_bytes(n, msg) ? payload_vec_join(body) : NULL);
}

static void op_send(void *arg, uint32_t position, const struct coll_msg *msg,
		    const struct payload_vec *body)
{
	struct sim_node *n = arg;
	struct payload *kept = NULL;
	struct buf head;

	buf_init(&head, COLL_REASON_MAX + 64);
	if (coll_msg_pack(&head, msg)) {
		sim_fail(n->sim, "a message cannot be packed");
		return;
	}
	if (n->entering < n->sim->scenario->nops)
		group_seen(n->sim, n->entering, msg);
	if (body && body->bytes)
		kept = keep(n, msg, body);
	message_send(n, position, phase_of(n->sim, msg), head.data, head.len,
		     body ? body->bytes : 0, kept);
	payload_unref(kept);
	buf_free(&head);
}

/*
 * The parts that an exchange by rounds has brought are libcoll's own; they count as
 * well.
 */
static void count_parts(struct sim_node *n, const struct payload_vec *parts,
			uint64_t result)
{
	bool counted = parts->count && parts->items[0]->release;

	n->held += counted ? 0 : parts->bytes + result;
	stats_memory(n);
	n->held -= counted ? 0 : parts->bytes + result;
}

static struct payload *op_combine(void *arg, enum coll_kind kind, uint32_t seq,
				  const struct payload_vec *parts, int *error)
{
	struct sim_node *n = arg;
	const struct scenario_op *op =
		&n->sim->scenario->ops[n->sim->op_of[kind][seq]];
	struct payload *result = NULL, *image = NULL;
	uint64_t len;

	if (has_bytes(n)) {
		image = contents_image(n->sim, kind, parts, error);
		if (!image)
			return NULL;
		len = image->len;
	} else {
		len = contents_image_len(n->sim, op, parts->bytes, error);
		if (!len)
			return NULL;
	}
	count_parts(n, parts, len);
	result = held(n, len, image);
	if (!result)
		*error = -ENOMEM;
	node_spend(n, len * (double)n->sim->scenario->node.combine);
	return result;
}

static struct payload *op_room(void *arg, enum coll_kind kind, uint32_t seq,
			       size_t size)
{
	struct sim_node *n = arg;

	return held(n, size, has_bytes(n) ? payload_new(size) : NULL);
}

/* The ranks that wait in it; a fault names them one by one, or all. */
static void op_complete(void *arg, enum coll_kind kind, uint32_t seq,
			struct payload *result, const struct coll_fault *fault)
{
	struct sim_node *n = arg;
	struct sim *s = n->sim;
	uint32_t op = s->op_of[kind][seq];

	if (result) {
		node_spend(n, result->len *
				      (double)s->scenario->node.publish);
		if (has_bytes(n))
			contents_check_result(n, op, result);
	}
	for (uint32_t i = 0; i < n->nranks; i++) {
		const struct sim_rank *r = &s->ranks[n->first + i];

		if (r->waiting && r->next == op && !r->gone)
			rank_exits(n, i, fault ? fault->reason : NULL);
		else if (result && !r->gone)
			sim_fail(s, "%s %u succeeded for rank %u, which has not entered it",
				 coll_kind_name(kind), seq,
				 rank_number(s, n->first + i));
	}
}

static struct ring_value value_of(const struct payload *p)
{
	return (struct ring_value){ p ? p->data : NULL, p ? p->len : 0 };
}

static void check_ring(struct sim_node *n, uint32_t op, uint32_t slot,
		       const struct coll_ring_result *result)
{
	contents_check_ring(n, op, slot, result->rank, result->size,
			    value_of(result->left), value_of(result->right));
}

static void op_complete_ring(void *arg, uint32_t seq, uint32_t slot,
			     const struct coll_ring_result *result,
			     const struct coll_fault *fault)
{
	struct sim_node *n = arg;
	struct sim *s = n->sim;
	const struct sim_rank *r = &s->ranks[n->first + slot];

	if (r->gone)
		return;
	if (!r->waiting || r->next != s->op_of[COLL_RING][seq])
		sim_fail(s, "ring %u ended for rank %u, which is not in it",
			 seq, rank_number(s, n->first + slot));
	else if (result && has_bytes(n))
		check_ring(n, r->next, slot, result);
	if (!s->failed)
		rank_exits(n, slot, fault ? fault->reason : NULL);
}

static void op_complete_subset(void *arg, uint32_t slot, uint64_t id,
			       struct payload *result, const char *why)
{
	struct sim_node *n = arg;
	const struct sim_rank *r = &n->sim->ranks[n->first + slot];

	if (r->gone)
		return;
	if (!r->waiting || r->next != id)
		sim_fail(n->sim, "group %u ended for rank %u, which is not in it",
			 (uint32_t)id + 1, rank_number(n->sim, n->first + slot));
	else
		rank_exits(n, slot, why);
}

static const struct coll_ops ops = {
	.send = op_send,
	.combine = op_combine,
	.room = op_room,
	.complete = op_complete,
	.complete_ring = op_complete_ring,
	.complete_subset = op_complete_subset,
};

/* ---- a step ---- */

/* With bytes, every node holds those of an operation until it has looked at them. */
static int check_memory(struct sim *s)
{
	uint64_t most = 0;

	if (s->scenario->payload == PAYLOAD_SIZES)
		return 0;
	for (uint32_t op = 0; op < s->scenario->nops; op++)
		if (contents_result_len(s, op) > most)
			most = contents_result_len(s, op);
	return contents_check_memory(s, most, "payload", "payload = sizes");
}

/* ---- a node ---- */

static int create(struct sim *s, struct sim_node *n)
{
	const struct coll_options options = {
		.tree_width = s->width,
		.piece = s->scenario->piece,
	};
	struct coll *c;

	if (coll_create(&c, s->layout, n->position, &options, &ops, n))
		return -1;
	n->state = c;
	n->entering = UINT32_MAX;
	return 0;
}

static void destroy(struct sim_node *n)
{
	coll_destroy(coll_of(n));
}

static int enter_ring(struct sim_node *n, uint32_t slot, uint32_t op)
{
	struct payload *left = contents_edge(n, op, slot, true);
	struct payload *right = contents_edge(n, op, slot, false);
	uint32_t seq;
	int rc = coll_enter_ring(coll_of(n), slot, 1, left, right, &seq);

	payload_unref(left);
	payload_unref(right);
	return rc;
}

/* The first ranks of every so-manieth node, ascending as positions are. NULL: no memory. */
static uint32_t *members_of(const struct sim *s, uint32_t every, uint32_t *count)
{
	uint32_t *ranks = malloc(((s->nnodes - 1) / every + 1) * sizeof(*ranks));

	*count = 0;
	for (uint32_t p = 0; ranks && p < s->nnodes; p += every)
		ranks[(*count)++] = rank_number(s, s->nodes[p].first);
	return ranks;
}

/* A rank that is no member goes on. */
static int enter_group(struct sim_node *n, uint32_t slot, uint32_t op)
{
	uint32_t every = n->sim->scenario->ops[op].every, count;
	uint32_t *ranks;
	int rc;

	if (slot || n->position % every) {
		rank_exits(n, slot, NULL);
		return 0;
	}
	ranks = members_of(n->sim, every, &count);
	if (!ranks)
		return -ENOMEM;
	n->entering = op;
	rc = coll_enter_subset(coll_of(n), slot,
			       &(struct coll_subset_name){
				       .tag = &op, .tag_len = sizeof(op),
				       .ranks = ranks, .count = count,
			       },
			       NULL, op);
	n->entering = UINT32_MAX;
	free(ranks);
	return rc;
}

static void enter(struct sim_node *n, uint32_t slot, uint32_t op)
{
	enum scenario_op_kind kind = n->sim->scenario->ops[op].kind;
	struct payload *p;
	uint32_t seq;
	int rc;

	if (kind == OP_RING) {
		rc = enter_ring(n, slot, op);
	} else if (kind == OP_GROUP) {
		rc = enter_group(n, slot, op);
	} else {
		p = contents_of(n, op, slot);
		rc = coll_enter(coll_of(n), kind == OP_FENCE ? COLL_FENCE :
							       COLL_GATHER,
				slot, p, &seq);
		payload_unref(p);
	}
	if (rc)
		sim_fail(n->sim, "rank %u cannot enter operation %u: %s",
			 rank_number(n->sim, n->first + slot), op + 1,
			 strerror(-rc));
}

/* Acts like the agent's reader: read to where the bytes stay, or anywhere. */
static struct payload *body_of(struct sim_node *n, const struct sim_message *m,
			       const struct coll_msg *msg)
{
	struct payload *room;

	if (!m->body_len)
		return NULL;
	room = coll_body_room(coll_of(n), m->from, msg, m->body_len);
	if (!room)
		return held(n, m->body_len,
			    needs_bytes(n, msg) ? payload_copy(m->body->data,
							       m->body_len) :
						  NULL);
	if (room->data)
		memcpy(room->data, m->body->data, m->body_len);
	return room;
}

static void receive(struct sim_node *n, struct sim_message *m)
{
	struct coll_msg msg;
	struct payload *body;

	if (coll_msg_read(m->head, m->head_len, &msg)) {
		sim_fail(n->sim, "a message cannot be unpacked");
		return;
	}
	body = body_of(n, m, &msg);
	if (m->body_len && !body)
		sim_fail(n->sim, "not enough memory");
	else if (coll_receive(coll_of(n), m->from, &msg, body))
		sim_fail(n->sim, "node %u refused a message of node %u in operation %u",
			 n->id, n->sim->nodes[m->from].id, m->phase + 1u);
	payload_unref(body);
}

static void rank_gone(struct sim_node *n, uint32_t slot, const char *why)
{
	coll_rank_gone(coll_of(n), slot, COLL_OF_ALL, why);
}

static void link_lost(struct sim_node *n, uint32_t peer, const char *why)
{
	coll_link_lost(coll_of(n), peer, false, why);
}

static void describe(const struct sim_node *n, char *out, size_t len)
{
	uint32_t *ranks = calloc(n->nranks + 1, sizeof(*ranks));
	uint32_t *children = calloc(n->children + 1, sizeof(*children));
	uint32_t seq = 0, nranks, nchildren;
	enum coll_kind kind = 0;
	bool parent;

	if (ranks && children &&
	    coll_next_pending(coll_of(n), &kind, &seq, ranks, &nranks, children,
			      &nchildren, &parent))
		snprintf(out, len, "%s %u waits for %u ranks of its node, %u subtrees%s",
			 coll_kind_name(kind), seq, nranks, nchildren,
			 parent ? ", the result" : "");
	free(ranks);
	free(children);
}

const struct sim_protocol protocol_coll = {
	.faults = true,
	.open = check_memory,
	.create = create,
	.destroy = destroy,
	.enter = enter,
	.receive = receive,
	.rank_gone = rank_gone,
	.link_lost = link_lost,
	.describe = describe,
};
