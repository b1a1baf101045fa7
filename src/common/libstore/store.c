/* SPDX-License-Identifier: BSD-3-Clause */
/* The store of a node: its clients, and where their requests go. */
#include "libstore/store_private.h"

#include <errno.h>
#include <stdlib.h>

/* ---- answers ---- */

static void free_request(struct store *s, struct own_request *r)
{
	wait_end(s, r);
	HASH_DEL(s->own, r);
	DL_DELETE(r->client->requests, r);
	r->client->count--;
	s->waiting -= r->client->space != STORE_AGENT;
	free(r);
}

static void answer_own(struct store *s, uint64_t number, const struct store_answer *a)
{
	struct own_request *r;

	HASH_FIND(hh, s->own, &number, sizeof(number), r);
	if (r) {
		const struct store_client *c = r->client;
		struct store_answer mine = *a;
		uint64_t token = r->token;

		if (r->waits_only)
			mine.nvalues = 0;
		free_request(s, r);
		c->ops->answer(c->arg, token, &mine);
	}
}

static int compare_positions(const void *a, const void *b)
{
	const struct asker *x = a, *y = b;

	return x->position < y->position ? -1 : x->position > y->position;
}

/* A neighbour gets one message for all of its requests. */
void store_answer(void *store, struct asker *to, uint32_t n, const struct store_answer *answer)
{
	uint32_t first = 0, end;

	if (n > 1)
		qsort(to, n, sizeof(*to), compare_positions);
	for (; first < n; first = end) {
		end = first + 1;
		if (to[first].position == ASKER_HERE) {
			answer_own(store, to[first].number, answer);
			continue;
		}
		while (end < n && to[end].position == to[first].position)
			end++;
		node_send_answer(store, &to[first], end - first, answer);
	}
}

static void refuse(const struct store_client *c, uint64_t token, enum store_status status,
		   const char *text)
{
	const struct store_answer a = { .status = status, .text = text };

	c->ops->answer(c->arg, token, &a);
}

/* ---- clients ---- */

struct store_client *store_client_open(struct store *s, enum store_space space,
				       const struct store_client_ops *ops, void *arg)
{
	struct store_client *c = calloc(1, sizeof(*c));

	if (c)
		*c = (struct store_client){
			.store = s, .space = space, .ops = ops, .arg = arg,
		};
	return c;
}

static struct asker asker_of(const struct own_request *r)
{
	return (struct asker){ r->number, ASKER_HERE, 0 };
}

static void withdraw(struct store *s, struct own_request *r)
{
	const struct asker asker = asker_of(r);

	if (!r->local && s->relay)
		(void)relay_cancel(s->relay, &asker);
	else if (r->local || !recall_cancel(s, &asker))
		(void)home_cancel(r->local ? s->here : s->step, &asker);
	free_request(s, r);
}

void store_client_close(struct store_client *c)
{
	if (!c)
		return;
	while (c->requests)
		withdraw(c->store, c->requests);
	free(c);
}

static struct own_request *add_request(struct store_client *c, uint64_t token, bool local)
{
	struct own_request *r = calloc(1, sizeof(*r));
	struct store *s = c->store;

	if (!r)
		return NULL;
	r->number = ++s->last_number;
	r->token = token;
	r->local = local;
	r->client = c;
	HASH_ADD(hh, s->own, number, sizeof(r->number), r);
	if (!r->hh.tbl) {
		free(r);
		return NULL;
	}
	DL_PREPEND(c->requests, r);
	c->count++;
	s->waiting += c->space != STORE_AGENT;
	return r;
}

void store_dispatch(struct store *s, const struct asker *from, enum store_space space,
		    const struct store_request *rq)
{
	if (s->relay)
		relay_ask(s->relay, from, space, rq);
	else
		recall_ask(s, from, space, rq);
}

void store_ask(struct store_client *c, uint64_t token, const struct store_request *rq)
{
	const char *why = request_check(rq);
	struct store *s = c->store;
	struct store_request ordered;
	struct own_request *r;
	struct asker from;

	if (why || c->count >= STORE_PENDING_MAX) {
		refuse(c, token, why ? STORE_INVALID : STORE_FULL,
		       why ? why : "more than 65536 requests of one client wait");
		return;
	}
	r = add_request(c, token, rq->local);
	if (!r) {
		refuse(c, token, STORE_FULL, "no memory for a request");
		return;
	}
	if ((rq->op == STORE_WAIT || rq->op == STORE_FETCH) && c->space != STORE_AGENT)
		wait_begin(s, r, rq);
	from = asker_of(r);
	if (rq->local) {
		home_ask(s->here, &from, c->space, rq);
		return;
	}
	ordered = *rq;
	ordered.behind = c->count > 1;
	if (request_reads(rq))
		ordered.rank = 0; /* so that requests of all ranks read the same: relay.h */
	if (s->relay && rq->op == STORE_WAIT && rq->nkeys == 1) {
		ordered.op = STORE_FETCH; /* its client is likely to get the value next */
		r->waits_only = true;
	}
	node_use(s, ASKER_HERE);
	store_dispatch(s, &from, c->space, &ordered);
}

bool store_cancel(struct store_client *c, uint64_t token)
{
	struct own_request *r = c->requests;

	while (r && r->token != token)
		r = r->next;
	if (r)
		withdraw(c->store, r);
	return r != NULL;
}

uint32_t store_pending(const struct store_client *c)
{
	return c->count;
}

uint32_t store_waiting(const struct store *s)
{
	return s->waiting;
}

/* ---- ranks ---- */

void store_rank_gone(struct store *s, uint32_t rank, const char *how)
{
	home_rank_gone(s->here, rank, how);
	if (s->step)
		home_rank_gone(s->step, rank, how);
	else if (s->used)
		node_send_gone(s, rank, how);
}

/* ---- life ---- */

struct window *store_window(struct store *s, uint32_t position)
{
	uint32_t i;

	if (position == TREE_NONE)
		return NULL;
	if (position == s->place.parent)
		return &s->windows[s->place.children];
	i = tree_child_index(&s->place, position);
	if (i == TREE_NONE || tree_child(&s->place, i).first != position)
		return NULL;
	return &s->windows[i];
}

static int make_windows(struct store *s)
{
	uint32_t n = s->place.children;

	s->windows = calloc((size_t)n + 1, sizeof(*s->windows));
	if (!s->windows)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++)
		window_init(&s->windows[i], &s->ops, tree_child(&s->place, i).first);
	window_init(&s->windows[n], &s->ops, s->place.parent);
	return 0;
}

/* Nothing is sent any more. */
static void free_links(struct store *s)
{
	for (uint32_t i = 0; s->windows && i <= s->place.children; i++)
		s->windows[i].closed = true;
	for (uint32_t i = 0; s->windows && i <= s->place.children; i++)
		window_close(&s->windows[i]);
	recall_free(&s->recall, s->place.children);
	free(s->windows);
}

static int make_homes(struct store *s, const char *const *names,
		      const struct store_options *options)
{
	struct home_options o = {
		.store = *options, .layout = s->layout, .names = names,
	};
	const struct relay_ops relay_ops = { node_send_up, store_answer, s };
	int rc;

	o.ranks = layout_ranks_at(s->layout, s->position, &o.nranks);
	rc = home_create(&s->here, &o, store_answer, s);
	if (rc)
		return rc;
	if (s->place.parent != TREE_NONE) {
		s->relay = relay_create(&relay_ops, options);
		return s->relay ? 0 : -ENOMEM;
	}
	o.ranks = NULL;
	o.nranks = layout_ranks(s->layout);
	return home_create(&s->step, &o, store_answer, s);
}

int store_create(struct store **out, const struct layout *layout,
		 const struct tree_place *place, const char *const *names,
		 const struct store_options *options, const struct store_ops *ops)
{
	struct store *s = calloc(1, sizeof(*s));

	*out = NULL;
	if (!s)
		return -ENOMEM;
	s->ops = *ops;
	s->place = *place;
	s->layout = layout;
	s->names = names;
	s->position = place->range.first;
	s->budget = options->budget;
	s->gone = calloc((size_t)place->children + 1, sizeof(*s->gone));
	if (!s->gone || recall_init(&s->recall, place->children) || make_windows(s) ||
	    make_homes(s, names, options)) {
		store_destroy(s);
		return -ENOMEM;
	}
	*out = s;
	return 0;
}

void store_destroy(struct store *s)
{
	if (!s)
		return;
	home_destroy(s->here);
	home_destroy(s->step);
	relay_destroy(s->relay);
	free_links(s);
	for (uint32_t i = 0; s->gone && i < s->place.children; i++)
		free(s->gone[i]);
	free(s->gone);
	free(s);
}
