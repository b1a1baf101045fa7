/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Forwarded output. Each part of a task has a window: bytes that its node may send before it
 * hears that clients have read some. A client has read what its connection has taken; without
 * clients all is read at once, and dropped. A part of a client, or of a head, with many
 * windows gets a small one. So a client that does not read needs little memory of the head,
 * its nodes and their links, and only its own tasks wait.
 */
#include "dvm/core/head_private.h"

#include <stdio.h>
#include <stdlib.h>

#include <utlist.h>

#define WINDOW ((uint32_t)256 << 10)       /* bytes of a part */
#define WINDOWS_CLIENT ((uint64_t)4 << 20) /* of a client; then its parts get small ones */
#define WINDOWS_ALL ((uint64_t)16 << 20)   /* of all, as above */
#define LINE_SIZE_MAX ((size_t)256 << 20) /* bytes of a line */
#define HELD UINT64_MAX
#define WAITS_MS 1000 /* after it, "why" reports that the part waits for its reader */

/* A client that output of a part was sent to. */
struct reader {
	uint32_t client;
	uint64_t mark;  /* head_client.sent behind the last; HELD: it was held back */
	uint64_t taken; /* of head_output.sent */
	struct reader *next;
};

/* The output of a part. */
struct head_output {
	struct head_task *task;
	uint32_t instance, node;
	uint32_t window;
	uint32_t payer;     /* the client in whose windows it counts; 0: none */
	uint64_t sent;      /* by the node: sum of dvm_output_cost() */
	uint64_t credited;  /* of these */
	uint64_t full_ms;   /* when the window was used up; 0: it is not */
	struct reader *readers;
	bool listed;        /* in dvm_head.unread */
	struct head_output *prev, *next;
	struct head_output *next_of_task;
};

/* ---- life ---- */

static struct head_output *add(struct dvm_head *h, struct head_task *t, uint32_t node,
			       uint32_t window)
{
	struct head_output *o = calloc(1, sizeof(*o));

	if (!o)
		return NULL;
	o->task = t;
	o->instance = t->instance;
	o->node = node;
	o->window = window;
	LL_PREPEND2(t->run->outputs, o, next_of_task);
	return o;
}

/* The first watcher that is connected, or NULL. */
static struct head_client *first_reader(struct dvm_head *h, const struct head_task *t)
{
	struct head_client *c;

	FOR_EACH_WATCHER(t, w)
		if ((c = client_find(h, w.client)))
			return c;
	return NULL;
}

uint32_t output_begin(struct dvm_head *h, struct head_task *t, uint32_t node)
{
	struct head_client *c = first_reader(h, t);
	bool small = (c && c->windows + WINDOW > WINDOWS_CLIENT) ||
		     h->windows + WINDOW > WINDOWS_ALL;
	struct head_output *o = add(h, t, node, small ? DVM_WINDOW_MIN : WINDOW);

	if (!o || small) /* without memory each piece is credited as it comes */
		return DVM_WINDOW_MIN;
	h->windows += WINDOW;
	if (c) {
		o->payer = c->number;
		c->windows += WINDOW;
	}
	return WINDOW;
}

static void unlist(struct dvm_head *h, struct head_output *o)
{
	if (o->listed)
		DL_DELETE(h->unread, o);
	o->listed = false;
}

static void output_free(struct dvm_head *h, struct head_output *o)
{
	struct head_client *c = o->payer ? client_find(h, o->payer) : NULL;
	struct reader *r, *next;

	unlist(h, o);
	h->windows -= o->window == WINDOW ? WINDOW : 0;
	if (c)
		c->windows -= o->window;
	LL_FOREACH_SAFE(o->readers, r, next)
		free(r);
	free(o);
}

void output_end(struct dvm_head *h, struct head_task *t)
{
	struct head_output *o;

	while ((o = task_run(t)->outputs)) {
		LL_DELETE2(t->run->outputs, o, next_of_task);
		output_free(h, o);
	}
}

/* ---- credit ---- */

static void credit(struct dvm_head *h, const struct head_task *t, uint32_t node,
		   uint64_t bytes)
{
	const struct dvm_msg m = {
		.type = DVM_CREDIT, .credit = { t->id, t->instance, (uint32_t)bytes },
	};

	head_queue_msg(h, node, &m);
}

static bool has_taken(struct dvm_head *h, struct reader *r)
{
	const struct head_client *c = client_find(h, r->client);
	uint64_t unread;

	if (!c || c->broken)
		return true; /* the client has gone */
	if (r->mark == HELD && !c->held)
		r->mark = c->sent;
	if (r->mark == HELD)
		return false;
	unread = h->ops.client_unread ? h->ops.client_unread(h->arg, c->number) : 0;
	return r->mark + unread <= c->sent;
}

/* The bytes that all its readers have taken. */
static uint64_t taken_by_all(struct dvm_head *h, struct head_output *o)
{
	uint64_t least = o->sent;
	struct reader *r;

	LL_FOREACH(o->readers, r) {
		if (r->taken < o->sent && has_taken(h, r))
			r->taken = o->sent;
		if (r->taken < least)
			least = r->taken;
	}
	return least;
}

static void credit_output(struct dvm_head *h, struct head_output *o)
{
	uint64_t taken = taken_by_all(h, o);

	if (taken == o->sent)
		unlist(h, o);
	if (taken - o->credited < o->window / 2)
		return;
	credit(h, o->task, o->node, taken - o->credited);
	o->credited = taken;
	o->full_ms = 0;
}

void output_turn(struct dvm_head *h)
{
	struct head_output *o, *next;

	DL_FOREACH_SAFE(h->unread, o, next)
		credit_output(h, o);
}

/* ---- what comes ---- */

/* NULL: no memory. */
static struct reader *reader_of(struct head_output *o, uint32_t client)
{
	struct reader *r;

	LL_FOREACH(o->readers, r)
		if (r->client == client)
			return r;
	r = calloc(1, sizeof(*r));
	if (!r)
		return NULL;
	r->client = client;
	r->taken = o->sent;
	LL_PREPEND(o->readers, r);
	return r;
}

/* Call it before o->sent grows by the bytes of the report. */
static void tell(struct dvm_head *h, struct head_output *o, const struct buf *line)
{
	struct head_client *c;
	struct reader *r;

	FOR_EACH_WATCHER(o->task, w) {
		c = client_find(h, w.client);
		if (!c)
			continue;
		r = reader_of(o, w.client);
		client_send_at(h, c, line->data, line->len, 0);
		if (r)
			r->mark = c->held ? HELD : c->sent;
	}
}

static struct head_output *find(const struct head_task *t, uint32_t node)
{
	struct head_output *o;

	LL_FOREACH2(task_run(t)->outputs, o, next_of_task)
		if (o->node == node)
			return o;
	return NULL;
}

/* The window of a part that another head launched is not known: assume the smallest. */
void output_take(struct dvm_head *h, struct head_task *t, uint32_t node,
		 const struct dvm_output_msg *m)
{
	struct head_output *o = find(t, node);
	uint64_t cost = dvm_output_cost(m->data.len);
	const struct head_event e = { .type = EVENT_OUTPUT, .output = { t->id, m } };
	struct buf line;

	o = o ? o : add(h, t, node, DVM_WINDOW_MIN);
	if (!o) {
		credit(h, t, node, cost);
		return;
	}
	if (first_reader(h, t)) {
		buf_init(&line, LINE_SIZE_MAX);
		if (!h->ops.format->write_event(&e, &line))
			tell(h, o, &line);
		buf_free(&line);
	}
	o->sent += cost;
	if (o->sent - o->credited + DVM_OUTPUT_EXTRA >= o->window && !o->full_ms)
		o->full_ms = h->now.ms;
	if (!o->listed)
		DL_APPEND(h->unread, o);
	o->listed = true;
}

/* ---- why ---- */

static void name_reader(struct dvm_head *h, struct head_output *o, char *who, size_t size)
{
	const struct reader *r;

	snprintf(who, size, "a client");
	LL_FOREACH(o->readers, r)
		if (r->taken < o->sent && h->ops.client_name) {
			h->ops.client_name(h->arg, r->client, who, size);
			return;
		}
}

uint32_t output_waits(struct dvm_head *h, const struct head_task *t, char *who, size_t size)
{
	struct head_output *o;

	LL_FOREACH2(task_run(t)->outputs, o, next_of_task)
		if (o->full_ms && h->now.ms >= o->full_ms + WAITS_MS &&
		    taken_by_all(h, o) < o->sent) {
			name_reader(h, o, who, size);
			return o->node;
		}
	return NODE_NONE;
}
