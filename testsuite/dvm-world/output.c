/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Output of ranks that is forwarded to clients, in some worlds. Such a rank ends when it has
 * written all that it has to write, so one that waits for ever keeps its world from ending.
 * Two more promises: the head credits no more than was sent, and no part has more unread
 * than its window, but what its pipes hold at the end.
 */
#include "world.h"

#include <stdlib.h>
#include <string.h>

#define PIECE 20000      /* bytes that a rank writes at once, at most */
#define WRITE_MAX 400000 /* bytes that a rank writes before it ends */
#define WRITE_MS 5       /* between two pieces, at most */

/* The output of a part's ranks. */
struct outlet {
	struct daemon *daemon;
	uint32_t part;
	uint64_t task;
	uint32_t instance, window;
	size_t limit;    /* bytes that the node reads at once */
	uint64_t unread; /* as the node may count it; head and node have met since */
	struct outlet *next;
};

/* A rank that writes, until it has written all. */
struct writer {
	struct outlet *outlet;
	uint32_t process;
	size_t left;
};

bool output_world(const struct world *w)
{
	return w->seed % 8 == 3;
}

static struct outlet *outlet_of(const struct world *w, const struct daemon *d, uint32_t part)
{
	struct outlet *o = w->outlets;

	while (o && (o->daemon != d || o->part != part))
		o = o->next;
	return o;
}

void output_set_limit(struct world *w, struct daemon *d, uint32_t part, size_t bytes)
{
	struct outlet *o = outlet_of(w, d, part);

	if (!o) {
		o = calloc(1, sizeof(*o));
		if (!o)
			abort();
		*o = (struct outlet){ .daemon = d, .part = part, .next = w->outlets };
		w->outlets = o;
	}
	o->limit = bytes;
}

/* ---- writing ---- */

static void check_window(struct world *w, const struct outlet *o)
{
	if (o->unread > o->window)
		failed(w, "task %llu has %llu bytes unread on %s, and a window of %u",
		       (unsigned long long)o->task, (unsigned long long)o->unread,
		       daemon_name(o->daemon), o->window);
}

static void write_piece(struct world *w, struct writer *r)
{
	static char data[PIECE];
	struct outlet *o = r->outlet;
	size_t n = 1 + (size_t)draw(w, PIECE);

	n = n < o->limit ? n : o->limit;
	n = n < r->left ? n : r->left;
	memset(data, 'x', n);
	r->left -= n;
	if (o->limit != SIZE_MAX) {
		o->unread += dvm_output_cost(n);
		check_window(w, o);
	}
	daemon_output(o->daemon, o->part, data, n);
}

static void on_write(struct world *w, void *arg, uint64_t number)
{
	struct writer *r = arg;

	if (!daemon_runs(r->outlet->daemon, r->process)) {
		free(r);
		return;
	}
	if (r->outlet->limit)
		write_piece(w, r);
	if (r->left) {
		after(w, 1 + draw(w, WRITE_MS), on_write, r, 0);
		return;
	}
	daemon_rank_done(r->outlet->daemon, r->process);
	free(r);
}

void output_rank_begins(struct world *w, struct daemon *d, const struct node_start *what,
		  uint32_t process)
{
	struct outlet *o = outlet_of(w, d, what->part);
	struct writer *r = malloc(sizeof(*r));

	if (!o || !r)
		abort();
	o->task = what->launch->task;
	o->instance = what->launch->instance;
	o->window = what->launch->window;
	*r = (struct writer){ o, process, 1 + (size_t)draw(w, WRITE_MAX) };
	after(w, 0, on_write, r, 0);
}

/* ---- what the head says ---- */

static void take_credit(struct world *w, const struct daemon *d, const struct dvm_credit *m)
{
	struct outlet *o = w->outlets;

	while (o && (o->daemon != d || o->task != m->task || o->instance != m->instance))
		o = o->next;
	if (o && m->bytes > o->unread)
		failed(w, "task %llu is credited %u bytes on %s, of %llu", (unsigned long long)o->task,
		       m->bytes, daemon_name(d), (unsigned long long)o->unread);
	if (o)
		o->unread -= m->bytes;
}

/* Another head: the node begins anew with each window. */
static void forget_unread(struct world *w, const struct daemon *d)
{
	for (struct outlet *o = w->outlets; o; o = o->next)
		if (o->daemon == d)
			o->unread = 0;
}

void output_head_says(struct world *w, const struct daemon *d, const void *data, size_t len)
{
	struct dvm_msg m;
	struct cursor c;

	if (!w->outlets)
		return;
	cursor_init(&c, data, len);
	while (cursor_left(&c) && !dvm_msg_unpack(&c, &m))
		if (m.type == DVM_CREDIT)
			take_credit(w, d, &m.credit);
		else if (m.type == DVM_ADOPT)
			forget_unread(w, d);
}

void outputs_free(struct world *w)
{
	struct outlet *o;

	while ((o = w->outlets)) {
		w->outlets = o->next;
		free(o);
	}
}
