/* SPDX-License-Identifier: BSD-3-Clause */
/* The step in memory on which the collectives are tested. */
#include "net.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "unit.h"

#define VALUE_MAX 64

void net_inside(const struct net *net, bool yes)
{
	if (net->inside)
		net->inside(yes);
}

uint32_t net_random(struct net *net, uint32_t below)
{
	net->seed = net->seed * 6364136223846793005ull + 1442695040888963407ull;
	return (net->seed >> 33) % below;
}

/* ---- what ranks contribute and expect ---- */

/* Some have nothing to say, the others do not all say the same much. */
static const char *value_of(char out[VALUE_MAX], const char *what,
			    uint32_t rank, uint32_t seq)
{
	if ((rank + seq) % 5 == 4)
		out[0] = '\0';
	else
		snprintf(out, VALUE_MAX, "%s%u.%u%.*s;", what, rank, seq,
			 (int)(rank % 7), "-------");
	return out;
}

static struct payload *payload_of(const char *text)
{
	return *text ? payload_copy(text, strlen(text)) : NULL;
}

static uint64_t ring_count(uint32_t rank, uint32_t seq)
{
	return (rank + seq) % 4;
}

static void assert_bytes(const struct payload *p, const char *text)
{
	assert_int_equal(p ? p->len : 0, strlen(text));
	if (*text)
		assert_memory_equal(p->data, text, strlen(text));
}

static void check_result(const struct net *net, enum coll_kind kind,
			 uint32_t seq, const struct payload *result)
{
	struct buf expected;
	char value[VALUE_MAX];

	buf_init(&expected, SIZE_MAX);
	buf_printf(&expected, "%s %u:", coll_kind_name(kind), seq);
	for (uint32_t i = 0; i < net->nranks; i++)
		buf_puts(&expected,
			 value_of(value, coll_kind_name(kind),
				  layout_order(net->layout)[i], seq));
	assert_non_null(result);
	assert_bytes(result, buf_cstr(&expected));
	buf_free(&expected);
}

static void check_ring(const struct net *net, uint32_t seq, uint32_t rank,
		       const struct coll_ring_result *result)
{
	const uint32_t *order = layout_order(net->layout);
	uint32_t n = net->nranks, i = 0, before, after;
	uint64_t count = 0, total = 0;
	char value[VALUE_MAX];

	for (uint32_t j = 0; j < n; j++)
		total += ring_count(order[j], seq);
	for (; order[i] != rank; i++)
		count += ring_count(order[i], seq);
	before = order[(i + n - 1) % n];
	after = order[(i + 1) % n];
	assert_int_equal(result->rank, count);
	assert_int_equal(result->size, total);
	assert_bytes(result->left, value_of(value, "right", before, seq));
	assert_bytes(result->right, value_of(value, "left", after, seq));
}

/* ---- operations ---- */

static struct net_frame *frame_new(const struct coll_msg *msg,
				   const struct payload_vec *body)
{
	struct net_frame *frame = calloc(1, sizeof(*frame));
	struct buf b;

	buf_init(&b, SIZE_MAX);
	assert_int_equal(coll_msg_pack(&b, msg), 0);
	frame->header_len = b.len;
	for (size_t i = 0; body && i < body->count; i++) {
		assert_true(body->items[i]->len > 0);
		buf_append(&b, body->items[i]->data, body->items[i]->len);
	}
	frame->has_body = body && body->count;
	assert_int_equal(b.len - frame->header_len, body ? body->bytes : 0);
	frame->bytes = payload_copy(b.data, b.len);
	buf_free(&b);
	return frame;
}

static void op_send(void *arg, uint32_t position, const struct coll_msg *msg,
		    const struct payload_vec *body)
{
	struct net_node *node = arg;
	struct net_link *link = net_link(node->net, node->position, position);

	net_inside(node->net, false);
	assert_int_equal(link->from, node->position);
	assert_int_equal(link->to, position);
	node->net->faults_sent += msg->type == COLL_MSG_FAULT;
	node->net->sent[msg->type]++;
	link->used = true;
	if (!link->dead)
		net_frame_add(link, frame_new(msg, body));
	net_inside(node->net, true);
}

static struct payload *op_combine(void *arg, enum coll_kind kind, uint32_t seq,
				  const struct payload_vec *parts, int *error)
{
	struct net_node *node = arg;
	struct payload *result = NULL;
	struct buf b;

	net_inside(node->net, false);
	*error = -EFBIG;
	buf_init(&b, SIZE_MAX);
	buf_printf(&b, "%s %u:", coll_kind_name(kind), seq);
	for (size_t i = 0; i < parts->count; i++)
		buf_append(&b, parts->items[i]->data, parts->items[i]->len);
	if (kind != COLL_FENCE || seq != node->net->combine_fails)
		result = payload_copy(b.data, b.len);
	buf_free(&b);
	net_inside(node->net, true);
	return result;
}

static void end(struct net *net, uint8_t *outcome,
		const struct coll_fault *fault)
{
	assert_int_equal(*outcome, NET_WAITING);
	*outcome = fault ? NET_FAILED : NET_DONE;
	if (fault) {
		assert_true(fault->reason[0] != '\0');
		strcpy(net->reason, fault->reason);
	}
}

static void op_complete(void *arg, enum coll_kind kind, uint32_t seq,
			struct payload *result, const struct coll_fault *fault)
{
	struct net_node *node = arg;
	struct net *net = node->net;
	uint32_t count, ended = 0;
	const uint32_t *ranks = layout_ranks_at(net->layout, node->position,
						&count);

	net_inside(net, false);
	assert_true(!result == !!fault);
	for (uint32_t i = 0; i < count; i++) {
		uint8_t *outcome = &net->ranks[ranks[i]].outcome[kind][seq];

		if (*outcome != NET_WAITING)
			continue;
		end(net, outcome, fault);
		ended++;
	}
	assert_true(ended > 0);
	if (result && !net->lenient) {
		assert_int_equal(ended, count);
		check_result(net, kind, seq, result);
	}
	net_inside(net, true);
}

static void op_complete_ring(void *arg, uint32_t seq, uint32_t slot,
			     const struct coll_ring_result *result,
			     const struct coll_fault *fault)
{
	struct net_node *node = arg;
	struct net *net = node->net;
	uint32_t count;
	uint32_t rank = layout_ranks_at(net->layout, node->position,
					&count)[slot];

	net_inside(net, false);
	assert_true(!result == !!fault);
	end(net, &net->ranks[rank].outcome[COLL_RING][seq], fault);
	if (result)
		check_ring(net, seq, rank, result);
	net_inside(net, true);
}

static void op_flooded(void *arg, struct payload *what)
{
	struct net_node *node = arg;
	size_t len = strlen(node->flooded);

	assert_true(len + what->len < sizeof(node->flooded));
	memcpy(node->flooded + len, what->data, what->len);
}

static const struct coll_ops ops = {
	.send = op_send,
	.combine = op_combine,
	.complete = op_complete,
	.complete_ring = op_complete_ring,
	.complete_subset = net_complete_subset,
	.fetch_asked = net_fetch_asked,
	.fetched = net_fetched,
	.flooded = op_flooded,
};

/* ---- the step ---- */

static void shuffle(struct net *net, uint32_t *array, uint32_t count)
{
	for (uint32_t i = count; i > 1; i--) {
		uint32_t j = net_random(net, i), swap = array[j];

		array[j] = array[i - 1];
		array[i - 1] = swap;
	}
}

static void make_layout(struct net *net)
{
	uint32_t *node_of = calloc(net->nranks, sizeof(*node_of));
	uint32_t *counts = calloc(net->nnodes, sizeof(*counts));
	uint32_t **ranks = calloc(net->nnodes, sizeof(*ranks));

	for (uint32_t r = 0; r < net->nranks; r++)
		node_of[r] = r * net->nnodes / net->nranks;
	for (uint32_t r = net->nnodes; net->seed && r < net->nranks; r++)
		node_of[r] = net_random(net, net->nnodes);
	for (uint32_t r = 0; net->seed && r < net->nnodes; r++)
		node_of[r] = r; /* none is empty */
	if (net->seed)
		shuffle(net, node_of, net->nranks);
	for (uint32_t i = 0; i < net->nnodes; i++)
		ranks[i] = calloc(net->nranks, sizeof(uint32_t));
	for (uint32_t r = 0; r < net->nranks; r++)
		ranks[node_of[r]][counts[node_of[r]]++] = r;
	assert_int_equal(layout_create(&net->layout, net->nnodes, net->nranks,
				       counts, (const uint32_t *const *)ranks),
			 0);
	for (uint32_t i = 0; i < net->nnodes; i++)
		free(ranks[i]);
	free(ranks);
	free(counts);
	free(node_of);
}

static void make_nodes(struct net *net, const struct coll_options *options)
{
	uint32_t n = net->nnodes;

	net->nodes = calloc(n, sizeof(*net->nodes));
	for (uint32_t p = 0; p < n; p++) {
		struct net_node *node = &net->nodes[p];

		node->net = net;
		node->position = p;
		assert_int_equal(coll_create(&node->coll, net->layout, p,
					     options, &ops, node), 0);
	}
}

static void make_links(struct net *net)
{
	uint32_t n = net->nnodes;

	net->nlinks = 2 * n;
	net->links = calloc(net->nlinks, sizeof(*net->links));
	for (uint32_t p = 0; p < n; p++) {
		uint32_t parent = coll_place(net->nodes[p].coll)->parent;

		net->links[2 * p] = (struct net_link){
			.from = p, .to = parent,
		};
		net->links[2 * p + 1] = (struct net_link){
			.from = parent, .to = p,
		};
	}
}

struct net *net_new(uint32_t nnodes, uint32_t nranks, uint32_t width,
		    uint64_t seed)
{
	/* Messages are cut into small pieces: every history has several of them. */
	const struct coll_options options = {
		.tree_width = width, .piece = 24,
	};
	struct net *net = calloc(1, sizeof(*net));

	net->nnodes = nnodes;
	net->nranks = nranks;
	net->seed = seed;
	net->combine_fails = COLL_NEVER;
	make_layout(net);
	net->ranks = calloc(nranks, sizeof(*net->ranks));
	make_nodes(net, &options);
	make_links(net);
	return net;
}

void net_free(struct net *net)
{
	for (uint32_t i = 0; i < net->nlinks; i++)
		while (net->links[i].head)
			net_frame_free(net_frame_take(&net->links[i]));
	for (uint32_t p = 0; p < net->nnodes; p++)
		coll_destroy(net->nodes[p].coll);
	net_groups_free(net);
	layout_destroy(net->layout);
	free(net->nodes);
	free(net->ranks);
	free(net->links);
	free(net);
}

/* ---- events ---- */

struct coll *net_coll_of(const struct net *net, uint32_t rank, uint32_t *slot)
{
	uint32_t position = layout_rank_position(net->layout, rank), count;
	const uint32_t *ranks = layout_ranks_at(net->layout, position, &count);

	for (*slot = 0; ranks[*slot] != rank;)
		++*slot;
	return net->nodes[position].coll;
}

uint32_t net_entered(const struct net *net, enum coll_kind kind, uint32_t rank)
{
	uint32_t slot;
	const struct coll *c = net_coll_of(net, rank, &slot);

	return coll_entered(c, kind, slot);
}

static int enter(struct net *net, enum coll_kind kind, uint32_t rank,
		 uint32_t seq, uint32_t *got)
{
	char a[VALUE_MAX], b[VALUE_MAX];
	struct payload *left, *right = NULL;
	uint32_t slot;
	struct coll *c = net_coll_of(net, rank, &slot);
	int rc;

	if (kind == COLL_RING) {
		left = payload_of(value_of(a, "left", rank, seq));
		right = payload_of(value_of(b, "right", rank, seq));
	} else {
		left = payload_of(value_of(a, coll_kind_name(kind), rank, seq));
	}
	net_inside(net, true);
	if (kind == COLL_RING)
		rc = coll_enter_ring(c, slot, ring_count(rank, seq), left,
				     right, got);
	else
		rc = coll_enter(c, kind, slot, left, got);
	net_inside(net, false);
	payload_unref(left);
	payload_unref(right);
	return rc;
}

int net_enter(struct net *net, enum coll_kind kind, uint32_t rank)
{
	uint32_t seq = net_entered(net, kind, rank), got;
	uint8_t *outcome = &net->ranks[rank].outcome[kind][seq];
	uint8_t old = *outcome;
	int rc;

	assert_true(seq < NET_SEQ_MAX);
	*outcome = NET_WAITING;
	rc = enter(net, kind, rank, seq, &got);
	if (rc) {
		*outcome = old;
		assert_int_equal(net_entered(net, kind, rank), seq);
		return rc;
	}
	assert_int_equal(got, seq);
	assert_int_equal(net_entered(net, kind, rank), seq + 1);
	return 0;
}

void net_rank_gone(struct net *net, uint32_t rank)
{
	uint32_t slot;
	struct coll *c = net_coll_of(net, rank, &slot);
	char why[64];

	net->ranks[rank].gone = true;
	snprintf(why, sizeof(why), "rank %u is gone", rank);
	net_inside(net, true);
	coll_rank_gone(c, slot, COLL_OF_ALL, why);
	net_inside(net, false);
}

static int receive(struct net *net, uint32_t from, uint32_t to,
		   const struct coll_msg *msg, struct payload *body)
{
	struct payload *placed = NULL;
	int rc;

	net_inside(net, true);
	if (body && net_random(net, 2))
		placed = coll_body_room(net->nodes[to].coll, from, msg,
					body->len);
	if (placed) {
		assert_int_equal(placed->len, body->len);
		memcpy(placed->data, body->data, body->len);
	}
	rc = coll_receive(net->nodes[to].coll, from, msg,
			  placed ? placed : body);
	payload_unref(placed);
	net_inside(net, false);
	return rc;
}

static void deliver(struct net *net, struct net_link *link)
{
	struct net_frame *frame = net_frame_take(link);
	struct payload *body = NULL;
	struct coll_msg msg;
	struct cursor c;

	if (!frame->bytes) {
		net_frame_free(frame);
		link->dead = link->detected = true;
		coll_link_lost(net->nodes[link->to].coll, link->from, true,
			       "it has left");
		return;
	}
	cursor_init(&c, frame->bytes->data, frame->bytes->len);
	assert_int_equal(coll_msg_unpack(&c, &msg), 0);
	assert_int_equal(cursor_left(&c),
			 frame->bytes->len - frame->header_len);
	if (frame->has_body)
		body = payload_slice(frame->bytes, frame->header_len,
				     cursor_left(&c));
	if (receive(net, link->from, link->to, &msg, body)) {
		assert_true(net->lenient);
		net_detect(net, link);
	}
	payload_unref(body);
	net_frame_free(frame);
}

bool net_deliver(struct net *net)
{
	uint32_t count = net->nlinks, start = net_random(net, count);

	for (uint32_t i = 0; i < count; i++) {
		struct net_link *link = &net->links[(start + i) % count];

		if (!link->head)
			continue;
		deliver(net, link);
		return true;
	}
	return false;
}

void net_deliver_all(struct net *net)
{
	while (net_deliver(net))
		;
}

int net_inject(struct net *net, uint32_t from, uint32_t to,
	       const struct coll_msg *msg, const char *body)
{
	struct payload *p = body ? payload_copy(body, strlen(body)) : NULL;
	int rc = receive(net, from, to, msg, p);

	payload_unref(p);
	return rc;
}

enum net_outcome net_outcome(const struct net *net, enum coll_kind kind,
			     uint32_t rank, uint32_t seq)
{
	return net->ranks[rank].outcome[kind][seq];
}

void net_assert_settled(const struct net *net)
{
	uint32_t *ranks = calloc(net->nranks, sizeof(*ranks));
	uint32_t *children = calloc(net->nnodes, sizeof(*children));

	for (uint32_t p = 0; p < net->nnodes; p++) {
		enum coll_kind kind = 0;
		uint32_t seq = 0, nranks, nchildren;
		bool up;

		assert_int_equal(coll_pending(net->nodes[p].coll), 0);
		assert_false(coll_next_pending(net->nodes[p].coll, &kind, &seq,
					       ranks, &nranks, children,
					       &nchildren, &up));
	}
	for (uint32_t r = 0; r < net->nranks; r++)
		for (int kind = 0; kind < COLL_KINDS; kind++)
			for (uint32_t s = 0; s < net_entered(net, kind, r); s++)
				assert_true(net_outcome(net, kind, r, s) >=
					    NET_DONE);
	net_groups_assert_settled(net);
	net_fetches_assert_settled(net);
	free(ranks);
	free(children);
}
