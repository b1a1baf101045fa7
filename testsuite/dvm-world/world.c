/* SPDX-License-Identifier: BSD-3-Clause */
/* Time, chance and verdict of a world: world.h. */
#include "disk.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define BEGIN_MS (1000 * SECOND)
#define LIMIT_MS (6 * 3600 * SECOND) /* a world that runs longer hangs */

/* ---- chance ---- */

static uint64_t next_random(struct world *w)
{
	uint64_t z = w->random += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

uint64_t draw(struct world *w, uint64_t below)
{
	return below ? next_random(w) % below : 0;
}

bool draw_once_in(struct world *w, uint64_t n)
{
	return n && !draw(w, n);
}

uint64_t draw_between(struct world *w, uint64_t low, uint64_t high)
{
	return low + draw(w, high - low + 1);
}

/* ---- events ---- */

static bool is_before(const struct event *a, const struct event *b)
{
	return a->ms < b->ms || (a->ms == b->ms && a->order < b->order);
}

static void sift_up(struct event *heap, size_t at)
{
	const struct event e = heap[at];

	for (; at && is_before(&e, &heap[(at - 1) / 2]); at = (at - 1) / 2)
		heap[at] = heap[(at - 1) / 2];
	heap[at] = e;
}

static void sift_down(struct event *heap, size_t n)
{
	const struct event e = heap[0];
	size_t at = 0, child;

	while ((child = 2 * at + 1) < n) {
		if (child + 1 < n && is_before(&heap[child + 1], &heap[child]))
			child++;
		if (!is_before(&heap[child], &e))
			break;
		heap[at] = heap[child];
		at = child;
	}
	heap[at] = e;
}

/* Events of one moment happen in any order. */
void after(struct world *w, uint64_t ms, event_fn fn, void *arg, uint64_t number)
{
	if (w->nevents == w->events_cap) {
		w->events_cap = w->events_cap ? 2 * w->events_cap : 64;
		w->events = realloc(w->events, w->events_cap * sizeof(*w->events));
		if (!w->events)
			abort();
	}
	w->events[w->nevents] = (struct event){
		w->ms + ms, next_random(w), fn, arg, number,
	};
	sift_up(w->events, w->nevents++);
}

static void run_events(struct world *w)
{
	while (w->nevents && !w->over && !w->failed) {
		const struct event e = w->events[0];

		w->events[0] = w->events[--w->nevents];
		if (w->nevents)
			sift_down(w->events, w->nevents);
		w->ms = e.ms;
		if (w->ms > BEGIN_MS + LIMIT_MS)
			break;
		e.fn(w, e.arg, e.number);
	}
}

struct dvm_time time_of(const struct world *w, unsigned machine)
{
	const uint64_t ms = w->ms + w->machines[machine].clock_ms;

	return (struct dvm_time){ w->ms * 1000000, ms };
}

/* ---- machines ---- */

bool machine_is_full(const struct world *w, unsigned machine)
{
	return w->ms < w->machines[machine].full_until;
}

int draw_lack(struct world *w)
{
	static const int lacks[] = { -EMFILE, -ENFILE, -EAGAIN, -ENOMEM };

	return lacks[draw(w, sizeof(lacks) / sizeof(*lacks))];
}

/* ---- trace and verdict ---- */

void trace(struct world *w, const char *fmt, ...)
{
	va_list ap;

	if (!w->verbose)
		return;
	printf("%10.3f  ", w->ms / 1000.0);
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	putchar('\n');
}

void failed(struct world *w, const char *fmt, ...)
{
	va_list ap;

	if (w->failed)
		return;
	w->failed = true;
	printf("testsuite/dvm-world/dvm-world --seed %llu --verbose # ",
	       (unsigned long long)w->seed);
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	putchar('\n');
	fflush(stdout);
}

/* ---- a run ---- */

bool world_run(uint64_t seed, bool verbose, uint64_t *print)
{
	struct world *w = calloc(1, sizeof(*w));
	bool ok;

	if (!w)
		abort();
	w->seed = w->random = seed;
	w->ms = BEGIN_MS;
	w->verbose = verbose;
	plan_draw(w);
	w->disk = disk_new(w);
	plan_begin(w);
	run_events(w);
	promises_check_end(w);
	ok = !w->failed;
	*print = w->random ^ w->ms << 20 ^ w->nranks;
	clients_free(w);
	heads_free(w);
	outputs_free(w);
	daemons_free(w);
	links_free(w);
	free(w->events);
	disk_free(w->disk);
	free(w);
	return ok;
}
