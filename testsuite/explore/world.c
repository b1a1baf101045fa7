/* SPDX-License-Identifier: BSD-3-Clause */
/* The step that is explored: its life, and what may happen. */
#include "world_private.h"

#include <stdlib.h>
#include <string.h>

/* ---- its program ---- */

uint32_t subset_of(char c)
{
	return c == 'e' ? 0 : c == 'u' ? 1 : SUBSETS;
}

static bool is_fetch(char c)
{
	return c == 'x';
}

bool is_of_all(char c)
{
	return !is_fetch(c) && subset_of(c) == SUBSETS;
}

enum coll_kind kind_of(char c)
{
	return c == 'f' ? COLL_FENCE : c == 'g' ? COLL_GATHER : COLL_RING;
}

static bool is_member(const struct world *w, uint32_t subset, uint32_t rank)
{
	return subset == 0 ? rank % 2 == 0 : rank >= w->s->ranks / 2;
}

/* To what it enters next. */
static void skip(struct world *w, uint32_t rank)
{
	uint8_t *next = &w->ranks[rank].next;
	uint32_t subset = subset_of(w->s->program[*next]);

	while (subset < SUBSETS && !is_member(w, subset, rank))
		subset = subset_of(w->s->program[++*next]);
}

/* ---- life ---- */

static void make_groups(struct world *w)
{
	for (uint32_t subset = 0; subset < SUBSETS; subset++) {
		uint32_t ranks[WORLD_RANKS], n = 0;

		for (uint32_t r = 0; r < w->s->ranks; r++)
			if (is_member(w, subset, r))
				ranks[n++] = r;
		bed_group(w->bed, ranks, n);
	}
}

struct world *world_new(const struct scenario *s, uint32_t deaf, broken_fn *broken)
{
	static struct bed_record record; /* no part of a state */
	struct world *w = calloc(1, sizeof(*w));
	bool subsets = strpbrk(s->program, "eu") != NULL;

	w->s = s;
	w->bed = bed_new(&(struct bed_options){
		.nodes = s->nodes, .ranks = s->ranks, .width = s->width,
		.piece = s->piece, .seq_max = WORLD_SEQ,
		.fetches_max = strchr(s->program, 'x') ? WORLD_SEQ * s->ranks : 0,
		.groups_max = subsets ? SUBSETS : 0, .is_deaf = deaf < s->nodes,
		.deaf = deaf, .broken = broken, .record = &record,
	});
	if (subsets)
		make_groups(w);
	for (uint32_t r = 0; r < s->ranks; r++)
		skip(w, r);
	return w;
}

void world_free(struct world *w)
{
	bed_free(w->bed);
	free(w);
}

/* ---- what may happen ---- */

static bool waits_in(const struct bed *b, uint32_t group, uint32_t rank, uint32_t seq)
{
	uint32_t i = bed_group_index(&b->groups[group], rank);

	return i < b->groups[group].count && b->groups[group].outcome[i][seq] == BED_WAITING;
}

uint32_t unfinished(const struct world *w, uint32_t rank)
{
	const struct bed *b = w->bed;
	uint32_t n = 0;

	for (uint32_t seq = 0; seq < WORLD_SEQ; seq++) {
		for (int kind = 0; kind < COLL_KINDS; kind++)
			n += bed_outcome(b, kind, rank, seq) == BED_WAITING;
		for (uint32_t g = 0; g < b->ngroups; g++)
			n += waits_in(b, g, rank, seq);
	}
	for (uint32_t i = 0; i < w->ranks[rank].fetches; i++)
		n += b->fetches[i * w->s->ranks + rank].outcome == BED_WAITING;
	return n;
}

static bool may_enter(const struct world *w, uint32_t rank)
{
	return !w->bed->gone[rank] && w->s->program[w->ranks[rank].next] &&
	       unfinished(w, rank) < w->s->window;
}

static uint32_t add(struct event *out, uint32_t n, enum event_type type,
		    uint32_t which)
{
	if (n == WORLD_EVENTS)
		abort();
	out[n] = (struct event){ type, which };
	return n + 1;
}

static uint32_t number_of(const struct bed_link *l)
{
	return l->from * WORLD_NODES + l->to;
}

static uint32_t add_faults(const struct world *w, struct event *out, uint32_t n)
{
	for (uint32_t r = 0; w->s->rank_dies && r < w->s->ranks; r++)
		n = add(out, n, EVENT_RANK_DIES, r);
	for (uint32_t p = 0; w->s->node_dies && p < w->s->nodes; p++)
		n = add(out, n, EVENT_NODE_DIES, p);
	for (uint32_t p = 1; w->s->link_breaks && p < w->s->nodes; p++)
		n = add(out, n, EVENT_LINK_BREAKS, number_of(&w->bed->links[2 * p]));
	return n;
}

/* The first question to a host of the node. */
static uint32_t first_asked(const struct bed *b, uint32_t position)
{
	uint32_t i = 0;

	while (i < b->nasked && b->asked[i].position != position)
		i++;
	return i;
}

uint32_t world_events(const struct world *w, struct event out[WORLD_EVENTS])
{
	const struct bed *b = w->bed;
	uint32_t n = 0;

	for (uint32_t r = 0; r < w->s->ranks; r++)
		if (may_enter(w, r))
			n = add(out, n, EVENT_ENTER, r);
	for (uint32_t p = 0; p < w->s->nodes; p++)
		if (b->nodes[p].coll && first_asked(b, p) < b->nasked)
			n = add(out, n, EVENT_ANSWER, p);
	for (uint32_t i = 2; i < b->nlinks; i++) { /* the root has no parent */
		const struct bed_link *l = &b->links[i];

		if (!b->nodes[l->to].coll)
			continue;
		if (l->head)
			n = add(out, n, EVENT_DELIVER, number_of(l));
		if (l->dead && !l->detected)
			n = add(out, n, EVENT_DETECT, number_of(l));
	}
	return w->fault ? n : add_faults(w, out, n);
}

/* ---- events ---- */

/* The owner is the rank that is half of them away. */
static void fetch(struct world *w, uint32_t rank)
{
	uint32_t i = w->ranks[rank].fetches++, n = w->s->ranks;

	bed_must(w->bed, !bed_fetch_as(w->bed, i * n + rank,
				       layout_rank_position(w->bed->layout, rank),
				       (rank + n / 2) % n), "a rank may not fetch");
}

/* With what comes next in its program. */
static void go_on(struct world *w, uint32_t rank)
{
	char what = w->s->program[w->ranks[rank].next++];
	uint32_t group = subset_of(what);

	if (is_fetch(what))
		fetch(w, rank);
	else if (is_of_all(what))
		bed_must(w->bed, !bed_enter(w->bed, kind_of(what), rank),
			 "a rank may not enter");
	else
		bed_must(w->bed, !bed_enter_group(w->bed, group, bed_group_index(
				 &w->bed->groups[group], rank)),
			 "a rank may not enter a collective of a subset");
	skip(w, rank);
}

static bool has_failed(const struct bed *b, uint32_t rank)
{
	for (int kind = 0; kind < COLL_KINDS; kind++)
		for (uint32_t seq = 0; seq < WORLD_SEQ; seq++)
			if (bed_outcome(b, kind, rank, seq) == BED_FAILED)
				return true;
	return false;
}

static void note_subset_failure(struct world *w, uint32_t subset)
{
	const struct bed_group *g = &w->bed->groups[subset];

	for (uint32_t i = 0; i < g->count; i++) {
		uint8_t *at = &w->ranks[g->ranks[i]].subset_failed_at[subset];

		if (!*at && memchr(g->outcome[i], BED_FAILED, g->entered[i]))
			*at = g->entered[i] + 1;
	}
}

static void note_failures(struct world *w)
{
	for (uint32_t r = 0; r < w->s->ranks; r++)
		if (!w->ranks[r].failed_at && has_failed(w->bed, r))
			w->ranks[r].failed_at = w->ranks[r].next + 1;
	for (uint32_t g = 0; g < w->bed->ngroups; g++)
		note_subset_failure(w, g);
	for (uint32_t i = 0; i < w->bed->o.fetches_max; i++)
		bed_must(w->bed, w->fault || w->bed->fetches[i].outcome != BED_FAILED,
			 "a fetch failed without a fault");
}

void world_apply(struct world *w, struct event e)
{
	struct bed *b = w->bed;
	struct bed_link *l = bed_link(b, e.which / WORLD_NODES, e.which % WORLD_NODES);

	w->fault |= e.type >= EVENT_RANK_DIES;
	w->broken_off |= e.type > EVENT_RANK_DIES;
	switch (e.type) {
	case EVENT_ENTER:
		go_on(w, e.which);
		break;
	case EVENT_ANSWER: /* the fetch may have ended for another reason */
		(void)bed_answer(b, first_asked(b, e.which), COLL_FETCH_FOUND);
		break;
	case EVENT_DELIVER:
		bed_deliver_on(b, l);
		break;
	case EVENT_DETECT:
		bed_detect(b, l);
		break;
	case EVENT_RANK_DIES:
		bed_rank_gone(b, e.which);
		break;
	case EVENT_NODE_DIES:
		bed_kill(b, e.which);
		break;
	case EVENT_LINK_BREAKS:
		bed_break(b, l->from);
		break;
	}
	note_failures(w);
}
