/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Hosts of simulated heads. A head takes up all that has come, as its loop does, and is
 * busy for as long as that costs; then what it says leaves.
 */
#include <stdlib.h>
#include <string.h>

#include "dvm_sim.h"
#include "dvm/json/dvm_json.h"

#define CLIENT 1 /* its number for each head */

/* ---- operations ---- */

/* The head's work for messages that are for a node. */
static sim_time cost_of(const struct sim_head *h, const void *data, size_t len)
{
	const struct dvm_params *p = &h->sim->scenario->dvm;
	struct dvm_msg m;
	struct cursor c;
	sim_time cost = 0;

	cursor_init(&c, data, len);
	while (cursor_left(&c) && !dvm_msg_unpack(&c, &m))
		cost += m.type == DVM_LAUNCH ? p->place : 0;
	return cost;
}

static void node_send(void *arg, uint32_t position, const void *data, size_t len)
{
	struct sim_head *h = arg;

	h->cost += cost_of(h, data, len);
	h->sim->messages++;
	h->sim->bytes += len;
	dvm_frames_add(&h->out, dvm_frame_new(h->sim, h->first + position, 0, data, len));
}

static void node_break(void *arg, uint32_t position, const char *why)
{
	struct sim_head *h = arg;

	dvm_sim_fail(h->sim, "the head closes the link of node %u: %s", h->first + position,
		     why);
}

static void client_send(void *arg, uint32_t client, const char *line, size_t len)
{
	struct sim_head *h = arg;

	dvm_frames_add(&h->lines, dvm_frame_new(h->sim, h->number, 0, line, len));
}

static void end(void *arg)
{
}

/* ---- life ---- */

static int make(struct dvm_sim *s, struct sim_head *h, uint32_t number)
{
	static const struct dvm_head_ops ops = {
		.format = &dvm_json, .node_send = node_send, .node_break = node_break,
		.client_send = client_send, .end = end,
	};
	const struct dvm_params *p = &s->scenario->dvm;
	const struct dvm_head_options options = {
		.name = "sim", .build = "sim",
		.nodes = (uint32_t)(p->nodes / p->dvms + (number < p->nodes % p->dvms)),
		.queue = { (enum queue_order)p->order, (uint32_t)p->window, (uint64_t)(p->patience / SIM_MS) },
		.grace_ms = 10000, .max_waiting = p->max_waiting, .fast = true,
		.member = p->dvms > 1 ? number + 1 : 0,
		.members = p->dvms > 1 ? (uint32_t)p->dvms : 0,
	};

	h->sim = s;
	h->number = number;
	h->nodes = options.nodes;
	h->first = number ? h[-1].first + h[-1].nodes : 0;
	if (dvm_head_create(&h->head, &options, &ops, h, NULL))
		return dvm_sim_fail(s, "not enough memory");
	dvm_head_client_opened(h->head, CLIENT);
	return 0;
}

int sim_heads_make(struct dvm_sim *s)
{
	s->nheads = (uint32_t)s->scenario->dvm.dvms;
	s->heads = calloc(s->nheads, sizeof(*s->heads));
	for (uint32_t i = 0; s->heads && i < s->nheads; i++)
		if (make(s, &s->heads[i], i))
			return -1;
	return s->heads ? 0 : dvm_sim_fail(s, "not enough memory");
}

static void drop(struct dvm_frames *list)
{
	struct dvm_frame *f;

	while ((f = dvm_frames_take(list)))
		free(f);
}

void sim_heads_free(struct dvm_sim *s)
{
	for (uint32_t i = 0; s->heads && i < s->nheads; i++) {
		struct sim_head *h = &s->heads[i];

		if (h->head)
			dvm_head_destroy(h->head);
		drop(&h->in);
		drop(&h->out);
		drop(&h->lines);
		free(h->rows);
	}
	free(s->heads);
}

/* ---- work ---- */

void sim_head_take(struct dvm_sim *s, struct dvm_frame *f)
{
	struct sim_head *h = &s->heads[f->to];

	dvm_frames_add(&h->in, f);
	if (h->busy)
		return;
	h->busy = true;
	dvm_sim_add(s, s->now, EVENT_DVM_HEAD, h->number);
}

/* Each node's first message costs the handshake, each end of a part is counted. */
static sim_time input_cost(const struct dvm_params *p, const struct dvm_frame *f)
{
	struct dvm_msg m;
	struct cursor c;
	sim_time cost = 0;

	cursor_init(&c, f->data, f->len);
	while (cursor_left(&c) && !dvm_msg_unpack(&c, &m))
		cost += m.type == DVM_REGISTER ? p->connect : m.type == DVM_ENDED ? p->end : 0;
	return cost;
}

static uint64_t tasks_in(const struct dvm_frame *f)
{
	uint64_t n = 0;

	for (const char *c = f->data; (c = strstr(c, "\"argv\"")); c++)
		n++;
	return n;
}

static void input(struct sim_head *h, const struct dvm_frame *f)
{
	const struct dvm_params *p = &h->sim->scenario->dvm;
	struct dvm_time now = dvm_sim_time(h->sim->now);

	if (f->from == DVM_FROM_CLIENT) {
		h->cost += p->submit * (sim_time)tasks_in(f);
		dvm_json_request(h->head, CLIENT, f->data, f->len, now);
	} else {
		h->cost += input_cost(p, f);
		dvm_head_node_input(h->head, f->from, f->data, f->len, now);
	}
}

static void send(struct sim_head *h, struct dvm_frames *list, enum event_type type)
{
	struct dvm_sim *s = h->sim;
	struct dvm_frame *f;

	while ((f = dvm_frames_take(list)))
		dvm_sim_send(s, s->now + h->cost + s->scenario->dvm.latency, type, f);
}

void sim_head_work(struct dvm_sim *s, uint32_t head)
{
	struct sim_head *h = &s->heads[head];
	bool was_ready = dvm_head_registered(h->head) == h->nodes;
	struct dvm_frame *f;

	h->busy = false;
	if (!h->in.first)
		return;
	h->cost = 0;
	while ((f = dvm_frames_take(&h->in))) {
		input(h, f);
		free(f);
	}
	dvm_head_turn(h->head, dvm_sim_time(s->now));
	send(h, &h->out, EVENT_DVM_TO_NODE);
	send(h, &h->lines, EVENT_DVM_TO_CLIENT);
	h->busy = true; /* until it has done this */
	dvm_sim_add(s, s->now + h->cost, EVENT_DVM_HEAD, head);
	if (!was_ready && dvm_head_registered(h->head) == h->nodes)
		dvm_sim_add(s, s->now + h->cost, EVENT_DVM_READY, head);
}
