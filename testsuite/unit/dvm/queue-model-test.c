/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Queue and ledger against a model that looks at every task and every node each time, on
 * random workloads: they start the same tasks, on the same nodes, in the same order.
 */
#include "unit.h"

#include <errno.h>

#include "dvm/core/queue.h"

#define NODES 12
#define CORES 8
#define ITEMS 120
#define SHAPES 17
#define STEPS 400
#define SEEDS 60

static const struct ledger_shape shapes[SHAPES] = {
	{ .ranks = 1, .cores = 1 },
	{ .ranks = 1, .cores = 8 },
	{ .ranks = 1, .cores = 3, .gpus = 1 },
	{ .ranks = 3, .cores = 1, .gpus = 1 },
	{ .ranks = 2, .cores = 1, .memory = 300 },
	{ .ranks = 1, .cores = 2, .memory = 900 },
	{ .ranks = 1, .cores = 1, .exclusive = true },
	{ .ranks = 12, .cores = 2 },
	{ .ranks = 7, .cores = 1, .nodes = 3 },
	{ .ranks = 4, .cores = 4, .nodes = 4, .exclusive = true },
	{ .ranks = 6, .cores = 1, .per_node = 2 },
	{ .ranks = 1, .cores = 1, .counters = { 1 } },
	{ .ranks = 2 },
	{ .ranks = 9, .cores = 2, .gpus = 1, .memory = 50 },
	{ .ranks = 4, .cores = 2, .gpus = 1 },
	{ .ranks = 8, .cores = 1, .nodes = 2 },
	{ .ranks = 2, .cores = 4, .memory = 450 },
};

/* ---- the model of the ledger ---- */

struct model_node {
	struct ledger_resources has;
	uint32_t cores, gpus;
	uint64_t memory, listed;
	uint32_t tasks;
	bool taken, closed;
};

struct model_part {
	uint32_t node, ranks;
};

struct task {
	struct queue_item item;
	int shape;
	int32_t priority;
	uint32_t limit;
	uint64_t number, since;
	bool waits, runs, tried;
	struct ledger_placement *placement;
	struct model_part parts[NODES];
	uint32_t nparts;
};

struct bed {
	struct queue_options options;
	struct ledger *ledger;
	struct queue *queue;
	struct model_node nodes[NODES];
	uint32_t nnodes;
	uint32_t licences;
	uint64_t listed, next, now;
	struct task tasks[ITEMS];
	uint64_t random;
};

static uint32_t any(struct bed *b, uint32_t below)
{
	b->random ^= b->random << 13;
	b->random ^= b->random >> 7;
	b->random ^= b->random << 17;
	return (uint32_t)(b->random >> 33) % below;
}

static uint32_t at_most(uint64_t has, uint64_t each, uint32_t ranks)
{
	return !each || has / each >= ranks ? ranks : (uint32_t)(has / each);
}

static uint32_t takes(const struct model_node *n, const struct ledger_shape *s, bool ever)
{
	uint32_t ranks = s->per_node && s->per_node < s->ranks ? s->per_node : s->ranks;

	if (!ever && (n->closed || n->taken || (s->exclusive && n->tasks)))
		return 0;
	ranks = at_most(ever ? n->has.cores : n->cores, s->cores, ranks);
	ranks = at_most(ever ? n->has.gpus : n->gpus, s->gpus, ranks);
	return at_most(ever ? n->has.memory : n->memory, s->memory, ranks);
}

static bool one_node(const struct bed *b, const struct ledger_shape *s, struct model_part *p)
{
	const struct model_node *best = NULL;

	for (uint32_t i = 0; i < b->nnodes; i++) {
		const struct model_node *n = &b->nodes[i];

		if (takes(n, s, false) != s->ranks ||
		    (best && (n->cores > best->cores ||
			      (n->cores == best->cores && n->listed < best->listed))))
			continue;
		best = n;
		*p = (struct model_part){ i, s->ranks };
	}
	return best;
}

static int by_ranks(const void *a, const void *b)
{
	const struct model_part *x = a, *y = b;

	return x->ranks != y->ranks ? (x->ranks < y->ranks ? 1 : -1) :
				      (int)x->node - (int)y->node;
}

/* How many parts; 0: it does not fit. */
static uint32_t over_nodes(const struct bed *b, const struct ledger_shape *s, bool ever,
			   struct model_part *p)
{
	uint32_t n = 0, left = s->ranks;

	for (uint32_t i = 0; i < b->nnodes; i++)
		if (takes(&b->nodes[i], s, ever))
			p[n++] = (struct model_part){ i, takes(&b->nodes[i], s, ever) };
	qsort(p, n, sizeof(*p), by_ranks);
	for (uint32_t i = 0; i < (s->nodes ? s->nodes : n); i++) {
		uint32_t here = s->nodes ? s->ranks / s->nodes + (i < s->ranks % s->nodes) :
					   left < p[i].ranks ? left : p[i].ranks;

		if (i >= n || p[i].ranks < here)
			return 0;
		p[i].ranks = here;
		left -= here;
		if (!left)
			return i + 1;
	}
	return 0;
}

static uint32_t model_place(const struct bed *b, const struct ledger_shape *s,
			    struct model_part *p)
{
	if (s->counters[0] > b->licences)
		return 0;
	if (s->nodes <= 1 && one_node(b, s, p))
		return 1;
	return s->nodes == 1 || s->ranks == 1 ? 0 : over_nodes(b, s, false, p);
}

static void model_change(struct bed *b, const struct task *t, int sign)
{
	const struct ledger_shape *s = &shapes[t->shape];

	for (uint32_t i = 0; i < t->nparts; i++) {
		struct model_node *n = &b->nodes[t->parts[i].node];
		uint32_t ranks = t->parts[i].ranks;

		n->cores -= (uint32_t)(sign * (int)(ranks * s->cores));
		n->gpus -= (uint32_t)(sign * (int)(ranks * s->gpus));
		n->memory -= (uint64_t)(sign * (int64_t)(ranks * s->memory));
		n->tasks += (uint32_t)sign;
		n->taken = sign > 0 && s->exclusive;
		n->listed = b->listed++;
	}
	b->licences -= (uint32_t)(sign * (int)s->counters[0]);
}

/* ---- the model of the queue ---- */

static bool alike(const struct bed *b, const struct task *x, const struct task *y)
{
	return x->shape == y->shape && x->priority == y->priority &&
	       (b->options.order == QUEUE_FIFO || x->limit == y->limit);
}

static bool comes_before(const struct bed *b, const struct task *x, const struct task *y)
{
	uint32_t xc = shapes[x->shape].ranks * shapes[x->shape].cores;
	uint32_t yc = shapes[y->shape].ranks * shapes[y->shape].cores;

	if (x->priority != y->priority)
		return x->priority > y->priority;
	if (b->options.order == QUEUE_WORK && xc * x->limit != yc * y->limit)
		return xc * x->limit > yc * y->limit;
	if (b->options.order != QUEUE_FIFO && xc != yc)
		return xc > yc;
	if (b->options.order != QUEUE_FIFO && x->limit != y->limit)
		return x->limit > y->limit;
	return x->number < y->number;
}

static bool is_first_of_class(const struct bed *b, const struct task *t)
{
	for (const struct task *o = b->tasks; o < b->tasks + ITEMS; o++)
		if (o->waits && alike(b, o, t) && o->number < t->number)
			return false;
	return true;
}

static struct task *first_untried(struct bed *b)
{
	struct task *best = NULL;

	for (struct task *t = b->tasks; t < b->tasks + ITEMS; t++)
		if (t->waits && !t->tried && is_first_of_class(b, t) &&
		    (!best || comes_before(b, t, best)))
			best = t;
	return best;
}

/* The task that starts next, where it says, or NULL. */
static struct task *model_next(struct bed *b)
{
	uint64_t first = UINT64_MAX;
	struct task *t;

	for (int i = 0; i < ITEMS; i++)
		b->tasks[i].tried = false;
	while ((t = first_untried(b))) {
		if (b->options.order == QUEUE_FIFO && t->number > first &&
		    t->number - first > b->options.window)
			return NULL;
		t->nparts = model_place(b, &shapes[t->shape], t->parts);
		if (t->nparts)
			return t;
		if (b->now - t->since >= b->options.patience_ms)
			return NULL;
		t->tried = true;
		if (t->number < first)
			first = t->number;
	}
	return NULL;
}

/* ---- both together ---- */

static struct task *task_of(struct queue_item *item)
{
	return item ? (struct task *)((char *)item - offsetof(struct task, item)) : NULL;
}

static void check_placement(const struct task *t)
{
	assert_int_equal(t->placement->count, t->nparts);
	for (uint32_t i = 0; i < t->nparts; i++) {
		assert_int_equal(t->placement->parts[i].node, t->parts[i].node);
		assert_int_equal(t->placement->parts[i].ranks, t->parts[i].ranks);
	}
}

static bool place_one(struct bed *b)
{
	struct task *expected = model_next(b);
	struct ledger_placement *placement = NULL;
	struct queue_item *item = NULL;
	int rc = queue_place(b->queue, b->ledger, b->now, &item, &placement);

	assert_int_equal(rc, expected ? 0 : -EAGAIN);
	assert_ptr_equal(task_of(item), expected);
	if (!expected)
		return false;
	expected->placement = placement;
	check_placement(expected);
	expected->waits = false;
	expected->runs = true;
	model_change(b, expected, 1);
	return true;
}

static void release(struct bed *b, struct task *t)
{
	ledger_release(b->ledger, &shapes[t->shape], t->placement);
	free(t->placement);
	t->placement = NULL;
	model_change(b, t, -1);
	t->runs = false;
}

static void submit(struct bed *b, struct task *t)
{
	t->shape = (int)any(b, SHAPES);
	t->priority = any(b, 6) ? 0 : (int32_t)any(b, 3) - 1;
	t->limit = any(b, 4) * 10;
	t->number = b->next++;
	t->since = b->now;
	t->waits = true;
	assert_int_equal(queue_add(b->queue, &t->item, &shapes[t->shape], t->priority,
				   t->limit, b->now), 0);
}

static void wait_again(struct bed *b, struct task *t)
{
	release(b, t);
	queue_put_back(b->queue, &t->item);
	t->waits = true;
}

static void end(struct bed *b, struct task *t)
{
	if (t->runs)
		release(b, t);
	else
		queue_remove(b->queue, &t->item);
	t->waits = false;
	queue_done(b->queue, &t->item);
}

static void change_task(struct bed *b)
{
	struct task *t = &b->tasks[any(b, ITEMS)];

	if (!t->waits && !t->runs)
		submit(b, t);
	else if (t->runs && !any(b, 5))
		wait_again(b, t);
	else if (t->runs || !any(b, 8))
		end(b, t);
}

static void lose_node(struct bed *b, uint32_t node)
{
	for (struct task *t = b->tasks; t < b->tasks + ITEMS; t++)
		for (uint32_t i = 0; t->runs && i < t->nparts; i++)
			if (t->parts[i].node == node)
				wait_again(b, t);
	ledger_lose_node(b->ledger, node);
	b->nodes[node].has = (struct ledger_resources){ 0 };
	b->nodes[node].closed = true;
	b->nodes[node].listed = b->listed++;
}

static void change_node(struct bed *b)
{
	uint32_t node = any(b, b->nnodes);
	struct model_node *n = &b->nodes[node];

	if (!n->has.cores)
		return;
	if (!any(b, 12)) {
		lose_node(b, node);
		return;
	}
	n->closed = !n->closed;
	n->listed = b->listed++;
	ledger_close_node(b->ledger, node, n->closed);
}

static bool model_ever(const struct bed *b, const struct ledger_shape *s)
{
	struct model_part p[NODES];

	return over_nodes(b, s, true, p);
}

static void check_fits(const struct bed *b)
{
	struct model_part p[NODES];

	for (int i = 0; i < SHAPES; i++) {
		struct ledger_shape s = shapes[i];

		assert_int_equal(ledger_fits(b->ledger, &s), s.counters[0] <= b->licences &&
				 over_nodes(b, &s, false, p) != 0);
		assert_int_equal(ledger_can_ever(b->ledger, &s), model_ever(b, &s));
		s.memory = 995; /* as much as some nodes have */
		assert_int_equal(ledger_can_ever(b->ledger, &s), model_ever(b, &s));
	}
}

static void check_before(const struct bed *b, const struct task *t)
{
	const struct queue_item *first;
	const struct task *expected = NULL;
	size_t n = 0;

	for (const struct task *o = b->tasks; o < b->tasks + ITEMS; o++) {
		if (!o->waits || o == t || !comes_before(b, o, t))
			continue;
		n++;
		if (!expected || comes_before(b, o, expected))
			expected = o;
	}
	assert_int_equal(queue_before(b->queue, &t->item, &first), n);
	assert_ptr_equal(first, expected ? &expected->item : NULL);
}

/* The first before it that does not fit and has waited too long. */
static void check_held(const struct bed *b, const struct task *t)
{
	const struct task *expected = NULL;

	for (const struct task *o = b->tasks; o < b->tasks + ITEMS; o++)
		if (o->waits && o != t && comes_before(b, o, t) &&
		    b->now - o->since >= b->options.patience_ms &&
		    !ledger_fits(b->ledger, &shapes[o->shape]) &&
		    (!expected || comes_before(b, o, expected)))
			expected = o;
	assert_ptr_equal(queue_held_for(b->queue, b->ledger, &t->item, b->now),
			 expected ? &expected->item : NULL);
}

static void check_answers(struct bed *b)
{
	const struct task *t = &b->tasks[any(b, ITEMS)];
	size_t n = 0;

	for (const struct task *o = b->tasks; o < b->tasks + ITEMS; o++)
		n += o->waits;
	assert_int_equal(queue_waiting(b->queue), n);
	check_fits(b);
	if (!t->waits)
		return;
	check_before(b, t);
	check_held(b, t);
}

/* Tasks that can never run go, and only these. */
static void drop_impossible(struct bed *b)
{
	struct queue_item *item;

	while ((item = queue_impossible(b->queue, b->ledger))) {
		assert_false(model_ever(b, &shapes[task_of(item)->shape]));
		end(b, task_of(item));
	}
	for (const struct task *t = b->tasks; t < b->tasks + ITEMS; t++)
		assert_true(!t->waits || model_ever(b, &shapes[t->shape]));
}

static void add_node(struct bed *b)
{
	struct model_node *n = &b->nodes[b->nnodes++];

	n->has = (struct ledger_resources){ any(b, 3) ? CORES : 1 + any(b, CORES), any(b, 4),
					    990 + any(b, 10) };
	n->cores = n->has.cores;
	n->gpus = n->has.gpus;
	n->memory = n->has.memory;
	n->listed = b->listed++;
	assert_int_equal(ledger_add_node(b->ledger, &n->has), 0);
}

static void begin(struct bed *b, uint64_t seed)
{
	memset(b, 0, sizeof(*b));
	b->random = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
	b->options = (struct queue_options){
		(enum queue_order)(seed % QUEUE_ORDERS), seed % 7 ? 1000 : 5,
		seed % 5 ? 300 : seed % 10 ? 0 : 1u << 30,
	};
	assert_int_equal(queue_create(&b->queue, &b->options), 0);
	assert_int_equal(ledger_create(&b->ledger), 0);
	b->licences = 3;
	assert_int_equal(ledger_add_counter(b->ledger, "licence", 3), 0);
	while (b->nnodes < NODES - 4)
		add_node(b);
}

static void run(struct bed *b)
{
	for (int step = 0; step < STEPS; step++) {
		for (uint32_t n = any(b, 6); n; n--)
			change_task(b);
		if (!any(b, 20))
			change_node(b);
		if (b->nnodes < NODES && !any(b, 100))
			add_node(b);
		drop_impossible(b);
		while (any(b, 30) && place_one(b))
			;
		check_answers(b);
		b->now += any(b, 100);
	}
}

TEST(random_workloads_start_as_in_the_model)
{
	static struct bed b;

	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		begin(&b, seed);
		run(&b);
		for (struct task *t = b.tasks; t < b.tasks + ITEMS; t++) {
			if (t->runs || t->waits)
				end(&b, t);
		}
		assert_int_equal(queue_waiting(b.queue), 0);
		queue_destroy(b.queue);
		ledger_destroy(b.ledger);
	}
}
