/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tasks that are submitted: by clients, by tasks, or by the journal of another head. One
 * that cannot be is refused with the key that is wrong, and why.
 *
 * A command may submit its tasks in several requests. If the largest task is the first to
 * start, the last request may have it. So the tasks wait until all requests have come, or a
 * limit is reached: the queue is full, the client pauses, or has gone.
 */
#include "dvm/core/head_private.h"
#include "libutil/plural.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PAUSE_MS 1000  /* limit of the time between two requests */
#define WHOLE_MS 10000 /* limit of the time from the first request to the last */

void spec_wrong(struct spec_reading *r, const char *key, const char *fmt, ...)
{
	va_list ap;

	if (r->key)
		return; /* the first error counts */
	r->key = key;
	va_start(ap, fmt);
	vsnprintf(r->why, sizeof(r->why), fmt, ap);
	va_end(ap);
}

/* Queue a task that was read without an error; NULL: it had one. */
static struct head_task *queue_one(struct spec_reading *r, struct head_profile *p)
{
	struct head_task *t;
	int error;

	if (r->key) {
		task_spec_free(&r->spec);
		return NULL;
	}
	t = task_submit(r->h, &r->spec, p, &error);
	if (!t) {
		spec_wrong(r, "tasks", "%s", strerror(-error));
		return NULL;
	}
	t->line = r->line;
	t->spawned = r->spawned;
	r->spawned = NULL;
	return t;
}

struct head_task *submit_read(struct spec_reading *r, struct head_profile *p, uint32_t tied,
			      const struct dvm_bytes *text)
{
	struct head_task *t;
	int rc;

	r->full = !r->key && r->h->nqueued >= r->h->options.max_waiting;
	if (r->full)
		spec_wrong(r, "tasks", "%zu task%s %s queued already: wait until some have ended, or start the DVM with a larger --max-queued",
			   r->h->nqueued, plural(r->h->nqueued), is_or_are(r->h->nqueued));
	t = queue_one(r, p);
	if (!t)
		return NULL;
	t->tied = tied;
	rc = journal_submit(r->h, t, text);
	if (!rc)
		return t;
	spec_wrong(r, "tasks", "the task cannot be written to the journal: %s", strerror(-rc));
	task_undo(r->h, t);
	return NULL;
}

struct head_task *submit_spawned(struct dvm_head *h, const struct dvm_bytes *text,
				 struct head_spawn *spawned, char *why, size_t size)
{
	const struct head_task *parent = spawned->parent;
	struct spec_reading r = { .h = h, .spawned = spawned };
	struct head_task *t;

	h->ops.format->read_task(&r, text);
	t = submit_read(&r, parent->profile, parent->tied, text);
	if (!t)
		snprintf(why, size, "%s", r.why);
	spawned_free(r.spawned);
	return t;
}

/* Replace the invalid parts of a task that will not be started. */
static void make_fit(struct spec_reading *r)
{
	struct ledger_shape *s = &r->spec.shape;

	free((void *)(uintptr_t)s->placed);
	s->placed = NULL;
	s->named = false;
	s->ranks = s->ranks ? s->ranks : 1;
	r->key = NULL;
}

struct head_task *submit_again(struct dvm_head *h, const struct dvm_bytes *text,
			       struct head_profile *p, char *why, size_t size)
{
	struct spec_reading r = { .h = h, .may_not_fit = h->hopeless_ms };

	h->ops.format->read_task(&r, text);
	if (r.key) {
		snprintf(why, size, "%s: %s", r.key, r.why);
		make_fit(&r);
	}
	return queue_one(&r, p);
}

/* ---- requests ---- */

int submit_begin(struct dvm_head *h)
{
	return journal_begin_request(h);
}

int submit_end(struct dvm_head *h, uint64_t *at)
{
	int rc = journal_end_request(h, at);

	if (!rc && h->queued && h->queued->prev->line > h->line)
		h->line = h->queued->prev->line;
	return rc;
}

/* ---- submits of several requests ---- */

void submit_await(struct dvm_head *h, struct head_client *c, struct head_task *t)
{
	if (h->options.queue.order == QUEUE_FIFO)
		return;
	queue_remove(h->queue, &t->item);
	task_move(h, t, TASK_COMING);
	t->told = c->number;
	c->coming++;
	h->coming++;
}

void submit_forget(struct dvm_head *h, struct head_task *t)
{
	struct head_client *c = client_find(h, t->told);

	t->told = 0;
	h->coming--;
	if (c)
		c->coming--;
}

/* The last submitted tasks are the last of the list. */
static void queue_all(struct dvm_head *h, const struct head_client *c)
{
	struct head_task *t = h->queued ? h->queued->prev : NULL;

	for (; c->coming; t = t->prev) {
		if (t->state != TASK_COMING || t->told != c->number)
			continue;
		submit_forget(h, t);
		task_move(h, t, TASK_QUEUED);
		queue_put_back(h->queue, &t->item);
	}
}

void submit_complete(struct dvm_head *h, struct head_client *c)
{
	c->whole_ms = 0;
	if (!c->coming)
		return;
	queue_all(h, c);
	h->retry = true;
	tasks_fail_impossible(h); /* nodes may have been lost meanwhile */
}

void submit_goes_on(struct dvm_head *h, struct head_client *c)
{
	if (!c->whole_ms)
		c->whole_ms = h->now.ms + WHOLE_MS;
	c->pause_ms = h->now.ms + PAUSE_MS;
}

static uint64_t due_ms(const struct head_client *c)
{
	return c->whole_ms < c->pause_ms ? c->whole_ms : c->pause_ms;
}

uint64_t submits_due_ms(const struct dvm_head *h)
{
	const struct head_client *c;
	uint64_t first = UINT64_MAX;

	for (c = h->coming ? h->clients : NULL; c; c = c->hh.next)
		if (c->coming && due_ms(c) < first)
			first = due_ms(c);
	return first;
}

void submits_turn(struct dvm_head *h)
{
	struct head_client *c;

	for (c = h->coming ? h->clients : NULL; c; c = c->hh.next)
		if (c->coming && due_ms(c) <= h->now.ms)
			submit_complete(h, c);
}
