/* SPDX-License-Identifier: BSD-3-Clause */
/* Figures of what has become of a DVM's tasks. */
#include "dvm/core/history.h"

#include <errno.h>
#include <stdlib.h>

#include "libutil/array.h"

/* Slots that came to be there or free, or went; in the order of time. */
struct change {
	uint64_t at_ns;
	const struct journal_nodes *nodes; /* the nodes that there are now; or NULL: */
	struct history_task *task;         /* the task that started */
	bool ended;                        /* or ended */
};

/* Slots that have been free since the same time. */
struct idle {
	uint64_t since_ns, count;
};

struct count {
	const struct history *h;
	struct history_figures *out;
	struct change *changes;
	size_t nchanges;
	struct idle *idle;   /* longest first */
	size_t first, nidle, idle_cap;
	uint64_t slots;      /* number of slots */
	double *setups, *starts;
	size_t nsetups, nstarts;
};

static double between(uint64_t from, uint64_t to)
{
	return to > from ? (double)(to - from) / 1e9 : 0;
}

static uint64_t later(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

bool history_ran(const struct history_task *t)
{
	return t->state >= HISTORY_DONE && t->end.started_ns && t->start.placed_ns;
}

/* ---- slots that are free ---- */

static int add_idle(struct count *c, uint64_t since_ns, uint64_t count)
{
	int rc;

	if (c->first == c->nidle)
		c->first = c->nidle = 0;
	rc = array_grow(&c->idle, c->nidle, &c->idle_cap, sizeof(*c->idle));
	if (!rc && count)
		c->idle[c->nidle++] = (struct idle){ since_ns, count };
	return rc;
}

/*
 * Take the slots that have been free for longest; returns the time since which the last of
 * them has been free.
 */
static uint64_t take_idle(struct count *c, uint64_t count)
{
	uint64_t since_ns = 0;

	while (count && c->first < c->nidle) {
		struct idle *i = &c->idle[c->first];
		uint64_t n = count < i->count ? count : i->count;

		since_ns = i->since_ns;
		i->count -= n;
		count -= n;
		c->first += !i->count;
	}
	return since_ns;
}

static int change_nodes(struct count *c, const struct journal_nodes *n)
{
	uint64_t had = c->slots;

	c->slots = n->slots;
	if (n->begins) {
		c->first = c->nidle;
		had = 0;
	}
	if (n->slots >= had)
		return add_idle(c, n->since_ns, n->slots - had);
	(void)take_idle(c, had - n->slots);
	return 0;
}

static void note_started(struct count *c, struct history_task *t)
{
	uint64_t free_ns = take_idle(c, t->start.slots);
	uint64_t ready_ns = later(t->submit.submitted_ns, free_ns);

	if (ready_ns > t->start.placed_ns) /* by clocks that differ */
		ready_ns = t->start.placed_ns;
	t->setup_s = between(ready_ns, t->end.started_ns);
	c->setups[c->nsetups++] = t->setup_s;
	c->starts[c->nstarts++] = between(t->start.placed_ns, t->end.started_ns);
}

static int apply(struct count *c, const struct change *change)
{
	if (change->nodes)
		return change_nodes(c, change->nodes);
	if (change->ended)
		return add_idle(c, change->at_ns, change->task->start.slots);
	note_started(c, change->task);
	return 0;
}

/* ---- the order of time ---- */

static int by_time(const void *a, const void *b)
{
	const struct change *x = a, *y = b;

	if (x->at_ns != y->at_ns)
		return x->at_ns < y->at_ns ? -1 : 1;
	return y->ended - x->ended; /* ends first: they make room */
}

static void collect_changes(struct count *c)
{
	const struct history *h = c->h;

	for (size_t i = 0; i < h->nnodes; i++)
		c->changes[c->nchanges++] = (struct change){
			.at_ns = h->nodes[i].since_ns, .nodes = &h->nodes[i],
		};
	for (size_t i = 0; i < h->ntasks; i++) {
		struct history_task *t = &h->tasks[i];

		if (!history_ran(t))
			continue;
		c->changes[c->nchanges++] = (struct change){
			.at_ns = t->start.placed_ns, .task = t,
		};
		c->changes[c->nchanges++] = (struct change){
			.at_ns = t->end.ended_ns, .task = t, .ended = true,
		};
	}
	qsort(c->changes, c->nchanges, sizeof(*c->changes), by_time);
}

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void summarize(double *values, size_t n, struct history_times *out)
{
	*out = (struct history_times){ .count = n };
	if (!n)
		return;
	qsort(values, n, sizeof(*values), ascending);
	for (size_t i = 0; i < n; i++)
		out->mean += values[i] / (double)n;
	out->median = values[n / 2];
	out->q3 = values[n * 3 / 4];
	out->p99 = values[n * 99 / 100];
}

/* Changes of one DVM, whose slots no other one has. */
static int count_changes(struct count *c, const struct history *h)
{
	size_t most = 2 * h->ntasks + h->nnodes + 1;
	int rc = 0;

	c->h = h;
	c->nchanges = c->first = c->nidle = 0;
	c->slots = 0;
	c->changes = calloc(most, sizeof(*c->changes));
	if (!c->changes)
		return -ENOMEM;
	collect_changes(c);
	for (size_t i = 0; !rc && i < c->nchanges; i++)
		rc = apply(c, &c->changes[i]);
	free(c->changes);
	return rc;
}

static int count_times(struct count *c, const struct history *h, size_t n)
{
	size_t tasks = 1;
	int rc = 0;

	for (size_t i = 0; i < n; i++)
		tasks += h[i].ntasks;
	c->setups = calloc(tasks, sizeof(*c->setups));
	c->starts = calloc(tasks, sizeof(*c->starts));
	if (!c->setups || !c->starts)
		return -ENOMEM;
	for (size_t i = 0; !rc && i < n; i++)
		rc = count_changes(c, &h[i]);
	summarize(c->setups, c->nsetups, &c->out->setup);
	summarize(c->starts, c->nstarts, &c->out->start);
	return rc;
}

/* ---- sums ---- */

static void count_states(const struct history *h, struct history_figures *out)
{
	for (size_t i = 0; i < h->ntasks; i++) {
		const struct history_task *t = &h->tasks[i];

		out->states[t->state]++;
		if (!out->first_ns || t->submit.submitted_ns < out->first_ns)
			out->first_ns = t->submit.submitted_ns;
		out->last_ns = later(out->last_ns, t->end.ended_ns);
		if (!history_ran(t))
			continue;
		out->used += history_seconds(t) * t->start.slots;
		out->gpus_used += history_seconds(t) * t->start.gpus;
	}
}

static void count_there(const struct history *h, struct history_figures *out)
{
	for (size_t i = 0; i < h->nnodes; i++) {
		uint64_t from = later(h->nodes[i].since_ns, out->first_ns);
		uint64_t to = out->last_ns;

		if (i + 1 < h->nnodes && h->nodes[i + 1].since_ns < to)
			to = h->nodes[i + 1].since_ns;
		out->there += between(from, to) * (double)h->nodes[i].slots;
		out->gpus_there += between(from, to) * (double)h->nodes[i].gpus;
	}
}

static void count_stages(const struct history *h, struct history_stages *out)
{
	for (size_t i = 0; i < h->nnodes; i++) {
		const struct journal_nodes *n = &h->nodes[i];
		double seconds = between(n->from_ns, n->since_ns);

		if (!n->from_ns)
			continue;
		out->starts += n->begins;
		out->stops += n->left;
		*(n->begins ? &out->start : &out->stop) += seconds;
		if (n->begins && seconds > out->longest_start)
			out->longest_start = seconds;
	}
}

static void count_sums(const struct history *h, size_t n, struct history_figures *out)
{
	struct history_stages *s = &out->stages;

	for (size_t i = 0; i < n; i++)
		count_states(&h[i], out);
	for (size_t i = 0; i < n; i++) {
		count_there(&h[i], out); /* between the first and the last time of all */
		count_stages(&h[i], s);
	}
	s->start /= s->starts ? (double)s->starts : 1;
	s->stop /= s->stops ? (double)s->stops : 1;
}

int history_count(struct history *h, size_t n, struct history_figures *out)
{
	struct count c = { .out = out };
	int rc;

	*out = (struct history_figures){ 0 };
	count_sums(h, n, out);
	rc = count_times(&c, h, n);
	free(c.setups);
	free(c.starts);
	free(c.idle);
	return rc ? rc : history_count_most(h, n, &out->most);
}
