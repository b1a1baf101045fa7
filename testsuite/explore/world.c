/* SPDX-License-Identifier: BSD-3-Clause */
/* The step that is explored: its life, and what may happen. */
#include "world_private.h"

#include <stdlib.h>
#include <string.h>

/* ---- life ---- */

static struct layout *make_layout(const struct scenario *s)
{
	uint32_t counts[WORLD_NODES] = { 0 };
	uint32_t ranks[WORLD_NODES][WORLD_RANKS];
	const uint32_t *lists[WORLD_NODES];
	struct layout *l = NULL;

	for (uint32_t p = 0; p < s->nodes; p++)
		lists[p] = ranks[p];
	for (uint32_t r = 0; r < s->ranks; r++) {
		uint32_t p = r * s->nodes / s->ranks;

		ranks[p][counts[p]++] = r;
	}
	layout_create(&l, s->nodes, s->ranks, counts, lists);
	return l;
}

/* To what it enters next. */
static void skip(struct world *w, uint32_t rank)
{
	uint8_t *next = &w->ranks[rank].next;
	uint32_t subset = subset_of(w->s->program[*next]);

	while (subset < SUBSETS && !is_member(w, subset, rank))
		subset = subset_of(w->s->program[++*next]);
}

struct world *world_new(const struct scenario *s, uint32_t deaf,
			broken_fn *broken)
{
	struct world *w = calloc(1, sizeof(*w));
	struct coll_options options = {
		.tree_width = s->width,
		.piece = s->piece,
	};

	w->s = s;
	w->deaf = deaf;
	w->broken = broken;
	w->layout = make_layout(s);
	for (uint32_t p = 0; p < s->nodes; p++) {
		struct node *n = &w->nodes[p];
		uint32_t parent;

		n->world = w;
		n->position = p;
		must(w, !coll_create(&n->coll, w->layout, p, &options, &world_ops, n),
		     "a node could not be created");
		parent = coll_place(n->coll)->parent;
		if (parent != TREE_NONE)
			make_link(w, p, parent);
	}
	for (uint32_t i = 0; i < WORLD_LINKS; i++) {
		w->links[i].from = i / WORLD_NODES;
		w->links[i].to = i % WORLD_NODES;
	}
	for (uint32_t r = 0; r < s->ranks; r++)
		skip(w, r);
	return w;
}

static void empty(struct link *l)
{
	while (l->head) {
		struct frame *next = l->head->next;

		free(l->head);
		l->head = next;
	}
	l->tail = NULL;
}

void world_free(struct world *w)
{
	for (uint32_t p = 0; p < w->s->nodes; p++)
		coll_destroy(w->nodes[p].coll);
	for (uint32_t i = 0; i < WORLD_LINKS; i++)
		empty(&w->links[i]);
	layout_destroy(w->layout);
	free(w);
}

/* ---- what may happen ---- */

uint32_t unfinished(const struct world *w, const struct rank *r)
{
	uint32_t n = 0;

	for (int kind = 0; kind < COLL_KINDS; kind++)
		for (uint32_t seq = 0; seq < WORLD_SEQ; seq++)
			n += r->outcome[kind][seq] == WAITING;
	for (uint32_t i = 0; i < r->fetches; i++)
		n += r->fetched[i] == WAITING;
	for (uint32_t i = 0; i < SUBSETS * WORLD_SEQ; i++)
		n += r->in[i / WORLD_SEQ].outcome[i % WORLD_SEQ] == WAITING;
	return n;
}

bool alive(const struct world *w, uint32_t position)
{
	return w->nodes[position].coll != NULL;
}

static bool may_enter(const struct world *w, uint32_t rank)
{
	const struct rank *r = &w->ranks[rank];

	return !r->gone && w->s->program[r->next] &&
	       unfinished(w, r) < w->s->window;
}

static uint32_t add(struct event *out, uint32_t n, enum event_type type,
		    uint32_t which)
{
	if (n == WORLD_EVENTS)
		abort();
	out[n] = (struct event){ type, which };
	return n + 1;
}

static uint32_t add_faults(const struct world *w, struct event *out, uint32_t n)
{
	for (uint32_t r = 0; w->s->rank_dies && r < w->s->ranks; r++)
		n = add(out, n, EVENT_RANK_DIES, r);
	for (uint32_t p = 0; w->s->node_dies && p < w->s->nodes; p++)
		n = add(out, n, EVENT_NODE_DIES, p);
	for (uint32_t i = 0; w->s->link_breaks && i < WORLD_LINKS; i++)
		if (w->links[i].made && w->links[i].from > w->links[i].to)
			n = add(out, n, EVENT_LINK_BREAKS, i);
	return n;
}

uint32_t world_events(const struct world *w, struct event out[WORLD_EVENTS])
{
	uint32_t n = 0;

	for (uint32_t r = 0; r < w->s->ranks; r++)
		if (may_enter(w, r))
			n = add(out, n, EVENT_ENTER, r);
	for (uint32_t p = 0; p < w->s->nodes; p++)
		if (alive(w, p) && w->nodes[p].nasked)
			n = add(out, n, EVENT_ANSWER, p);
	for (uint32_t i = 0; i < WORLD_LINKS; i++) {
		const struct link *l = &w->links[i];

		if (!l->made || !alive(w, l->to))
			continue;
		if (l->head)
			n = add(out, n, EVENT_DELIVER, i);
		if (l->dead && !l->detected)
			n = add(out, n, EVENT_DETECT, i);
	}
	return w->fault ? n : add_faults(w, out, n);
}

/* ---- events ---- */

static struct coll *coll_of(struct world *w, uint32_t rank, uint32_t *slot)
{
	uint32_t p = layout_rank_position(w->layout, rank), count;
	const uint32_t *ranks = layout_ranks_at(w->layout, p, &count);

	for (*slot = 0; ranks[*slot] != rank;)
		++*slot;
	return w->nodes[p].coll;
}

static void fetch(struct world *w, uint32_t rank)
{
	struct rank *r = &w->ranks[rank];
	const struct coll_fetch what = { .rank = owner_for(w, rank) };
	uint32_t slot, i = r->fetches++;

	r->next++;
	r->fetched[i] = WAITING;
	must(w, !coll_fetch(coll_of(w, rank, &slot), &what,
			    i * WORLD_RANKS + rank), "a rank may not fetch");
}

/* It may have ended for another reason. */
static void answer(struct world *w, struct node *n)
{
	struct asked a = n->asked[0];
	struct coll_fetched end = { .status = COLL_FETCH_FOUND };
	char text[VALUE_MAX];

	n->nasked--;
	memmove(n->asked, n->asked + 1, n->nasked * sizeof(a));
	n->asked[n->nasked] = (struct asked){ 0 };
	value_of(text, 0, a.rank, 0);
	end.value = payload_copy(text, strlen(text));
	(void)coll_fetch_answer(n->coll, a.token, &end);
	payload_unref(end.value);
}

static void enter_subset(struct world *w, uint32_t rank, uint32_t subset)
{
	struct rank *r = &w->ranks[rank];
	uint32_t ranks[WORLD_RANKS], slot, seq = r->in[subset].entered++;
	const struct coll_subset_name name = {
		.ranks = ranks, .count = members_of(w, subset, ranks),
	};
	char text[VALUE_MAX];
	struct payload *value;
	struct coll *c = coll_of(w, rank, &slot);

	r->next++;
	r->in[subset].outcome[seq] = WAITING;
	value_of(text, COLL_FENCE, rank, seq);
	value = payload_copy(text, strlen(text));
	must(w, !coll_enter_subset(c, slot, &name, value,
				   subset * WORLD_SEQ + seq),
	     "a rank may not enter a collective of a subset");
	payload_unref(value);
}

static void enter(struct world *w, uint32_t rank)
{
	struct rank *r = &w->ranks[rank];
	enum coll_kind kind = kind_of(w->s->program[r->next]);
	uint32_t slot, seq, got = 0;
	struct coll *c = coll_of(w, rank, &slot);
	char text[VALUE_MAX];
	struct payload *value;
	int rc;

	r->next++;
	seq = coll_entered(c, kind, slot);
	r->outcome[kind][seq] = WAITING;
	value_of(text, kind, rank, seq);
	value = payload_copy(text, strlen(text));
	if (kind == COLL_RING)
		rc = coll_enter_ring(c, slot, 1, value, value, &got);
	else
		rc = coll_enter(c, kind, slot, value, &got);
	payload_unref(value);
	must(w, !rc && got == seq, "a rank may not enter");
}

static void deliver(struct world *w, struct link *l)
{
	struct frame *f = l->head;
	struct payload *body = NULL;
	struct coll_msg msg;
	struct cursor c;

	l->head = f->next;
	if (!l->head)
		l->tail = NULL;
	cursor_init(&c, f->bytes, f->head_len);
	must(w, !coll_msg_unpack(&c, &msg) && cursor_done(&c),
	     "a message that cannot be read");
	if (f->len > f->head_len)
		body = payload_copy(f->bytes + f->head_len,
				    f->len - f->head_len);
	free(f);
	must(w, !coll_receive(w->nodes[l->to].coll, l->from, &msg, body),
	     "a neighbour's message was refused");
	payload_unref(body);
}

static void detect(struct world *w, struct link *l)
{
	empty(l);
	l->detected = true;
	coll_link_lost(w->nodes[l->to].coll, l->from, false, WHY);
}

static void rank_dies(struct world *w, uint32_t rank)
{
	uint32_t slot;
	struct coll *c = coll_of(w, rank, &slot);

	w->ranks[rank].gone = true;
	coll_rank_gone(c, slot, COLL_OF_ALL, WHY);
}

/* Messages that the node has sent may still arrive. */
static void node_dies(struct world *w, uint32_t position)
{
	uint32_t count;
	const uint32_t *ranks = layout_ranks_at(w->layout, position, &count);

	coll_destroy(w->nodes[position].coll);
	w->nodes[position].coll = NULL;
	for (uint32_t i = 0; i < count; i++)
		w->ranks[ranks[i]].gone = true;
	/* Links that are not made yet will not be. */
	for (uint32_t i = 0; i < WORLD_LINKS; i++) {
		struct link *l = &w->links[i];

		if (l->to == position)
			empty(l);
		if (l->to == position || l->from == position)
			l->dead = true;
	}
}

/* With what comes next in its program. */
static void go_on(struct world *w, uint32_t rank)
{
	char what = w->s->program[w->ranks[rank].next];

	if (is_fetch(what))
		fetch(w, rank);
	else if (is_of_all(what))
		enter(w, rank);
	else
		enter_subset(w, rank, subset_of(what));
	skip(w, rank);
}

void world_apply(struct world *w, struct event e)
{
	struct link *l;

	w->fault |= e.type >= EVENT_RANK_DIES;
	w->broken_off |= e.type > EVENT_RANK_DIES;
	switch (e.type) {
	case EVENT_ENTER:
		go_on(w, e.which);
		break;
	case EVENT_ANSWER:
		answer(w, &w->nodes[e.which]);
		break;
	case EVENT_DELIVER:
		deliver(w, &w->links[e.which]);
		break;
	case EVENT_DETECT:
		detect(w, &w->links[e.which]);
		break;
	case EVENT_RANK_DIES:
		rank_dies(w, e.which);
		break;
	case EVENT_NODE_DIES:
		node_dies(w, e.which);
		break;
	case EVENT_LINK_BREAKS:
		l = &w->links[e.which];
		l->dead = link_to(w, l->to, l->from)->dead = true;
		break;
	}
}
