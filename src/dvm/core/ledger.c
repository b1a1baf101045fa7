/* SPDX-License-Identifier: BSD-3-Clause */
/* The ledger of nodes: what each has, and which tasks have what of it. */
#include "dvm/core/ledger_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libutil/array.h"

/* A node and how many ranks it takes. */
struct room {
	uint32_t node;
	uint32_t ranks;
};

/* ---- nodes ---- */

int ledger_create(struct ledger **out)
{
	*out = calloc(1, sizeof(**out));
	return *out ? 0 : -ENOMEM;
}

void ledger_destroy(struct ledger *l)
{
	if (!l)
		return;
	for (size_t i = 0; i < l->count; i++)
		free(l->nodes[i]);
	free(l->nodes);
	free(l->bins);
	free(l->kinds);
	free(l);
}

static uint64_t all_gpus(uint32_t count)
{
	return count == LEDGER_GPUS_MAX ? UINT64_MAX :
					  (UINT64_C(1) << count) - 1;
}

int ledger_add_node(struct ledger *l, const struct ledger_resources *has)
{
	struct node *n;

	if (!has->cores || has->cores > DVM_CORES_MAX ||
	    has->gpus > LEDGER_GPUS_MAX)
		return -EINVAL;
	if (l->count == LEDGER_NODES_MAX)
		return -ENOSPC;
	n = calloc(1, sizeof(*n));
	if (!n || array_grow(&l->nodes, l->count, &l->cap, sizeof(*l->nodes)) ||
	    index_make_room(l, has) || kinds_add(l, has)) {
		free(n);
		return -ENOMEM;
	}
	n->number = (uint32_t)l->count;
	n->has = *has;
	n->ncores = has->cores;
	n->gpus = all_gpus(has->gpus);
	n->memory = has->memory;
	cores_fill(&n->cores, has->cores);
	l->nodes[l->count++] = n;
	l->all_cores += has->cores;
	index_add(l, n);
	l->freed++;
	return 0;
}

uint32_t ledger_nodes(const struct ledger *l)
{
	return (uint32_t)l->count;
}

void ledger_close_node(struct ledger *l, uint32_t node, bool closed)
{
	struct node *n = l->nodes[node];

	if (n->closed == closed)
		return;
	index_remove(l, n);
	n->closed = closed;
	l->all_cores += closed ? -n->has.cores : n->has.cores;
	index_add(l, n);
	l->freed++;
}

void ledger_lose_node(struct ledger *l, uint32_t node)
{
	struct ledger_resources *has = &l->nodes[node]->has;

	ledger_close_node(l, node, true);
	kinds_lose(l, has);
	memset(has, 0, sizeof(*has));
}

const struct ledger_resources *ledger_node_has(const struct ledger *l, uint32_t node)
{
	return &l->nodes[node]->has;
}

uint32_t ledger_node_free_cores(const struct ledger *l, uint32_t node)
{
	return l->nodes[node]->ncores;
}

bool ledger_node_free(const struct ledger *l, uint32_t node,
		      struct ledger_resources *out)
{
	const struct node *n = l->nodes[node];

	memset(out, 0, sizeof(*out));
	if (n->closed || n->taken)
		return false;
	out->cores = n->ncores;
	out->gpus = (uint32_t)__builtin_popcountll(n->gpus);
	out->memory = n->memory;
	return true;
}

uint32_t ledger_node_tasks(const struct ledger *l, uint32_t node)
{
	return l->nodes[node]->tasks;
}

uint32_t ledger_free_cores(const struct ledger *l)
{
	return l->free_cores;
}

uint32_t ledger_all_cores(const struct ledger *l)
{
	return l->all_cores;
}

uint64_t ledger_freed(const struct ledger *l)
{
	return l->freed;
}

/* ---- counters ---- */

int ledger_find_counter(const struct ledger *l, const char *name)
{
	for (uint32_t i = 0; i < l->ncounters; i++)
		if (!strcmp(l->counters[i].name, name))
			return (int)i;
	return -ENOENT;
}

const char *ledger_counter(const struct ledger *l, uint32_t index, uint32_t *left)
{
	if (index >= l->ncounters)
		return NULL;
	*left = l->counters[index].left;
	return l->counters[index].name;
}

int ledger_add_counter(struct ledger *l, const char *name, uint32_t amount)
{
	struct counter *c = &l->counters[l->ncounters];

	if (ledger_find_counter(l, name) >= 0)
		return -EEXIST;
	if (l->ncounters == LEDGER_COUNTERS_MAX ||
	    strlen(name) >= sizeof(c->name))
		return -ENOSPC;
	strcpy(c->name, name);
	c->has = c->left = amount;
	l->freed++;
	return (int)l->ncounters++;
}

static bool counters_allow(const struct ledger *l, const struct ledger_shape *s,
			   bool ever)
{
	for (uint32_t i = 0; i < LEDGER_COUNTERS_MAX; i++)
		if (s->counters[i] > (ever ? l->counters[i].has :
					     l->counters[i].left))
			return false;
	return true;
}

static void counters_take(struct ledger *l, const struct ledger_shape *s, int sign)
{
	for (uint32_t i = 0; i < LEDGER_COUNTERS_MAX; i++)
		l->counters[i].left -= (uint32_t)(sign * (int)s->counters[i]);
}

/* ---- how many ranks a node takes ---- */

static uint32_t at_most(uint64_t has, uint64_t each, uint32_t ranks)
{
	return !each || has / each >= ranks ? ranks : (uint32_t)(has / each);
}

uint32_t ledger_ranks_in(const struct ledger_shape *s, const struct room_of *r)
{
	uint32_t ranks = s->ranks < LEDGER_RANKS_MAX ? s->ranks : LEDGER_RANKS_MAX;

	if (s->per_node && s->per_node < ranks)
		ranks = s->per_node;
	ranks = at_most(r->cores, s->cores, ranks);
	ranks = at_most(r->gpus, s->gpus, ranks);
	return at_most(r->memory, s->memory, ranks);
}

uint32_t ledger_node_ranks(const struct node *n, const struct ledger_shape *s, bool ever)
{
	const struct room_of has = { n->has.cores, n->has.gpus, n->has.memory };
	const struct room_of left = {
		n->ncores, (uint64_t)__builtin_popcountll(n->gpus), n->memory,
	};

	if (ever)
		return ledger_ranks_in(s, &has);
	if (n->closed || n->taken || (s->exclusive && n->tasks))
		return 0;
	return ledger_ranks_in(s, &left);
}

/* ---- choosing nodes ---- */

/* Most ranks first; then in order, so that equal DVMs place alike. */
static int by_ranks(const void *a, const void *b)
{
	const struct room *x = a, *y = b;

	if (x->ranks != y->ranks)
		return x->ranks < y->ranks ? 1 : -1;
	return (x->node > y->node) - (x->node < y->node);
}

static size_t rooms(const struct ledger *l, const struct ledger_shape *s, struct room *out)
{
	size_t n = 0;

	for (size_t i = 0; i < named_count(l, s); i++) {
		const struct node *node = named_node(l, s, i);
		uint32_t ranks = ledger_node_ranks(node, s, false);

		if (ranks)
			out[n++] = (struct room){ node->number, ranks };
	}
	qsort(out, n, sizeof(*out), by_ranks);
	return n;
}

/* Take as few nodes as possible. Returns their number; 0: the ranks do not fit. */
static size_t fill_few(struct room *r, size_t n, uint32_t ranks)
{
	for (size_t i = 0; i < n; i++) {
		if (r[i].ranks >= ranks) {
			r[i].ranks = ranks;
			return i + 1;
		}
		ranks -= r[i].ranks;
	}
	return 0;
}

/* Take `nodes` nodes, each with as many ranks as the others or one more. */
static size_t fill_even(struct room *r, size_t n, uint32_t ranks, uint32_t nodes)
{
	uint32_t each = ranks / nodes, more = ranks % nodes;

	if (n < nodes || !each)
		return 0;
	for (uint32_t i = 0; i < nodes; i++) {
		uint32_t here = each + (i < more);

		if (r[i].ranks < here)
			return 0;
		r[i].ranks = here;
	}
	return nodes;
}

static size_t choose(const struct ledger *l, const struct ledger_shape *s, struct room *r)
{
	size_t n = rooms(l, s, r);

	return s->nodes ? fill_even(r, n, s->ranks, s->nodes) :
			  fill_few(r, n, s->ranks);
}

/* ---- placed by the user ---- */

/* Also on a closed node. */
static bool part_is_free(const struct node *n, const struct ledger_part *p,
			 uint64_t memory)
{
	return !n->taken && cores_contain(&n->cores, &p->cores) &&
	       !(p->gpus & ~n->gpus) && memory <= n->memory;
}

static bool part_allowed(const struct ledger *l, const struct ledger_part *p,
			 uint64_t memory, bool ever)
{
	const struct node *n;
	struct dvm_cores all = { { 0 } };

	if (p->node >= l->count)
		return false;
	n = l->nodes[p->node];
	if (ever) {
		cores_fill(&all, n->has.cores);
		return cores_contain(&all, &p->cores) &&
		       !(p->gpus & ~all_gpus(n->has.gpus)) &&
		       memory <= n->has.memory;
	}
	return !n->closed && part_is_free(n, p, memory);
}

static bool place_allowed(const struct ledger *l, const struct ledger_shape *s,
			  uint32_t i, bool ever)
{
	const struct ledger_part *p = &s->placed->parts[i];

	return part_allowed(l, p, s->memory * p->ranks, ever);
}

static bool placed_allowed(const struct ledger *l, const struct ledger_shape *s,
			   bool ever)
{
	for (uint32_t i = 0; i < s->placed->count; i++)
		if (!place_allowed(l, s, i, ever))
			return false;
	return true;
}

static bool running_allowed(const struct ledger *l, const struct ledger_shape *s)
{
	for (uint32_t i = 0; i < s->placed->count; i++) {
		const struct ledger_part *p = &s->placed->parts[i];

		if (!place_allowed(l, s, i, true) ||
		    !part_is_free(l->nodes[p->node], p, s->memory * p->ranks))
			return false;
	}
	return true;
}

/* ---- giving and taking back ---- */

static uint64_t take_gpus(uint64_t *from, uint32_t count)
{
	uint64_t taken = 0;

	for (; count; count--) {
		uint64_t lowest = *from & -*from;

		taken |= lowest;
		*from &= ~lowest;
	}
	return taken;
}

static void take_part(struct ledger *l, const struct ledger_shape *s,
		      struct ledger_part *p)
{
	struct node *n = l->nodes[p->node];

	index_remove(l, n);
	if (is_placed(s)) {
		cores_remove_all(&n->cores, &p->cores);
		n->gpus &= ~p->gpus;
	} else {
		cores_move(&p->cores, &n->cores, p->ranks * s->cores);
		p->gpus = take_gpus(&n->gpus, p->ranks * s->gpus);
	}
	n->ncores = cores_count(&n->cores);
	n->memory -= s->memory * p->ranks;
	n->tasks++;
	n->taken = s->exclusive;
	index_add(l, n);
}

static void release_part(struct ledger *l, const struct ledger_shape *s,
			 const struct ledger_part *p)
{
	struct node *n = l->nodes[p->node];

	index_remove(l, n);
	cores_add_all(&n->cores, &p->cores);
	n->ncores = cores_count(&n->cores);
	n->gpus |= p->gpus;
	n->memory += s->memory * p->ranks;
	n->tasks--;
	n->taken = false;
	index_add(l, n);
}

static int take(struct ledger *l, const struct ledger_shape *s,
		const struct room *r, size_t count, struct ledger_placement **out)
{
	struct ledger_placement *p =
		calloc(1, sizeof(*p) + count * sizeof(p->parts[0]));
	uint32_t rank = 0;

	if (!p)
		return -ENOMEM;
	p->count = (uint32_t)count;
	for (size_t i = 0; i < count; i++) {
		p->parts[i].node = r[i].node;
		p->parts[i].ranks = r[i].ranks;
		p->parts[i].first_rank = rank;
		rank += r[i].ranks;
		take_part(l, s, &p->parts[i]);
	}
	counters_take(l, s, 1);
	*out = p;
	return 0;
}

static int take_placed(struct ledger *l, const struct ledger_shape *s,
		       struct ledger_placement **out)
{
	size_t size = sizeof(**out) + s->placed->count * sizeof((*out)->parts[0]);
	struct ledger_placement *p = malloc(size);

	if (!p)
		return -ENOMEM;
	memcpy(p, s->placed, size);
	for (uint32_t i = 0; i < p->count; i++)
		take_part(l, s, &p->parts[i]);
	counters_take(l, s, 1);
	*out = p;
	return 0;
}

/* ---- placing ---- */

bool ledger_can_ever(const struct ledger *l, const struct ledger_shape *s)
{
	if (!counters_allow(l, s, true))
		return false;
	if (s->named)
		return named_fit(l, s, true);
	return s->placed ? placed_allowed(l, s, true) : kinds_fit(l, s);
}

bool ledger_fits(const struct ledger *l, const struct ledger_shape *s)
{
	if (!counters_allow(l, s, false))
		return false;
	if (s->named)
		return named_fit(l, s, false);
	return s->placed ? placed_allowed(l, s, false) : index_fits(l, s);
}

uint32_t ledger_node_takes(const struct ledger *l, const struct ledger_shape *s,
			   uint32_t node)
{
	return ledger_may_use(s, node) ? ledger_node_ranks(l->nodes[node], s, false) : 0;
}

bool ledger_place_is_free(const struct ledger *l, const struct ledger_shape *s,
			  uint32_t i)
{
	return place_allowed(l, s, i, false);
}

static int place_over_nodes(struct ledger *l, const struct ledger_shape *s,
			    struct ledger_placement **out)
{
	struct room *r = malloc((l->count + 1) * sizeof(*r));
	size_t n;
	int rc;

	if (!r)
		return -ENOMEM;
	n = choose(l, s, r);
	rc = n ? take(l, s, r, n, out) : -EAGAIN;
	free(r);
	return rc;
}

int ledger_place(struct ledger *l, const struct ledger_shape *s,
		 struct ledger_placement **out)
{
	const struct node *best;

	if (!counters_allow(l, s, false))
		return -EAGAIN;
	if (s->named)
		return place_over_nodes(l, s, out);
	if (s->placed)
		return placed_allowed(l, s, false) ? take_placed(l, s, out) :
						     -EAGAIN;
	best = s->nodes <= 1 ? index_best(l, s) : NULL;
	if (best)
		return take(l, s, &(struct room){ best->number, s->ranks }, 1, out);
	if (s->nodes == 1 || s->ranks == 1 || !index_fits(l, s))
		return -EAGAIN;
	return place_over_nodes(l, s, out);
}

int ledger_place_running(struct ledger *l, const struct ledger_shape *s,
			 struct ledger_placement **out)
{
	if (!counters_allow(l, s, false) || !running_allowed(l, s))
		return -EAGAIN;
	return take_placed(l, s, out);
}

void ledger_release(struct ledger *l, const struct ledger_shape *s,
		    const struct ledger_placement *p)
{
	for (uint32_t i = 0; i < p->count; i++)
		release_part(l, s, &p->parts[i]);
	counters_take(l, s, -1);
	l->freed++;
}
