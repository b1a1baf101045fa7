/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fence and gather by rounds between any two nodes (algorithm.h).
 *
 * Every node has room for the contributions of all, in tree order, and knows
 * where its own begin. What it holds is one run from there, which goes on at the
 * start behind the end; what a round brings lengthens it. The node that wants
 * says so (WANT, with how much it still lacks) when its earlier rounds are over;
 * the one that has sends (DATA) what it holds, as it comes, up to what it held
 * at the beginning of the round, or if the algorithm streams, up to all.
 *
 * A node may have ended before others have got what they want of it: it then
 * lingers (coll_pending). When a node goes that is still needed, a fault says so
 * to everybody, over these links and those of the tree.
 */
#include "libcoll/coll_private.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- far peers ---- */

static uint32_t behind(const struct coll *c, uint32_t distance)
{
	return ((uint64_t)c->place.range.first + distance) % c->nodes;
}

static uint32_t ahead(const struct coll *c, uint32_t distance)
{
	return behind(c, c->nodes - distance % c->nodes);
}

/* Whose bytes a round brings, and who gets ours in it. */
static uint32_t source_of(const struct coll *c, const struct coll_exchange *x,
			  uint32_t round)
{
	return behind(c, algorithm_distance(x->algorithm, round));
}

static uint32_t sink_of(const struct coll *c, enum coll_algorithm a,
			uint32_t round)
{
	return ahead(c, algorithm_distance(a, round));
}

/* NULL: it is lost, maybe since before this began, and needs nothing any more. */
static const struct coll_peer *sink_peer(const struct coll *c,
					 const struct coll_exchange *x,
					 uint32_t round)
{
	return coll_peer_at(c, sink_of(c, x->algorithm, round));
}

struct coll_peer *coll_far(const struct coll *c, uint32_t position)
{
	for (uint32_t i = 0; i < c->nfar; i++)
		if (c->far[i].position == position)
			return &c->far[i];
	return NULL;
}

uint32_t coll_far_positions(const struct coll *c, const uint32_t **positions)
{
	*positions = c->far_positions;
	return c->nfar;
}

static void add_far(struct coll *c, uint32_t position)
{
	for (uint32_t i = 0; i <= c->place.children; i++)
		if (c->peers[i].position == position)
			return;
	if (position == c->place.range.first || coll_far(c, position))
		return;
	c->far_positions[c->nfar] = position;
	coll_peer_init(&c->far[c->nfar++], position);
}

/* Every distance of every algorithm is one of doubling. */
int coll_far_create(struct coll *c)
{
	uint32_t rounds = algorithm_rounds(COLL_BY_DOUBLING, c->nodes);

	if (!coll_plan_needed(c))
		return 0;
	c->far = calloc(2 * rounds, sizeof(*c->far));
	c->far_positions = calloc(2 * rounds, sizeof(*c->far_positions));
	if (!c->far || !c->far_positions)
		return -ENOMEM;
	for (uint32_t i = 0; i < rounds; i++) {
		uint32_t distance = algorithm_distance(COLL_BY_DOUBLING, i);

		add_far(c, ahead(c, distance));
		add_far(c, behind(c, distance));
	}
	return 0;
}

/* ---- the exchanges under way ---- */

static struct coll_exchange *find(const struct coll *c, enum coll_kind kind,
				  uint32_t seq)
{
	struct coll_exchange *x = c->exchanges;

	while (x && (x->kind != kind || x->seq != seq))
		x = x->next;
	return x;
}

static struct coll_exchange *open_exchange(struct coll *c, enum coll_kind kind,
					   uint32_t seq, enum coll_algorithm a)
{
	struct coll_exchange *x = find(c, kind, seq);

	if (x)
		return x;
	x = calloc(1, sizeof(*x));
	if (!x)
		return NULL;
	x->kind = kind;
	x->seq = seq;
	x->algorithm = a;
	x->rounds = algorithm_rounds(a, c->nodes);
	x->next = c->exchanges;
	c->exchanges = x;
	return x;
}

static void free_exchange(struct coll_exchange **at)
{
	struct coll_exchange *x = *at;

	*at = x->next;
	payload_unref(x->bytes);
	free(x);
}

static bool is_served(const struct coll *c, const struct coll_exchange *x)
{
	for (uint32_t i = 0; i < x->rounds; i++)
		if (!x->serving[i].over && sink_peer(c, x, i))
			return false;
	return true;
}

/* Those that nobody needs any more. */
static void free_served(struct coll *c)
{
	struct coll_exchange **at = &c->exchanges;

	while (*at) {
		if ((*at)->done && is_served(c, *at))
			free_exchange(at);
		else
			at = &(*at)->next;
	}
}

void coll_exchange_cut(struct coll *c, enum coll_kind kind, uint32_t from)
{
	struct coll_exchange **at = &c->exchanges;

	while (*at) {
		if ((*at)->kind == kind && (*at)->seq >= from)
			free_exchange(at);
		else
			at = &(*at)->next;
	}
}

size_t coll_exchange_lingering(const struct coll *c)
{
	size_t n = 0;

	for (const struct coll_exchange *x = c->exchanges; x; x = x->next)
		n += x->done;
	return n;
}

uint32_t coll_exchange_first(const struct coll *c, enum coll_kind kind)
{
	uint32_t first = COLL_NEVER;

	for (const struct coll_exchange *x = c->exchanges; x; x = x->next)
		if (x->kind == kind && x->started && !x->done && x->seq < first)
			first = x->seq;
	return first;
}

static bool needs(const struct coll *c, const struct coll_exchange *x,
		  uint32_t position)
{
	for (uint32_t i = x->round; i < x->rounds; i++)
		if (source_of(c, x, i) == position)
			return x->started && !x->done;
	return false;
}

void coll_exchange_lost(struct coll *c, uint32_t position,
			uint32_t from[COLL_KINDS])
{
	for (const struct coll_exchange *x = c->exchanges; x; x = x->next)
		if (needs(c, x, position) && x->seq < from[x->kind])
			from[x->kind] = x->seq;
	free_served(c);
}

/* ---- serving ---- */

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* `len` bytes from the one that is `at` behind our first. 0 or -ENOMEM. */
static int send_run(struct coll *c, const struct coll_exchange *x, uint32_t i,
		    uint64_t at, size_t len, bool more)
{
	struct coll_msg msg = {
		.type = COLL_MSG_DATA, .kind = x->kind, .seq = x->seq,
		.round = i, .more = more,
	};
	struct payload *piece = NULL;
	struct payload_vec body = { .items = &piece };

	if (len) {
		piece = payload_slice(x->bytes, (x->before + at) % x->total,
				      len);
		if (!piece)
			return -ENOMEM;
		body.count = 1;
		body.bytes = len;
	}
	coll_send(c, sink_peer(c, x, i), &msg, &body);
	payload_unref(piece);
	return 0;
}

/* What can be sent without a break, from `at`. */
static size_t run_length(const struct coll *c, const struct coll_exchange *x,
			 uint64_t at, uint64_t end)
{
	uint64_t to_wrap = x->total - (x->before + at) % x->total;

	return least(least(end - at, to_wrap), c->piece);
}

/* Send what a round's taker can have now. 0 or -ENOMEM. */
static int serve(struct coll *c, struct coll_exchange *x, uint32_t i)
{
	struct coll_serving *s = &x->serving[i];
	bool streams = algorithm_streams(x->algorithm);
	bool known = streams || x->round >= i;
	uint64_t goal = streams || !known ? s->room : least(s->limit, s->room);
	uint64_t end = least(x->held, goal);
	bool more = true;

	if (!s->wanted || s->over || !sink_peer(c, x, i))
		return 0;
	while (s->sent < end) {
		size_t len = run_length(c, x, s->sent, end);

		more = !known || s->sent + len < goal;
		if (send_run(c, x, i, s->sent, len, more))
			return -ENOMEM;
		s->sent += len;
	}
	if (!known || s->sent < goal)
		return 0;
	s->over = true;
	return more ? send_run(c, x, i, 0, 0, false) : 0;
}

/* False: there was no memory, and x is gone. */
static bool serve_all(struct coll *c, struct coll_exchange *x)
{
	int rc = 0;

	for (uint32_t i = 0; !rc && x->started && i < x->rounds; i++)
		rc = serve(c, x, i);
	if (rc)
		coll_fault_no_memory(c, x->kind, x->seq);
	return rc == 0;
}

/* ---- receiving ---- */

static void give_up(struct coll *c, const struct coll_exchange *x,
		    const char *what)
{
	uint32_t from[COLL_KINDS] = { COLL_NEVER, COLL_NEVER, COLL_NEVER };
	char why[COLL_REASON_MAX];

	from[x->kind] = x->seq;
	snprintf(why, sizeof(why), "the node of rank %u: %s", c->ranks[0],
		 what);
	coll_fault_raise(c, from, why);
}

static void finish(struct coll *c, struct coll_exchange *x)
{
	struct coll_op *op = coll_op_find(c, x->kind, x->seq);
	struct payload_vec parts = { .items = &x->bytes };
	char why[COLL_REASON_MAX];

	if (x->total) {
		parts.count = 1;
		parts.bytes = x->total;
	}
	x->done = true;
	op->result.bytes = coll_gather_combine(c, x->kind, x->seq, &parts, why);
	if (!op->result.bytes)
		op->result.reason = coll_reason_new(why);
	op->result.ended = true;
	coll_gather_end(c, x->kind);
	free_served(c);
}

/* Say what the next round is to bring. False: it cannot, and x is gone. */
static bool begin_round(struct coll *c, struct coll_exchange *x)
{
	struct coll_msg msg = {
		.type = COLL_MSG_WANT, .kind = x->kind, .seq = x->seq,
		.algorithm = x->algorithm, .round = x->round,
		.size = x->total - x->held,
	};
	struct coll_peer *peer = coll_peer_at(c, source_of(c, x, x->round));

	x->serving[x->round].limit = x->held;
	if (!peer) {
		give_up(c, x, "a node whose data it needs has gone");
		return false;
	}
	peer->active = true;
	coll_send(c, peer, &msg, NULL);
	return true;
}

/* A round is over, or the first begins. */
static void go_on(struct coll *c, struct coll_exchange *x)
{
	if (x->round < x->rounds && !begin_round(c, x))
		return;
	if (!serve_all(c, x) || x->round < x->rounds)
		return;
	if (x->held == x->total)
		finish(c, x);
	else
		give_up(c, x, "less came than the nodes said they have");
}

/* ---- starting ---- */

/*
 * Nothing of it is touched before bytes come: from its size on the C library
 * maps memory for which the system makes a page at the first write.
 */
static struct payload *own_room(const struct coll *c, const struct coll_op *op,
				uint64_t total)
{
	for (uint32_t i = 0; i < c->nslots; i++) {
		const struct payload *p = op->parts[i].data.first;

		if (p)
			return p->data ? payload_new(total) :
					 payload_virtual(total);
	}
	return payload_new(total);
}

/* Put our own bytes where they belong. */
static void copy_own(const struct coll *c, struct coll_exchange *x,
		     struct coll_op *op)
{
	for (uint32_t i = 0; i < c->nslots; i++) {
		const struct payload *p = op->parts[i].data.first;

		if (p && p->data && x->bytes->data)
			memcpy(x->bytes->data + x->before + x->held, p->data,
			       p->len);
		x->held += p ? p->len : 0;
		coll_data_clear(&op->parts[i].data);
	}
}

void coll_exchange_start(struct coll *c, enum coll_kind kind, uint32_t seq,
			 enum coll_algorithm a, uint64_t before,
			 uint64_t total)
{
	struct coll_op *op = coll_op_find(c, kind, seq);
	struct coll_exchange *x = open_exchange(c, kind, seq, a);

	if (x && x->algorithm != a) {
		give_up(c, x, "two nodes have told it of two algorithms");
		return;
	}
	if (x)
		x->bytes = own_room(c, op, total);
	if (!x || !x->bytes) {
		coll_fault_no_memory(c, kind, seq);
		return;
	}
	x->started = true;
	x->before = before;
	x->total = total;
	for (uint32_t i = 0; i < x->rounds; i++)
		x->serving[i].room = least(x->serving[i].room, total);
	copy_own(c, x, op);
	go_on(c, x);
}

/* ---- messages ---- */

/* Who has the plan already wants something of us. */
static bool may_be_wanted(const struct coll *c, const struct coll_msg *msg)
{
	const struct coll_op *op = coll_op_find(c, msg->kind, msg->seq);

	return find(c, msg->kind, msg->seq) ||
	       (op && op->route == COLL_OPEN && !op->missing);
}

static int receive_want(struct coll *c, const struct coll_peer *peer,
			const struct coll_msg *msg)
{
	struct coll_exchange *x;
	struct coll_serving *s;

	if (msg->round >= algorithm_rounds(msg->algorithm, c->nodes) ||
	    sink_of(c, msg->algorithm, msg->round) != peer->position ||
	    !may_be_wanted(c, msg))
		return -EPROTO;
	x = open_exchange(c, msg->kind, msg->seq, msg->algorithm);
	if (!x) {
		coll_fault_no_memory(c, msg->kind, msg->seq);
		return 0;
	}
	s = &x->serving[msg->round];
	if (x->algorithm != msg->algorithm || s->wanted ||
	    (x->started && msg->size > x->total))
		return -EPROTO;
	s->wanted = true;
	s->room = msg->size;
	if (serve_all(c, x))
		free_served(c);
	return 0;
}

/* The exchange to which these bytes belong, or NULL. */
static struct coll_exchange *awaits_data(const struct coll *c,
					 const struct coll_peer *peer,
					 const struct coll_msg *msg, size_t len)
{
	struct coll_exchange *x = find(c, msg->kind, msg->seq);

	if (!x || !x->started || x->done || msg->round != x->round ||
	    source_of(c, x, x->round) != peer->position ||
	    len > x->total - x->held || (len == 0 && msg->more))
		return NULL;
	if (len && len > x->total - (x->before + x->held) % x->total)
		return NULL;
	return x;
}

static struct payload *place_of(const struct coll_exchange *x, size_t len)
{
	return payload_slice(x->bytes, (x->before + x->held) % x->total, len);
}

struct payload *coll_exchange_room(struct coll *c, const struct coll_peer *peer,
				   const struct coll_msg *msg, size_t len)
{
	struct coll_exchange *x = awaits_data(c, peer, msg, len);

	return x ? place_of(x, len) : NULL;
}

static void keep(struct coll_exchange *x, const struct payload *body)
{
	unsigned char *at = x->bytes->data;

	if (at && body->data) {
		at += (x->before + x->held) % x->total;
		if (at != body->data)
			memcpy(at, body->data, body->len);
	}
	x->held += body->len;
}

static int receive_data(struct coll *c, const struct coll_peer *peer,
			const struct coll_msg *msg, const struct payload *body)
{
	struct coll_exchange *x = awaits_data(c, peer, msg,
					      body ? body->len : 0);

	if (!x)
		return -EPROTO;
	if (body)
		keep(x, body);
	if (msg->more) {
		serve_all(c, x);
		return 0;
	}
	x->round++;
	go_on(c, x);
	return 0;
}

int coll_exchange_receive(struct coll *c, struct coll_peer *peer,
			  const struct coll_msg *msg, struct payload *body)
{
	if (msg->kind != COLL_FENCE && msg->kind != COLL_GATHER)
		return -EPROTO;
	peer->active = true;
	coll_fault_tell(c, peer); /* it may wait for what has failed here */
	if (coll_covered(c, msg->kind, msg->seq))
		return 0;
	if (msg->type == COLL_MSG_WANT)
		return receive_want(c, peer, msg);
	return receive_data(c, peer, msg, body);
}
