/* SPDX-License-Identifier: BSD-3-Clause */
/* The step that is explored: what may happen, and what must not. */
#include "world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VALUE_MAX 16
#define WHY "it is gone" /* one text, so that states do not differ by it */

#define SUBSETS 2

enum outcome { NOT_ENTERED, WAITING, DONE, FAILED };

struct frame {
	struct frame *next;
	uint32_t head_len, len;
	unsigned char bytes[]; /* the head, then the body */
};

/* One direction between two nodes. */
struct link {
	uint32_t from, to;
	bool made;     /* it is in the tree */
	bool dead;     /* what is sent now vanishes */
	bool detected; /* the receiver knows; what was under way is lost */
	struct frame *head, *tail;
};

struct rank {
	bool gone;
	uint8_t next; /* in the program */
	uint8_t failed_at; /* 1 + next when the first failure was told; 0: none */
	uint8_t outcome[COLL_KINDS][WORLD_SEQ];
	uint8_t fetched[WORLD_SEQ]; /* outcomes */
	uint8_t fetches;
	struct {
		uint8_t entered;
		uint8_t failed_at; /* 1 + entered when the first failure was told */
		uint8_t outcome[WORLD_SEQ];
	} in[SUBSETS];
};

/* What a host was asked. */
struct asked {
	uint64_t token;
	uint32_t rank;
};

struct node {
	struct world *world;
	uint32_t position;
	struct coll *coll; /* NULL: dead */
	struct asked asked[WORLD_RANKS * WORLD_SEQ];
	uint32_t nasked;
};

struct world {
	const struct scenario *s;
	struct layout *layout;
	broken_fn *broken;
	uint32_t deaf;
	bool fault, broken_off; /* something has died; it is no single rank */
	struct node nodes[WORLD_NODES];
	struct rank ranks[WORLD_RANKS];
	struct link links[WORLD_LINKS]; /* from * WORLD_NODES + to */
};

static void must(const struct world *w, bool promise, const char *what)
{
	if (!promise)
		w->broken(what);
}

/* ---- what ranks say and expect ---- */

static bool is_fetch(char c)
{
	return c == 'x';
}

/* Whose value a rank fetches, and who fetches that of a rank: the same, or none. */
static uint32_t owner_for(const struct world *w, uint32_t rank)
{
	return (rank + w->s->ranks / 2) % w->s->ranks;
}

/* Which subset it is of; SUBSETS: of none. */
static uint32_t subset_of(char c)
{
	return c == 'e' ? 0 : c == 'u' ? 1 : SUBSETS;
}

static bool is_member(const struct world *w, uint32_t subset, uint32_t rank)
{
	return subset == 0 ? rank % 2 == 0 : rank >= w->s->ranks / 2;
}

static uint32_t members_of(const struct world *w, uint32_t subset,
			   uint32_t ranks[WORLD_RANKS])
{
	uint32_t n = 0;

	for (uint32_t r = 0; r < w->s->ranks; r++)
		if (is_member(w, subset, r))
			ranks[n++] = r;
	return n;
}

/* It is of all ranks, and its kind and number say which. */
static bool is_of_all(char c)
{
	return !is_fetch(c) && subset_of(c) == SUBSETS;
}

static enum coll_kind kind_of(char c)
{
	return c == 'f' ? COLL_FENCE : c == 'g' ? COLL_GATHER : COLL_RING;
}

static const char *value_of(char out[VALUE_MAX], enum coll_kind kind,
			    uint32_t rank, uint32_t seq)
{
	snprintf(out, VALUE_MAX, "%c%u%u", "fgr"[kind], rank, seq);
	return out;
}

static bool is_text(const struct payload *p, const char *text)
{
	size_t len = strlen(text);

	return p && p->len == len && !memcmp(p->data, text, len);
}

static bool result_is_right(const struct world *w, enum coll_kind kind,
			    uint32_t seq, const struct payload *result)
{
	char all[WORLD_RANKS * VALUE_MAX] = "", value[VALUE_MAX];

	for (uint32_t r = 0; r < w->s->ranks; r++)
		strcat(all, value_of(value, kind, r, seq));
	return is_text(result, all);
}

/* Ranks are in tree order. */
static bool subset_is_right(const struct world *w, uint32_t subset,
			    uint32_t seq, const struct payload *result)
{
	char all[WORLD_RANKS * VALUE_MAX] = "", value[VALUE_MAX];
	uint32_t ranks[WORLD_RANKS], n = members_of(w, subset, ranks);

	for (uint32_t i = 0; i < n; i++)
		strcat(all, value_of(value, COLL_FENCE, ranks[i], seq));
	return is_text(result, all);
}

static bool ring_is_right(const struct world *w, uint32_t seq, uint32_t rank,
			  const struct coll_ring_result *result)
{
	uint32_t n = w->s->ranks;
	char left[VALUE_MAX], right[VALUE_MAX];

	value_of(left, COLL_RING, (rank + n - 1) % n, seq);
	value_of(right, COLL_RING, (rank + 1) % n, seq);
	return result->rank == rank && result->size == n &&
	       is_text(result->left, left) && is_text(result->right, right);
}

/* ---- operations ---- */

static struct link *link_to(struct world *w, uint32_t from, uint32_t to)
{
	return &w->links[from * WORLD_NODES + to];
}

static void make_link(struct world *w, uint32_t a, uint32_t b)
{
	link_to(w, a, b)->made = true;
	link_to(w, b, a)->made = true;
}

static struct frame *frame_new(const struct coll_msg *msg,
			       const struct payload_vec *body)
{
	struct frame *f;
	struct buf b;

	buf_init(&b, SIZE_MAX);
	coll_msg_pack(&b, msg);
	f = calloc(1, sizeof(*f) + b.len + (body ? body->bytes : 0));
	f->head_len = b.len;
	f->len = b.len;
	memcpy(f->bytes, b.data, b.len);
	for (size_t i = 0; body && i < body->count; i++) {
		memcpy(f->bytes + f->len, body->items[i]->data,
		       body->items[i]->len);
		f->len += body->items[i]->len;
	}
	buf_free(&b);
	return f;
}

static void op_send(void *arg, uint32_t position, const struct coll_msg *msg,
		    const struct payload_vec *body)
{
	struct node *n = arg;
	struct link *l = link_to(n->world, n->position, position);
	struct frame *f;

	must(n->world, l->made, "a message to who is no neighbour");
	if (l->dead || (msg->type == COLL_MSG_FAULT &&
			position == n->world->deaf))
		return;
	f = frame_new(msg, body);
	if (l->tail)
		l->tail->next = f;
	else
		l->head = f;
	l->tail = f;
}

static struct payload *op_combine(void *arg, enum coll_kind kind, uint32_t seq,
				  const struct payload_vec *parts, int *error)
{
	return payload_vec_join(parts);
}

static void fail(struct rank *r)
{
	if (!r->failed_at)
		r->failed_at = r->next + 1;
}

static void op_complete(void *arg, enum coll_kind kind, uint32_t seq,
			struct payload *result, const struct coll_fault *fault)
{
	struct node *n = arg;
	struct world *w = n->world;
	uint32_t count;
	const uint32_t *ranks = layout_ranks_at(w->layout, n->position, &count);

	must(w, fault || result_is_right(w, kind, seq, result),
	     "a rank got a wrong result");
	for (uint32_t i = 0; i < count; i++) {
		struct rank *r = &w->ranks[ranks[i]];
		uint8_t *outcome = &r->outcome[kind][seq];

		must(w, fault || *outcome == WAITING,
		     "success for a rank that has not entered");
		if (*outcome != WAITING)
			continue;
		*outcome = fault ? FAILED : DONE;
		if (fault)
			fail(r);
	}
}

static void op_complete_ring(void *arg, uint32_t seq, uint32_t slot,
			     const struct coll_ring_result *result,
			     const struct coll_fault *fault)
{
	struct node *n = arg;
	struct world *w = n->world;
	uint32_t count, rank;
	struct rank *r;

	rank = layout_ranks_at(w->layout, n->position, &count)[slot];
	r = &w->ranks[rank];
	must(w, r->outcome[COLL_RING][seq] == WAITING,
	     "a ring ended that was not entered");
	must(w, fault || ring_is_right(w, seq, rank, result),
	     "a rank got wrong neighbours");
	r->outcome[COLL_RING][seq] = fault ? FAILED : DONE;
	if (fault)
		fail(r);
}

static bool all_have_entered(const struct world *w, uint32_t subset,
			     uint32_t seq)
{
	for (uint32_t r = 0; r < w->s->ranks; r++)
		if (is_member(w, subset, r) &&
		    w->ranks[r].in[subset].entered <= seq)
			return false;
	return true;
}

/* `id`: which one of which subset. */
static void op_complete_subset(void *arg, uint32_t slot, uint64_t id,
			       struct payload *result, const char *why)
{
	struct node *n = arg;
	struct world *w = n->world;
	uint32_t count, subset = id / WORLD_SEQ, seq = id % WORLD_SEQ;
	struct rank *r;

	r = &w->ranks[layout_ranks_at(w->layout, n->position, &count)[slot]];
	must(w, r->in[subset].outcome[seq] == WAITING,
	     "a collective of a subset ended that was not entered");
	must(w, why || all_have_entered(w, subset, seq),
	     "success before all of a subset have entered");
	must(w, why || subset_is_right(w, subset, seq, result),
	     "a rank got a wrong result of a subset");
	r->in[subset].outcome[seq] = why ? FAILED : DONE;
	if (why && !r->in[subset].failed_at)
		r->in[subset].failed_at = r->in[subset].entered + 1;
}

static int op_fetch_asked(void *arg, uint64_t token,
			  const struct coll_fetch *what)
{
	struct node *n = arg;

	must(n->world, layout_rank_position(n->world->layout, what->rank) ==
	     n->position, "a host was asked for a rank of another node");
	n->asked[n->nasked++] = (struct asked){ token, what->rank };
	return 0;
}

/* `id`: which fetch of which rank. */
static void op_fetched(void *arg, uint64_t id, const struct coll_fetched *end)
{
	struct world *w = ((struct node *)arg)->world;
	uint32_t rank = id % WORLD_RANKS;
	uint8_t *outcome = &w->ranks[rank].fetched[id / WORLD_RANKS];
	char text[VALUE_MAX];
	bool found = end->status == COLL_FETCH_FOUND;

	must(w, *outcome == WAITING, "a fetch ended that was not under way");
	must(w, found || w->fault, "a fetch failed without a fault");
	must(w, !found || is_text(end->value,
				  value_of(text, 0, owner_for(w, rank), 0)),
	     "a rank got what it had not asked for");
	*outcome = found ? DONE : FAILED;
}

static const struct coll_ops ops = {
	.send = op_send,
	.combine = op_combine,
	.complete = op_complete,
	.complete_ring = op_complete_ring,
	.complete_subset = op_complete_subset,
	.fetch_asked = op_fetch_asked,
	.fetched = op_fetched,
};

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
		must(w, !coll_create(&n->coll, w->layout, p, &options, &ops, n),
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

static uint32_t unfinished(const struct world *w, const struct rank *r)
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

static bool alive(const struct world *w, uint32_t position)
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
	coll_rank_gone(c, slot, WHY);
}

/* What it has sent may still arrive. */
static void node_dies(struct world *w, uint32_t position)
{
	uint32_t count;
	const uint32_t *ranks = layout_ranks_at(w->layout, position, &count);

	coll_destroy(w->nodes[position].coll);
	w->nodes[position].coll = NULL;
	for (uint32_t i = 0; i < count; i++)
		w->ranks[ranks[i]].gone = true;
	/* Those that are not made yet will not be. */
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

/* ---- the end ---- */

/* From the n-th collective of the program on all have failed for this rank. */
static bool failed_from(const struct world *w, const struct rank *r, uint32_t n)
{
	uint32_t seq[COLL_KINDS] = { 0 };

	for (uint32_t i = 0; w->s->program[i]; i++) {
		enum coll_kind kind = kind_of(w->s->program[i]);
		uint8_t outcome = FAILED;

		if (is_of_all(w->s->program[i]))
			outcome = r->outcome[kind][seq[kind]++];
		if (i >= n && outcome != FAILED)
			return false;
	}
	return true;
}

/* What a rank enters after its first error fails for everybody. */
static void check_later_ones(const struct world *w)
{
	for (uint32_t a = 0; a < w->s->ranks; a++) {
		const struct rank *r = &w->ranks[a];

		if (r->gone || !r->failed_at)
			continue;
		for (uint32_t b = 0; b < w->s->ranks; b++)
			must(w, w->ranks[b].gone ||
				failed_from(w, &w->ranks[b], r->failed_at - 1u),
			     "a later collective succeeded somewhere");
	}
}

static bool is_whole(const struct world *w, uint32_t subset)
{
	for (uint32_t r = 0; r < w->s->ranks; r++)
		if (is_member(w, subset, r) && w->ranks[r].gone)
			return false;
	return !w->broken_off;
}

/* From the n-th of a subset on all have failed for each member. */
static bool subset_failed_from(const struct world *w, uint32_t subset,
			       uint32_t n)
{
	for (uint32_t r = 0; r < w->s->ranks; r++)
		for (uint32_t i = n; i < w->ranks[r].in[subset].entered; i++)
			if (!w->ranks[r].gone &&
			    w->ranks[r].in[subset].outcome[i] != FAILED)
				return false;
	return true;
}

/* The death of a rank that is no member affects none; a failure is for good. */
static void check_subset(const struct world *w, uint32_t subset)
{
	for (uint32_t r = 0; r < w->s->ranks; r++) {
		uint32_t failed_at = w->ranks[r].in[subset].failed_at;

		if (!failed_at || w->ranks[r].gone)
			continue;
		must(w, !is_whole(w, subset),
		     "a subset failed that has lost nobody");
		must(w, subset_failed_from(w, subset, failed_at - 1),
		     "a later collective of a subset succeeded somewhere");
	}
}

void world_check_end(const struct world *w)
{
	for (uint32_t r = 0; r < w->s->ranks; r++) {
		const struct rank *rank = &w->ranks[r];

		must(w, rank->gone || unfinished(w, rank) == 0,
		     "a rank waits and nothing is under way");
		must(w, rank->gone || !w->s->program[rank->next],
		     "a rank cannot go on");
		must(w, w->fault || !rank->failed_at,
		     "a collective failed without a fault");
	}
	for (uint32_t p = 0; p < w->s->nodes; p++)
		must(w, !alive(w, p) || !coll_pending(w->nodes[p].coll),
		     "a node believes that something is pending");
	for (uint32_t p = 0; p < w->s->nodes; p++)
		must(w, !alive(w, p) || !coll_fetches_pending(w->nodes[p].coll),
		     "a node believes that a fetch is under way");
	check_later_ones(w);
	for (uint32_t i = 0; i < SUBSETS; i++)
		check_subset(w, i);
}
