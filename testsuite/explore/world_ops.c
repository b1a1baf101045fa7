/* SPDX-License-Identifier: BSD-3-Clause */
/* Operations of nodes of the explored step, and their limits. */
#include "world_private.h"

#include <stdlib.h>
#include <string.h>

struct link *link_to(struct world *w, uint32_t from, uint32_t to)
{
	return &w->links[from * WORLD_NODES + to];
}

void make_link(struct world *w, uint32_t a, uint32_t b)
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

const struct coll_ops world_ops = {
	.send = op_send,
	.combine = op_combine,
	.complete = op_complete,
	.complete_ring = op_complete_ring,
	.complete_subset = op_complete_subset,
	.fetch_asked = op_fetch_asked,
	.fetched = op_fetched,
};
