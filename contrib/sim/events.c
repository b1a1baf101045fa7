/* SPDX-License-Identifier: BSD-3-Clause */
/* The events to come: a heap of width 4, which touches less memory than 2. */
#include "events.h"

#include <stdlib.h>

#define WIDTH 4
#define FIRST_CAP 1024

static bool before(const struct event *a, const struct event *b)
{
	return a->at < b->at || (a->at == b->at && a->order < b->order);
}

static bool grow(struct events *q)
{
	size_t cap = q->cap ? 2 * q->cap : FIRST_CAP;
	struct event *heap = realloc(q->heap, cap * sizeof(*heap));

	if (!heap)
		return false;
	q->heap = heap;
	q->cap = cap;
	return true;
}

bool events_add(struct events *q, struct event e)
{
	size_t i;

	if (q->count == q->cap && !grow(q))
		return false;
	e.order = q->added++;
	i = q->count++;
	while (i && before(&e, &q->heap[(i - 1) / WIDTH])) {
		q->heap[i] = q->heap[(i - 1) / WIDTH];
		i = (i - 1) / WIDTH;
	}
	q->heap[i] = e;
	return true;
}

/* The earliest of the places below i, or count. */
static size_t earliest_below(const struct events *q, size_t i)
{
	size_t first = WIDTH * i + 1, best = first;

	if (first >= q->count)
		return q->count;
	for (size_t j = first + 1; j < first + WIDTH && j < q->count; j++)
		if (before(&q->heap[j], &q->heap[best]))
			best = j;
	return best;
}

bool events_take(struct events *q, struct event *out)
{
	struct event last;
	size_t i = 0, next;

	if (!q->count)
		return false;
	*out = q->heap[0];
	last = q->heap[--q->count];
	while ((next = earliest_below(q, i)) < q->count &&
	       before(&q->heap[next], &last)) {
		q->heap[i] = q->heap[next];
		i = next;
	}
	q->heap[i] = last;
	return true;
}

void events_free(struct events *q)
{
	free(q->heap);
	q->heap = NULL;
	q->count = q->cap = 0;
}
