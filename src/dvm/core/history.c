/* SPDX-License-Identifier: BSD-3-Clause */
/* Reading a journal: what has become of each task. The figures: history_count.c. */
#include "dvm/core/history.h"

#include <stdlib.h>

#include "libutil/array.h"

const char *history_state_name(enum history_state state)
{
	static const char *const names[HISTORY_STATES] = {
		[HISTORY_QUEUED] = "queued",   [HISTORY_RUNNING] = "running",
		[HISTORY_DONE] = "done",       [HISTORY_FAILED] = "failed",
		[HISTORY_CANCELLED] = "cancelled",
	};

	return names[state];
}

int history_code(const struct history_task *t)
{
	return dvm_exit_code(t->end.status);
}

double history_seconds(const struct history_task *t)
{
	const struct journal_end *e = &t->end;

	return e->started_ns && e->ended_ns > e->started_ns ?
	       (double)(e->ended_ns - e->started_ns) / 1e9 : 0;
}

/* ---- records ---- */

static int by_number(const void *number, const void *task)
{
	uint64_t a = *(const uint64_t *)number;
	uint64_t b = ((const struct history_task *)task)->submit.task;

	return (a > b) - (a < b);
}

/* A task that has not ended, or NULL. */
static struct history_task *find(struct history *h, uint64_t number)
{
	struct history_task *t = !h->ntasks ? NULL :
		bsearch(&number, h->tasks, h->ntasks, sizeof(*h->tasks), by_number);

	return t && t->state < HISTORY_DONE ? t : NULL;
}

static int read_submit(struct history *h, const struct journal_submit *s)
{
	int rc;

	if (h->ntasks && s->task <= h->tasks[h->ntasks - 1].submit.task)
		return 0;
	rc = array_grow(&h->tasks, h->ntasks, &h->tasks_cap, sizeof(*h->tasks));
	if (!rc)
		h->tasks[h->ntasks++] = (struct history_task){ .submit = *s };
	return rc;
}

static void read_start(struct history *h, const struct journal_start *s)
{
	struct history_task *t = find(h, s->task);

	if (!t)
		return;
	t->state = HISTORY_RUNNING;
	t->start = *s;
}

static void read_end(struct history *h, const struct journal_end *e)
{
	struct history_task *t = find(h, e->task);

	if (!t)
		return;
	t->state = e->cancelled ? HISTORY_CANCELLED :
		   e->status ? HISTORY_FAILED : HISTORY_DONE;
	t->end = *e;
}

/* Another head has other nodes; those of the last one ended with it, unless they stay. */
static int add_nodes(struct history *h, const struct journal_nodes *n)
{
	int rc = array_grow(&h->nodes, h->nnodes, &h->nodes_cap, sizeof(*h->nodes));

	if (!rc)
		h->nodes[h->nnodes++] = *n;
	return rc;
}

static int read_nodes(struct history *h, const struct journal_nodes *n)
{
	const struct journal_nodes gone = { .since_ns = h->seen_ns };
	int rc = n->begins && !n->stay && h->nnodes ? add_nodes(h, &gone) : 0;

	h->heads += n->begins;
	h->simulated |= n->simulated;
	return rc ? rc : add_nodes(h, n);
}

static int read_record(struct history *h, const struct journal_record *r)
{
	switch (r->type) {
	case JOURNAL_COUNTS: h->counts = r->counts; return 0;
	case JOURNAL_SUBMIT: return read_submit(h, &r->submit);
	case JOURNAL_START: read_start(h, &r->start); return 0;
	case JOURNAL_END: read_end(h, &r->end); return 0;
	case JOURNAL_NODES: return read_nodes(h, &r->nodes);
	default: return 0;
	}
}

static uint64_t time_of(const struct journal_record *r)
{
	switch (r->type) {
	case JOURNAL_SUBMIT: return r->submit.submitted_ns;
	case JOURNAL_START: return r->start.placed_ns;
	case JOURNAL_END: return r->end.ended_ns;
	case JOURNAL_NODES: return r->nodes.since_ns;
	default: return 0;
	}
}

int history_read(struct history *h, struct journal_reader *journal)
{
	struct journal_record r;
	int rc = 0;

	*h = (struct history){ 0 };
	while (!rc && journal_next(journal, &r)) {
		rc = read_record(h, &r);
		if (time_of(&r) > h->seen_ns)
			h->seen_ns = time_of(&r);
	}
	return rc;
}

void history_free(struct history *h)
{
	free(h->tasks);
	free(h->nodes);
}
