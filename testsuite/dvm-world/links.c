/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Connections between machines. Messages of one direction come in order, each after a
 * delay that is drawn. While one of the machines is cut off, messages wait; an end that
 * hears nothing for about a minute ends the connection, and the other one hears of that
 * when it can be reached again.
 */
#include "world.h"

#include <stdlib.h>
#include <string.h>

#define DEAD_PEER_LOW (45 * SECOND)
#define DEAD_PEER_HIGH (61 * SECOND)
#define RETRY_MAX (20 * SECOND) /* a sender tries again so late, after a long cut */

struct message {
	struct message *next;
	uint64_t ready_ms;
	bool last;       /* the other end is no more */
	size_t len;
	unsigned char data[];
};

/* Messages on the way to an end. */
struct pipe {
	struct message *first, *last;
	bool pumped;     /* an event will deliver the first of them */
	bool no_more;    /* the sender has closed its end */
};

struct link {
	struct world *w;
	struct link_end ends[2];
	bool open[2];
	bool vanished[2]; /* while nothing came through: the other end has not been told */
	struct pipe to[2];
	uint64_t silence; /* counts times in which nothing comes through; odd: now */
	struct link *next;
};

bool is_reachable(const struct world *w, unsigned from, unsigned to)
{
	return !w->machines[from].down && !w->machines[to].down &&
	       (from == to || (!w->machines[from].cut_until && !w->machines[to].cut_until));
}

/* Can a message for this end come now? */
static bool is_passable(const struct link *l, int end)
{
	const struct world *w = l->w;
	unsigned from = l->ends[!end].machine, to = l->ends[end].machine;

	return is_reachable(w, from, to) && (from == to || !w->machines[from].mute);
}

uint64_t draw_dead_peer(struct world *w)
{
	return draw_between(w, DEAD_PEER_LOW, DEAD_PEER_HIGH);
}

/* ---- delivery ---- */

static void pump(struct link *l, int end);

static void drop(struct pipe *p)
{
	while (p->first) {
		struct message *m = p->first;

		p->first = m->next;
		free(m);
	}
	p->last = NULL;
}

static void end_is_told(struct link *l, int end, const char *why)
{
	if (!l->open[end])
		return;
	l->open[end] = false;
	drop(&l->to[end]);
	l->ends[end].ended(l->ends[end].arg, why);
}

static void deliver(struct world *w, void *arg, uint64_t number)
{
	struct link *l = arg;
	int end = (int)number;
	struct pipe *p = &l->to[end];
	struct message *m = p->first;

	p->pumped = false;
	if (!m || !is_passable(l, end))
		return;
	p->first = m->next;
	if (!m->next)
		p->last = NULL;
	if (m->last)
		end_is_told(l, end, "the connection was closed");
	else if (l->open[end])
		l->ends[end].input(l->ends[end].arg, m->data, m->len);
	free(m);
	pump(l, end);
}

static void pump(struct link *l, int end)
{
	struct pipe *p = &l->to[end];
	uint64_t now = l->w->ms;

	if (p->pumped || !p->first || !is_passable(l, end))
		return;
	p->pumped = true;
	after(l->w, p->first->ready_ms > now ? p->first->ready_ms - now : 0, deliver, l,
	      (uint64_t)end);
}

static void put(struct link *l, int end, const void *data, size_t len, bool last)
{
	struct message *m = malloc(sizeof(*m) + len);
	struct pipe *p = &l->to[!end];

	if (!m)
		abort();
	*m = (struct message){ .last = last, .len = len,
			       .ready_ms = l->w->ms + draw(l->w, l->w->plan.latency_ms + 1) };
	if (len)
		memcpy(m->data, data, len);
	if (p->last)
		p->last->next = m;
	else
		p->first = m;
	p->last = m;
	p->no_more = last;
	pump(l, !end);
}

void link_send(struct link *l, int end, const void *data, size_t len)
{
	if (l->open[end] && !l->to[!end].no_more)
		put(l, end, data, len, false);
}

size_t link_unread(const struct link *l, int end)
{
	size_t n = 0;

	for (const struct message *m = l->to[!end].first; m; m = m->next)
		n += m->len;
	return n;
}

void link_close(struct link *l, int end)
{
	if (!l || !l->open[end])
		return;
	l->open[end] = false;
	drop(&l->to[end]);
	put(l, end, NULL, 0, true);
}

void link_reset(struct link *l, int end)
{
	struct pipe *p;
	struct message **m;

	if (!l || !l->open[end])
		return;
	p = &l->to[!end];
	for (m = &p->first, p->last = NULL; *m && !draw_once_in(l->w, 3); m = &(*m)->next)
		p->last = *m;
	while (*m) {
		struct message *lost = *m;

		*m = lost->next;
		free(lost);
	}
	link_close(l, end);
}

/* ---- silence ---- */

struct silent_end {
	struct link *link;
	int end;
};

static void on_dead_peer(struct world *w, void *arg, uint64_t number)
{
	struct link *l = arg;
	int end = (int)(number & 1);

	if (l->silence != number >> 1 || !l->open[end])
		return;
	l->vanished[end] = true;
	end_is_told(l, end, "nothing was heard for a minute");
}

static void begin_silence(struct link *l)
{
	l->silence++;
	for (int end = 0; end < 2; end++)
		if (l->open[end])
			after(l->w, draw_dead_peer(l->w), on_dead_peer, l,
			      l->silence << 1 | (uint64_t)end);
}

/* Messages that were sent meanwhile are sent again, not at once. */
static void end_silence(struct link *l)
{
	l->silence++;
	for (int end = 0; end < 2; end++) {
		uint64_t late = draw(l->w, RETRY_MAX);

		if (l->vanished[!end] && l->open[end] && !l->to[end].no_more)
			put(l, !end, NULL, 0, true);
		for (struct message *m = l->to[end].first; m; m = m->next)
			m->ready_ms = l->w->ms + late;
		pump(l, end);
	}
}

static bool is_of_use(const struct link *l)
{
	return l->open[0] || l->open[1];
}

void links_changed(struct world *w)
{
	for (struct link *l = w->links; l; l = l->next) {
		bool silent = !is_reachable(w, l->ends[0].machine, l->ends[1].machine);

		if (!is_of_use(l) || silent == (l->silence & 1))
			continue;
		if (silent)
			begin_silence(l);
		else
			end_silence(l);
	}
}

void links_lose_machine(struct world *w, unsigned machine)
{
	for (struct link *l = w->links; l; l = l->next)
		for (int end = 0; end < 2; end++) {
			if (l->ends[end].machine != machine || !l->open[end])
				continue;
			l->open[end] = false;
			l->vanished[end] = true;
			drop(&l->to[end]);
			/* what it has sent last may not have left it */
			if (draw_once_in(w, 2))
				drop(&l->to[!end]);
		}
}

/* ---- life ---- */

struct link *link_new(struct world *w, const struct link_end *first,
		      const struct link_end *second)
{
	struct link *l = calloc(1, sizeof(*l));

	if (!l)
		abort();
	*l = (struct link){ .w = w, .ends = { *first, *second },
			    .open = { true, true }, .next = w->links };
	w->links = l;
	return l;
}

void links_free(struct world *w)
{
	while (w->links) {
		struct link *l = w->links;

		w->links = l->next;
		drop(&l->to[0]);
		drop(&l->to[1]);
		free(l);
	}
}
