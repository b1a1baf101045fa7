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
#define JOURNAL_MAX ((size_t)1 << 40) /* bytes */
#define SLICE (3 * SIM_MS) /* that Linux gives a process on a core that others wait for */

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
		cost += m.type != DVM_LAUNCH ? 0 : h->tree ? p->bundle : p->place;
	return cost;
}

/*
 * Where heads, daemons and processes share some cores, nodes get their messages one after the
 * other: meanwhile the first ones start processes, for which the head waits.
 */
static bool sends_singly(const struct sim_head *h)
{
	return h->sim->core_free && !h->tree;
}

static void node_send(void *arg, uint32_t position, const void *data, size_t len)
{
	struct sim_head *h = arg;

	if (!sends_singly(h))
		h->cost += cost_of(h, data, len);
	if (h->tree && tree_head_send(h->tree, position, data, len))
		dvm_sim_fail(h->sim, "not enough memory");
	if (!h->tree)
		dvm_frames_add(&h->out, dvm_frame_new(h->sim, h->members[position], 0, data, len));
}

static void node_break(void *arg, uint32_t position, const char *why)
{
	struct sim_head *h = arg;

	dvm_sim_fail(h->sim, "the head closes the link of node %u: %s", h->members[position],
		     why);
}

static void client_send(void *arg, uint32_t client, const char *line, size_t len)
{
	struct sim_head *h = arg;

	dvm_frames_add(&h->lines, dvm_frame_new(h->sim, h->number, 0, line, len));
}

/* The journal is a file that never fails, and is safe at once. */
static int record(void *arg, const void *data, size_t len, enum durable_wait wait)
{
	struct sim_head *h = arg;
	size_t at = h->journal.len;
	int rc = buf_append(&h->journal, data, len);

	if (!rc)
		journal_seal(&h->chain, h->journal.data + at, len);
	return rc;
}

static void end(void *arg)
{
}

/* ---- life ---- */

/* The nodes that live, in order. */
static int find_members(struct sim_head *h)
{
	const struct dvm_sim *s = h->sim;

	h->nmembers = 0;
	for (uint32_t i = h->first; i < h->first + h->nodes; i++)
		if (!s->nodes || !s->nodes[i].lost) /* no node is lost before there are any */
			h->members[h->nmembers++] = i;
	return h->nmembers ? 0 : dvm_sim_fail(h->sim, "DVM %u has lost all its nodes", h->number + 1);
}

int sim_head_begin(struct sim_head *h)
{
	static const struct dvm_head_ops ops = {
		.format = &dvm_json, .node_send = node_send, .node_break = node_break,
		.client_send = client_send, .record = record, .end = end,
	};
	const struct dvm_params *p = &h->sim->scenario->dvm;
	struct dvm_head_options options = {
		.name = "sim", .build = "sim",
		.queue = { (enum queue_order)p->order, (uint32_t)p->window, (uint64_t)(p->patience / SIM_MS) },
		.simulated = true, .began_ns = dvm_sim_time(h->sim->now).wall_ns,
		.grace_ms = 10000, .max_waiting = p->max_waiting, .fast = true,
		.member = p->dvms > 1 ? h->number + 1 : 0,
		.members = p->dvms > 1 ? (uint32_t)p->dvms : 0,
	};

	if (find_members(h))
		return -1;
	options.nodes = h->nmembers;
	h->due = SIM_TIME_MAX;
	h->ready = h->busy = h->is_due = false;
	if (dvm_head_create(&h->head, &options, &ops, h, NULL))
		return dvm_sim_fail(h->sim, "not enough memory");
	dvm_head_client_opened(h->head, CLIENT);
	return sim_tree_head_begin(h);
}

static int make(struct dvm_sim *s, struct sim_head *h, uint32_t number)
{
	const struct dvm_params *p = &s->scenario->dvm;

	h->sim = s;
	h->number = number;
	h->nodes = (uint32_t)(p->nodes / p->dvms + (number < p->nodes % p->dvms));
	h->first = number ? h[-1].first + h[-1].nodes : 0;
	h->members = calloc(h->nodes, sizeof(*h->members));
	buf_init(&h->journal, JOURNAL_MAX);
	journal_chain_init(&h->chain);
	if (!h->members || (p->journal && journal_put_header(&h->journal)))
		return dvm_sim_fail(s, "not enough memory");
	return sim_head_begin(h);
}

int sim_heads_make(struct dvm_sim *s)
{
	s->awaited = s->nheads = (uint32_t)s->scenario->dvm.dvms;
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

static void move_requests(struct dvm_frames *from, struct dvm_frames *to)
{
	struct dvm_frame *f;

	while ((f = dvm_frames_take(from)))
		if (f->from == DVM_FROM_CLIENT)
			dvm_frames_add(to, f);
		else
			free(f);
}

static void add_traffic(const struct sim_head *h, struct dvm_traffic *to)
{
	struct dvm_traffic t;

	dvm_head_traffic(h->head, &t);
	to->messages += t.messages;
	to->bytes += t.bytes;
}

void sim_heads_traffic(const struct dvm_sim *s, struct dvm_traffic *out)
{
	*out = s->traffic;
	for (uint32_t i = 0; i < s->nheads; i++)
		if (s->heads[i].head)
			add_traffic(&s->heads[i], out);
}

/* Requests that it has not taken up come again when another head is ready. */
void sim_head_die(struct sim_head *h)
{
	add_traffic(h, &h->sim->traffic);
	dvm_head_destroy(h->head);
	sim_tree_head_end(h);
	h->head = NULL;
	h->life++;
	h->ready = false;
	move_requests(&h->in, &h->kept);
	drop(&h->out);
	drop(&h->lines);
}

void sim_heads_free(struct dvm_sim *s)
{
	for (uint32_t i = 0; s->heads && i < s->nheads; i++) {
		struct sim_head *h = &s->heads[i];

		if (h->head)
			dvm_head_destroy(h->head);
		sim_tree_head_end(h);
		drop(&h->in);
		drop(&h->out);
		drop(&h->lines);
		drop(&h->kept);
		buf_free(&h->journal);
		free(h->members);
		free(h->have_ended);
		free(h->rows);
	}
	free(s->heads);
}

/* ---- work ---- */

/* To a head that is lost, or was when it was sent. */
static void take_late(struct sim_head *h, struct dvm_frame *f)
{
	if (f->from != DVM_FROM_CLIENT || h->given_up)
		free(f);
	else if (h->ready)
		dvm_sim_send(h->sim, h->sim->now, EVENT_DVM_TO_HEAD, f);
	else
		dvm_frames_add(&h->kept, f);
}

void sim_head_take(struct dvm_sim *s, struct dvm_frame *f)
{
	struct sim_head *h = &s->heads[f->to];

	if (!h->head || f->life != h->life) {
		take_late(h, f);
		return;
	}
	dvm_frames_add(&h->in, f);
	if (h->busy)
		return;
	h->busy = true;
	dvm_sim_add(s, s->now, EVENT_DVM_HEAD, h->number);
}

/*
 * A node that comes costs a handshake, or, if it comes through a relay, less. Each end of a
 * part is counted.
 */
static sim_time input_cost(const struct sim_head *h, const void *data, size_t len)
{
	const struct dvm_params *p = &h->sim->scenario->dvm;
	struct dvm_msg m;
	struct cursor c;
	sim_time cost = 0;

	cursor_init(&c, data, len);
	while (cursor_left(&c) && !dvm_msg_unpack(&c, &m))
		cost += m.type == DVM_REGISTER ? (h->tree ? p->enter : p->connect) :
			m.type == DVM_ENDED ? p->end : 0;
	return cost;
}

static uint64_t tasks_in(const struct dvm_frame *f)
{
	uint64_t n = 0;

	for (const char *c = f->data; (c = strstr(c, "\"argv\"")); c++)
		n++;
	return n;
}

/* The head's clock in a turn goes on with its work. */
static struct dvm_time clock_of(const struct sim_head *h)
{
	return dvm_sim_time(dvm_sim_core_free(h->sim) + h->cost);
}

void sim_head_node_says(struct sim_head *h, uint32_t position, const void *data, size_t len)
{
	h->cost += input_cost(h, data, len);
	dvm_head_node_input(h->head, position, data, len, clock_of(h));
}

static void input(struct sim_head *h, const struct dvm_frame *f)
{
	const struct dvm_params *p = &h->sim->scenario->dvm;

	if (f->from == DVM_FROM_CLIENT) {
		dvm_json_request(h->head, CLIENT, f->data, f->len, clock_of(h));
		h->cost += p->submit * (sim_time)tasks_in(f);
	} else if (h->tree) {
		h->cost += f->opens ? p->connect : 0;
		sim_tree_head_input(h, f, dvm_sim_core_free(h->sim) + h->cost);
	} else if (f->lost) {
		dvm_head_node_lost(h->head, f->from, "the node is lost", clock_of(h));
	} else {
		sim_head_node_says(h, f->from, f->data, f->len);
	}
}

static void send(struct sim_head *h, sim_time at, struct dvm_frames *list, enum event_type type)
{
	struct dvm_frame *f;

	while ((f = dvm_frames_take(list)))
		dvm_sim_send(h->sim, at, type, f);
}

/* With a journal of an earlier head, this one goes on with it. */
static void begin_journal(struct sim_head *h)
{
	struct dvm_resumed found;
	struct journal_reader in;
	uint32_t version;
	int rc;

	if (!h->sim->scenario->dvm.journal)
		return;
	if (!h->life) {
		dvm_head_keep_journal(h->head);
		return;
	}
	rc = journal_open(&in, h->journal.data, h->journal.len, &version);
	rc = rc ? rc : dvm_head_resume(h->head, &in, false, &found, clock_of(h));
	if (rc)
		dvm_sim_fail(h->sim, "DVM %u cannot go on with its journal: %s", h->number + 1,
			     strerror(-rc));
}

static bool becomes_ready(struct sim_head *h)
{
	if (h->ready || dvm_head_registered(h->head) < h->nmembers)
		return false;
	h->ready = true;
	begin_journal(h);
	return true;
}

static void ask_for_turn(struct sim_head *h)
{
	uint64_t ms = h->ready ? dvm_head_deadline(h->head) : UINT64_MAX;
	uint64_t tree = h->tree ? tree_head_deadline(h->tree) : UINT64_MAX;
	sim_time at;

	ms = tree < ms ? tree : ms;
	at = sim_time_of((double)SIM_MS * ((double)ms - (double)dvm_sim_time(0).ms));

	if (ms == UINT64_MAX)
		return;
	if (at <= h->sim->now)
		at = h->sim->now + SIM_MS;
	if (at >= h->due && h->due > h->sim->now)
		return;
	h->due = at;
	dvm_sim_add(h->sim, at, EVENT_DVM_DUE, h->number);
}

static void work(struct sim_head *h)
{
	struct dvm_sim *s = h->sim;
	struct dvm_frame *f;
	bool begins, tells;
	sim_time at;

	h->cost = 0;
	h->is_due = false;
	while ((f = dvm_frames_take(&h->in))) {
		input(h, f);
		free(f);
	}
	begins = becomes_ready(h);
	dvm_head_turn(h->head, clock_of(h));
	tells = h->tree && sim_tree_head_turn(h);
	at = dvm_sim_spend(s, s->now, h->cost, true);
	if (!sends_singly(h))
		send(h, at + s->scenario->dvm.latency, &h->out, EVENT_DVM_TO_NODE);
	send(h, at + s->scenario->dvm.latency, &h->lines, EVENT_DVM_TO_CLIENT);
	if (tells)
		sim_tree_tell(h, at);
	ask_for_turn(h);
	h->busy = true; /* until it has done this */
	dvm_sim_add(s, at, EVENT_DVM_HEAD, h->number);
	if (!begins)
		return;
	dvm_sim_add(s, at, EVENT_DVM_READY, h->number);
	send(h, at, &h->kept, EVENT_DVM_TO_HEAD);
}

/* Messages of the turn, as long as the head has a core for itself. */
static void send_some(struct sim_head *h)
{
	struct dvm_sim *s = h->sim;
	struct dvm_frames list = { 0 };
	struct dvm_frame *f;
	sim_time cost = 0, at;

	while (cost < SLICE && (f = dvm_frames_take(&h->out))) {
		cost += cost_of(h, f->data, f->len);
		dvm_frames_add(&list, f);
	}
	at = dvm_sim_spend(s, s->now, cost, true);
	send(h, at + s->scenario->dvm.latency, &list, EVENT_DVM_TO_NODE);
	h->busy = true;
	dvm_sim_add(s, at, EVENT_DVM_HEAD, h->number);
}

void sim_head_work(struct dvm_sim *s, uint32_t head)
{
	struct sim_head *h = &s->heads[head];

	h->busy = false;
	if (h->head && h->out.first)
		send_some(h);
	else if (h->head && (h->in.first || h->is_due))
		work(h);
}

void sim_head_due(struct dvm_sim *s, uint32_t head)
{
	struct sim_head *h = &s->heads[head];

	if (!h->head || h->due != s->now)
		return; /* an earlier head's, or one that was done */
	h->due = SIM_TIME_MAX;
	h->is_due = true;
	if (!h->busy)
		work(h);
}
