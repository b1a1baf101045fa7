/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages: what they cost the two processors and network interfaces, and when
 * they arrive. One at a time leaves an interface, one at a time comes in.
 */
#include <stdlib.h>
#include <string.h>

#include "network.h"
#include "sim.h"

/* libio's frame before the head (libio/frames.h, which is not for us). */
#define FRAME_BYTES 8
#define HEAD_ROOM 64 /* bytes of the usual message */

/* ---- memory ---- */

/* Spare ones are chained by their path. */
static struct sim_message *message_new(struct sim *s, size_t head_len)
{
	size_t room = head_len > HEAD_ROOM ? head_len : HEAD_ROOM;
	struct sim_message *m = s->spare;

	if (m && room == HEAD_ROOM)
		s->spare = (struct sim_message *)m->path;
	else
		m = malloc(sizeof(*m) + room);
	if (m)
		m->head_room = room;
	return m;
}

void message_free(struct sim *s, struct sim_message *m)
{
	path_unref(m->path);
	payload_unref(m->body);
	if (m->head_room != HEAD_ROOM) {
		free(m);
		return;
	}
	m->path = (struct path *)s->spare;
	s->spare = m;
}

/* A payload with the node that holds it. */
struct held {
	struct payload payload; /* first: released by its address */
	struct sim_node *owner;
};

static void held_release(struct payload *p)
{
	struct held *h = (struct held *)p;

	h->owner->held -= p->len;
	free(h);
}

struct payload *payload_held(struct sim_node *n, size_t len,
			     struct payload *bytes)
{
	struct held *h = calloc(1, sizeof(*h));

	if (!h)
		return NULL;
	h->payload.refs = 1;
	h->payload.len = len;
	h->payload.data = bytes ? bytes->data : NULL;
	h->payload.parent = payload_ref(bytes);
	h->payload.release = held_release;
	h->owner = n;
	n->held += len;
	stats_memory(n);
	return &h->payload;
}

/* ---- sending ---- */

static sim_time most(sim_time a, sim_time b)
{
	return a > b ? a : b;
}

static sim_time soon(sim_time at)
{
	return at < SIM_TIME_MAX ? at : SIM_TIME_MAX;
}

/* The processor's part, at either end. */
static double work(const struct sim *s, const struct sim_message *m,
		   double once)
{
	bool connects = s->protocol->connects && m->to < s->nnodes;

	return once + m->wire * (double)s->scenario->node.copy +
	       (connects ? s->scenario->node.connect : 0);
}

/*
 * When the first byte would arrive, had the link the speed of the interfaces:
 * a slow link has a queue of its own and does not hold up the interface.
 */
static sim_time over_slow_link(struct sim_node *n, const struct sim_node *to,
			       const struct sim_message *m, int link,
			       sim_time start)
{
	struct sim *s = n->sim;
	double factor = s->scenario->slow[link].factor;
	sim_time *free_at = &s->slow_free[link][n->position < to->position];
	sim_time latency = network_latency(&s->scenario->network, n->id,
					   to->id);

	*free_at = sim_time_of(most(start, *free_at) + m->inside * factor);
	return *free_at - m->inside + sim_time_of(latency * factor);
}

/* When its first byte arrives; the interface is busy with it meanwhile. */
static sim_time leave(struct sim_node *n, const struct sim_node *to,
		      struct sim_message *m)
{
	const struct scenario *sc = n->sim->scenario;
	sim_time start = most(n->now, n->out_free);
	int link = sc->nslow ? network_slow_link(sc, n->id, to->id) : -1;

	m->inside = sim_time_of(m->wire * (double)sc->network.byte_gap);
	n->out_free = soon(start + sc->network.gap + m->inside);
	if (link >= 0)
		return over_slow_link(n, to, m, link, start);
	return start + sim_time_of(n->sim->drift *
				   (double)network_latency(&sc->network, n->id, to->id));
}

void message_send(struct sim_node *n, uint32_t to, uint32_t phase,
		  const void *head, size_t head_len, uint64_t body_len,
		  struct payload *body)
{
	struct sim *s = n->sim;
	struct sim_message *m = message_new(s, head_len);

	if (!m) {
		sim_fail(s, "not enough memory for the messages under way");
		return;
	}
	m->path = path_ref(n->path);
	m->body = payload_ref(body);
	m->body_len = body_len;
	m->from = n->position;
	m->to = to;
	m->wire = FRAME_BYTES + head_len + body_len;
	m->phase = phase;
	m->head_len = head_len;
	memcpy(m->head, head, head_len);
	node_spend(n, work(s, m, s->scenario->network.send));
	stats_sent(n, m);
	sim_add(s, (struct event){
		.type = EVENT_MESSAGE, .message = m,
		.at = leave(n, &s->nodes[to], m),
	});
}

/* ---- receiving ---- */

/* Behind what is still coming in; then it is the processor's. */
static void take_in(struct sim_node *n, struct sim_message *m, sim_time at)
{
	const struct network_params *p = &n->sim->scenario->network;
	sim_time start = most(at, n->in_free);

	n->in_free = soon(start + m->inside + p->gap);
	node_begin(n, start + m->inside, m->path, PATH_NO_RANK);
	node_spend(n, work(n->sim, m, p->receive));
	stats_received(n, m);
	n->sim->protocol->receive(n, m);
	node_end(n);
}

void message_arrives(struct sim *s, struct sim_message *m, sim_time at)
{
	struct sim_node *from = &s->nodes[m->from], *to = &s->nodes[m->to];

	from->queued -= m->wire;
	if (!s->faulty || !fault_takes(s, from, to, at))
		take_in(to, m, at);
	else if (!from->dead)
		sim_add(s, (struct event){
			.type = EVENT_LOST, .a = m->from, .b = m->to,
			.at = at + s->scenario->network.detect,
		});
	message_free(s, m);
}
