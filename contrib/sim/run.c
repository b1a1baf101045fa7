/* SPDX-License-Identifier: BSD-3-Clause */
/* The loop of the simulation, processors of nodes, programs of ranks. */
#include <stdarg.h>
#include <stdio.h>

#include "contents.h"
#include "sim.h"

#define PROGRESS_EVERY 16384 /* events */

void sim_fail(struct sim *s, const char *fmt, ...)
{
	va_list ap;

	if (s->failed)
		return;
	s->failed = true;
	va_start(ap, fmt);
	vsnprintf(s->error, sizeof(s->error), fmt, ap);
	va_end(ap);
}

void sim_add(struct sim *s, struct event e)
{
	if (e.at > SIM_TIME_MAX)
		sim_fail(s, "the simulated time exceeds %.0f s: use shorter times or smaller factors",
			 units_seconds(SIM_TIME_MAX));
	else if (events_add(&s->events, e))
		return;
	else
		sim_fail(s, "not enough memory for %zu events",
			 s->events.count);
	if (e.type == EVENT_MESSAGE)
		message_free(s, e.message);
}

/* ---- processors ---- */

/* The core that is free first, of those that nodes share. */
static sim_time *first_core(struct sim *s)
{
	sim_time *first = s->core_free;

	for (uint64_t i = 1; i < s->scenario->node.cores; i++)
		if (s->core_free[i] < *first)
			first = &s->core_free[i];
	return first;
}

void node_begin(struct sim_node *n, sim_time at, struct path *cause,
		uint32_t rank)
{
	const bool idle = n->cpu_free <= at;

	n->now = at;
	if (!idle) {
		n->now = n->cpu_free; /* the same reason as before */
	} else {
		path_unref(n->path);
		n->path = path_new(n->position, rank, at, cause);
	}
	if (n->sim->core_free && *first_core(n->sim) > n->now)
		n->now = *first_core(n->sim);
	if (idle)
		node_spend(n, n->sim->scenario->node.resume);
}

void node_spend(struct sim_node *n, double cost)
{
	const uint64_t spread = n->sim->scenario->node.spread;

	if (cost <= 0)
		return; /* nor is a random number drawn */
	cost *= n->factor * n->sim->drift;
	if (spread)
		cost *= random_factor(&n->sim->work, (double)spread / 100);
	n->now += sim_time_of(cost);
	if (n->now > SIM_TIME_MAX)
		n->now = SIM_TIME_MAX; /* everything later is after the end */
}

void node_end(struct sim_node *n)
{
	n->cpu_free = n->now;
	if (n->sim->core_free)
		*first_core(n->sim) = n->now;
}

/* ---- ranks ---- */

uint32_t rank_number(const struct sim *s, uint32_t index)
{
	return layout_order(s->layout)[index];
}

static void go_on_at(struct sim *s, uint32_t index, sim_time at)
{
	sim_add(s, (struct event){
		.type = EVENT_ENTER, .a = index, .at = at,
	});
}

static void note_exit(struct sim_node *n, uint32_t phase, sim_time at,
		      const char *why)
{
	struct phase *p = &n->sim->phases[phase];

	if (p->succeeded + p->failed == 0 || at < p->first_exit)
		p->first_exit = at;
	if (p->succeeded + p->failed == 0 || at > p->last_exit) {
		p->last_exit = at;
		path_unref(p->path);
		p->path = path_ref(n->path);
	}
	if (why && !p->failed)
		snprintf(p->reason, sizeof(p->reason), "%s", why);
	*(why ? &p->failed : &p->succeeded) += 1;
}

/* Each rank that gets the result of an operation costs this much at its end. */
static double own_work(const struct sim *s, uint32_t op)
{
	const struct node_params *p = &s->scenario->node;

	switch (s->scenario->ops[op].kind) {
	case OP_RING:
		return p->answer;
	case OP_ALLGATHER:
		return p->read ? contents_result_len(s, op) * (double)p->read : 0;
	default:
		return 0;
	}
}

void rank_exits(struct sim_node *n, uint32_t slot, const char *why)
{
	struct sim_rank *r = &n->sim->ranks[n->first + slot];
	sim_time at;

	node_spend(n, n->sim->scenario->node.wake);
	if (!why)
		node_spend(n, own_work(n->sim, r->next));
	at = n->now > r->busy_until ? n->now : r->busy_until;
	note_exit(n, r->next, at, why);
	r->waiting = false;
	r->next++;
	go_on_at(n->sim, n->first + slot, at);
}

void rank_asks_on(struct sim_node *n, uint32_t slot)
{
	node_spend(n, n->sim->scenario->node.wake);
	go_on_at(n->sim, n->first + slot, n->now);
}

void rank_leaves(struct sim_node *n, uint32_t slot, const char *why)
{
	struct sim_rank *r = &n->sim->ranks[n->first + slot];

	r->gone = true;
	if (n->sim->protocol->rank_gone && n->state)
		n->sim->protocol->rank_gone(n, slot, why);
}

static void note_entry(struct sim_node *n, uint32_t phase, uint32_t rank,
		       sim_time at)
{
	struct phase *p = &n->sim->phases[phase];

	if (!p->entered || at < p->first_entry)
		p->first_entry = at;
	if (!p->entered || at >= p->last_entry) {
		p->last_entry = at;
		p->last_rank = rank;
	}
	p->entered++;
}

/* How long a rank computes, beside a collective or not. */
static sim_time drawn_work(struct sim_node *n, const struct scenario_op *op)
{
	return sim_time_of(n->factor *
			   distribution_draw(&op->compute, &n->sim->random));
}

/* The rank computes, and sends nothing. */
static void compute(struct sim_node *n, uint32_t slot, sim_time at)
{
	struct sim *s = n->sim;
	struct sim_rank *r = &s->ranks[n->first + slot];

	at += drawn_work(n, &s->scenario->ops[r->next]);
	note_exit(n, r->next, at, NULL);
	r->next++;
	go_on_at(s, n->first + slot, at);
}

static void enter(struct sim_node *n, uint32_t slot, sim_time at)
{
	struct sim *s = n->sim;
	struct sim_rank *r = &s->ranks[n->first + slot];
	const struct scenario_op *op = &s->scenario->ops[r->next];

	if (op->nonblocking)
		r->busy_until = at + drawn_work(n, op);
	r->waiting = true;
	node_begin(n, at, NULL, rank_number(s, n->first + slot));
	node_spend(n, s->scenario->node.enter);
	s->protocol->enter(n, slot, r->next);
	node_end(n);
}

/* The rank waits, and has got a part of what it waits for. */
static void more(struct sim_node *n, uint32_t slot, sim_time at)
{
	node_begin(n, at, NULL, rank_number(n->sim, n->first + slot));
	n->sim->protocol->more(n, slot, n->sim->ranks[n->first + slot].next);
	node_end(n);
}

static void finish(struct sim_node *n, uint32_t slot, sim_time at)
{
	uint32_t rank = rank_number(n->sim, n->first + slot);
	char why[64];

	n->sim->ranks[n->first + slot].finished = true;
	if (!n->sim->scenario->finalize)
		return;
	snprintf(why, sizeof(why), "rank %u has finalized", rank);
	node_begin(n, at, NULL, rank);
	rank_leaves(n, slot, why);
	node_end(n);
}

/* An operation is not over before the rank has looked at its result. */
static void look(struct sim_node *n, uint32_t slot, sim_time at)
{
	struct sim *s = n->sim;
	uint32_t index = n->first + slot, next = s->ranks[index].next;

	if (!s->protocol->look || next == 0 ||
	    s->scenario->ops[next - 1].kind == OP_COMPUTE)
		return;
	node_begin(n, at, NULL, rank_number(s, index));
	s->protocol->look(n, slot, next - 1);
	node_end(n);
}

static void rank_goes_on(struct sim *s, uint32_t index, sim_time at)
{
	uint32_t rank = rank_number(s, index);
	struct sim_node *n =
		&s->nodes[layout_rank_position(s->layout, rank)];
	struct sim_rank *r = &s->ranks[index];
	uint32_t slot = index - n->first;

	if (n->dead || r->gone)
		return;
	if (r->waiting) {
		more(n, slot, at);
		return;
	}
	look(n, slot, at);
	if (r->next == s->scenario->nops) {
		finish(n, slot, at);
		return;
	}
	faults_in_phase(n, slot, r->next);
	if (n->dead || r->gone)
		return;
	note_entry(n, r->next, rank, at);
	if (s->scenario->ops[r->next].kind == OP_COMPUTE)
		compute(n, slot, at);
	else
		enter(n, slot, at);
}

/* ---- the loop ---- */

static void handle(struct sim *s, const struct event *e)
{
	s->now = e->at;
	switch (e->type) {
	case EVENT_ENTER:
		rank_goes_on(s, e->a, e->at);
		break;
	case EVENT_MESSAGE:
		message_arrives(s, e->message, e->at);
		break;
	case EVENT_FAULT:
		fault_happens(s, e->a);
		break;
	case EVENT_LOST:
		fault_noticed(s, e->a, e->b);
		break;
	default: /* of DVMs */
		break;
	}
}

static void check_node(struct sim *s, const struct sim_node *n)
{
	char what[300] = "";

	if (n->dead)
		return;
	for (uint32_t i = 0; i < n->nranks; i++) {
		const struct sim_rank *r = &s->ranks[n->first + i];

		if (r->finished || r->gone)
			continue;
		s->waiting_for_ever++;
		if (s->protocol->describe && !s->failed)
			s->protocol->describe(n, what, sizeof(what));
		sim_fail(s, "rank %u (node %u) waits forever in operation %u%s%s",
			 rank_number(s, n->first + i), n->id, r->next + 1u,
			 *what ? ": " : "", what);
	}
}

int sim_run(struct sim *s)
{
	struct event e;

	while (!s->failed && events_take(&s->events, &e)) {
		handle(s, &e);
		if (++s->handled % PROGRESS_EVERY == 0 && s->progress)
			s->progress(s->progress_arg, s);
	}
	for (uint32_t p = 0; !s->failed && p < s->nnodes; p++)
		check_node(s, &s->nodes[p]);
	return s->failed ? -1 : 0;
}
