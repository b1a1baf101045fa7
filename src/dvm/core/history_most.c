/* SPDX-License-Identifier: BSD-3-Clause */
/* Numbers of tasks that are in a stage at once. */
#include <errno.h>
#include <stdlib.h>

#include "dvm/core/history.h"

/* When tasks entered a stage, and when they left it. */
struct stage {
	uint64_t *in, *out;
	size_t n;
};

static int by_time(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* One that leaves when another one enters makes room for it. */
static size_t most_of(struct stage *s)
{
	size_t left = 0, most = 0;

	qsort(s->in, s->n, sizeof(*s->in), by_time);
	qsort(s->out, s->n, sizeof(*s->out), by_time);
	for (size_t i = 0; i < s->n; i++) {
		while (s->out[left] <= s->in[i] && left < i)
			left++;
		if (i + 1 - left > most)
			most = i + 1 - left;
	}
	return most;
}

enum { SETUP, RUNNING, ENDING, STAGES };

static void enter(struct stage *s, uint64_t from, uint64_t to)
{
	if (!from || to <= from)
		return;
	s->in[s->n] = from;
	s->out[s->n++] = to;
}

static size_t most_in(const struct history *h, size_t n, int which, struct stage *s)
{
	s->n = 0;
	for (size_t i = 0; i < n; i++)
		for (size_t j = 0; j < h[i].ntasks; j++) {
			const struct history_task *t = &h[i].tasks[j];
			const uint64_t times[STAGES + 1] = {
				t->start.placed_ns, t->end.started_ns, t->end.ended_ns,
				t->end.told_ns,
			};

			if (history_ran(t))
				enter(s, times[which], times[which + 1]);
		}
	return most_of(s);
}

int history_count_most(const struct history *h, size_t n, struct history_most *out)
{
	struct stage s = { 0 };
	size_t tasks = 1;
	int rc = -ENOMEM;

	for (size_t i = 0; i < n; i++)
		tasks += h[i].ntasks;
	s.in = calloc(tasks, sizeof(*s.in));
	s.out = calloc(tasks, sizeof(*s.out));
	if (s.in && s.out) {
		out->setup = most_in(h, n, SETUP, &s);
		out->running = most_in(h, n, RUNNING, &s);
		out->ending = most_in(h, n, ENDING, &s);
		rc = 0;
	}
	free(s.in);
	free(s.out);
	return rc;
}
