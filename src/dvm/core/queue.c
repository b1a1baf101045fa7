/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The queue of waiting tasks, as classes of tasks of one shape and priority. Classes are in
 * the order of their first tasks.
 */
#include "dvm/core/queue.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

/* The key of a class of tasks; all its bytes count. */
struct class_key {
	struct ledger_shape shape;
	int64_t priority;
};

/* A position in the order of all tasks. */
struct spot {
	int64_t priority;
	uint64_t cores; /* of all ranks */
	struct order_node at;
};

struct queue_class {
	struct class_key key;
	struct spot first;   /* its first item, in queue.order if it has one */
	struct order items;  /* waiting items, in order */
	size_t waiting;
	size_t tasks;        /* waiting and running tasks */
	uint64_t unfit;      /* ledger_freed() when it did not fit; NEVER: it fitted */
	UT_hash_handle hh;
};

#define NEVER UINT64_MAX

/*
 * A round over the classes, in order. Placed tasks leave less room, so the round goes on
 * behind them until something is freed or the queue changes otherwise.
 */
struct round {
	bool begun;
	uint64_t freed, now_ms; /* when the round began */
	struct spot next;       /* classes before this one have been tried */
	bool held;              /* nothing is placed from here on, because of */
	struct spot hold;       /* ... this task, which does not fit and has waited too long */
	uint64_t oldest;        /* the least number of the tasks that do not fit */
};

struct queue {
	struct queue_options options;
	struct queue_class *classes;
	struct order order; /* classes with waiting tasks */
	uint64_t next;      /* number of the next item */
	size_t waiting;
	struct round round;
};

/* ---- order ---- */

static const struct spot *spot_of(const struct order_node *n)
{
	return (const struct spot *)((const char *)n - offsetof(struct spot, at));
}

static bool is_earlier(const struct order_node *x, const struct order_node *y)
{
	const struct spot *a = spot_of(x), *b = spot_of(y);

	return a->priority != b->priority ? a->priority > b->priority :
					    order_by_limit(x, y);
}

static bool is_larger(const struct order_node *x, const struct order_node *y)
{
	const struct spot *a = spot_of(x), *b = spot_of(y);

	return a->priority == b->priority && a->cores != b->cores ?
		       a->cores > b->cores : is_earlier(x, y);
}

/* Cores x seconds; 0 for a task without a limit. */
static uint64_t work_of(const struct spot *s)
{
	return s->cores * s->at.limit_s;
}

static bool has_more_work(const struct order_node *x, const struct order_node *y)
{
	const struct spot *a = spot_of(x), *b = spot_of(y);

	return a->priority == b->priority && work_of(a) != work_of(b) ?
		       work_of(a) > work_of(b) : is_larger(x, y);
}

static order_fn *order_of(enum queue_order order)
{
	return order == QUEUE_FIFO ? is_earlier : order == QUEUE_LARGE ? is_larger :
									 has_more_work;
}

static bool is_before(const struct queue *q, const struct spot *a, const struct spot *b)
{
	return q->order.before(&a->at, &b->at);
}

/* The position of an item of the class. */
static struct spot spot_in(const struct queue_class *c, const struct order_node *item)
{
	struct spot s = c->first;

	s.at = *item;
	return s;
}

static struct queue_class *class_of_node(struct order_node *n)
{
	return n ? (struct queue_class *)((char *)n - offsetof(struct queue_class, first.at)) :
		   NULL;
}

static struct queue_item *item_of_node(struct order_node *n)
{
	return n ? (struct queue_item *)((char *)n - offsetof(struct queue_item, at)) : NULL;
}

static struct queue_item *first_item(const struct queue_class *c)
{
	return item_of_node(order_first(&c->items));
}

/* ---- life ---- */

int queue_create(struct queue **out, const struct queue_options *options)
{
	struct queue *q = calloc(1, sizeof(*q));

	if (!q)
		return -ENOMEM;
	q->options = *options;
	q->order.before = order_of(options->order);
	*out = q;
	return 0;
}

static void class_free(struct queue *q, struct queue_class *c)
{
	HASH_DEL(q->classes, c);
	free((void *)(uintptr_t)c->key.shape.placed);
	free(c);
}

void queue_destroy(struct queue *q)
{
	struct queue_class *c, *next;

	if (!q)
		return;
	HASH_ITER(hh, q->classes, c, next)
		class_free(q, c);
	free(q);
}

/* ---- adding and removing ---- */

static void key_init(struct class_key *key, const struct ledger_shape *shape,
		     int32_t priority)
{
	memset(key, 0, sizeof(*key)); /* padding counts, too */
	key->shape.ranks = shape->ranks;
	key->shape.cores = shape->cores;
	key->shape.gpus = shape->gpus;
	key->shape.memory = shape->memory;
	key->shape.nodes = shape->nodes;
	key->shape.per_node = shape->per_node;
	key->shape.exclusive = shape->exclusive;
	memcpy(key->shape.counters, shape->counters, sizeof(shape->counters));
	key->shape.placed = shape->placed;
	key->shape.named = shape->named;
	key->priority = priority;
}

static struct queue_class *class_of(struct queue *q, const struct class_key *key)
{
	struct queue_class *c;

	HASH_FIND(hh, q->classes, key, sizeof(*key), c);
	if (c)
		return c;
	c = calloc(1, sizeof(*c));
	if (!c)
		return NULL;
	memcpy(&c->key, key, sizeof(*key));
	c->first.priority = key->priority;
	c->first.cores = (uint64_t)key->shape.ranks * key->shape.cores;
	c->items.before = order_by_limit;
	c->unfit = NEVER;
	HASH_ADD(hh, q->classes, key, sizeof(c->key), c);
	if (c->hh.tbl)
		return c;
	free(c);
	return NULL;
}

/* Call delist before a change of the class's first item, and enlist after it. */
static void delist(struct queue *q, struct queue_class *c)
{
	if (c->waiting)
		order_remove(&q->order, &c->first.at);
}

static void enlist(struct queue *q, struct queue_class *c)
{
	if (!c->waiting)
		return;
	c->first = spot_in(c, order_first(&c->items));
	order_add(&q->order, &c->first.at);
}

static void insert(struct queue *q, struct queue_item *item)
{
	struct queue_class *c = item->class;
	bool first = !c->waiting || order_by_limit(&item->at, &c->first.at);

	if (first)
		delist(q, c);
	order_add(&c->items, &item->at);
	c->waiting++;
	q->waiting++;
	if (first)
		enlist(q, c);
	q->round.begun = false;
}

static void take_out(struct queue *q, struct queue_item *item)
{
	struct queue_class *c = item->class;
	bool first = item->at.number == c->first.at.number;

	if (first)
		delist(q, c);
	order_remove(&c->items, &item->at);
	c->waiting--;
	q->waiting--;
	if (first)
		enlist(q, c);
}

int queue_add(struct queue *q, struct queue_item *item,
	      const struct ledger_shape *shape, int32_t priority,
	      uint32_t limit_s, uint64_t now_ms)
{
	struct class_key key;

	key_init(&key, shape, priority);
	item->class = class_of(q, &key);
	if (!item->class) {
		free((void *)(uintptr_t)shape->placed);
		return -ENOMEM;
	}
	item->at = (struct order_node){
		.number = q->next++,
		.since_ms = now_ms,
		.limit_s = q->options.order == QUEUE_FIFO ? 0 : limit_s,
	};
	item->class->tasks++;
	insert(q, item);
	return 0;
}

void queue_put_back(struct queue *q, struct queue_item *item)
{
	insert(q, item);
}

void queue_remove(struct queue *q, struct queue_item *item)
{
	take_out(q, item);
	q->round.begun = false;
}

void queue_done(struct queue *q, struct queue_item *item)
{
	struct queue_class *c = item->class;

	item->class = NULL;
	if (!--c->tasks)
		class_free(q, c);
}

const struct ledger_shape *queue_shape(const struct queue_item *item)
{
	return &item->class->key.shape;
}

size_t queue_waiting(const struct queue *q)
{
	return q->waiting;
}

/* ---- placing ---- */

/*
 * The first item of the class that has waited too long: nothing behind it may start before
 * it.
 */
static struct queue_item *first_impatient(const struct queue *q,
					  const struct queue_class *c, uint64_t now_ms)
{
	if (now_ms < q->options.patience_ms)
		return NULL;
	return item_of_node(order_first_since(&c->items, now_ms - q->options.patience_ms));
}

static bool in_window(const struct queue *q, const struct queue_class *c, uint64_t first)
{
	return q->options.order != QUEUE_FIFO || c->first.at.number < first ||
	       c->first.at.number - first <= q->options.window;
}

static void begin_round(struct queue *q, const struct ledger *l, uint64_t now_ms)
{
	struct round *r = &q->round;

	if (r->begun && r->freed == ledger_freed(l) && r->now_ms == now_ms)
		return;
	*r = (struct round){
		.begun = true,
		.freed = ledger_freed(l),
		.now_ms = now_ms,
		.oldest = UINT64_MAX,
	};
	if (q->order.root)
		r->next = *spot_of(order_first(&q->order));
}

static void note_unfit(struct queue *q, struct queue_class *c)
{
	struct round *r = &q->round;
	const struct queue_item *item = first_impatient(q, c, r->now_ms);
	struct spot hold;

	c->unfit = r->freed;
	if (c->first.at.number < r->oldest)
		r->oldest = c->first.at.number;
	if (!item)
		return;
	hold = spot_in(c, &item->at);
	if (!r->held || is_before(q, &hold, &r->hold))
		r->hold = hold;
	r->held = true;
}

/* The next class of the round whose first task may be placed, or NULL. */
static struct queue_class *next_class(struct queue *q)
{
	const struct round *r = &q->round;
	struct queue_class *c = class_of_node(order_from(&q->order, &r->next.at));

	if (!c || !in_window(q, c, r->oldest) ||
	    (r->held && !is_before(q, &c->first, &r->hold)))
		return NULL;
	return c;
}

int queue_place(struct queue *q, struct ledger *l, uint64_t now_ms,
		struct queue_item **item, struct ledger_placement **placement)
{
	struct queue_class *c;
	int rc;

	begin_round(q, l, now_ms);
	while ((c = next_class(q))) {
		rc = c->unfit == q->round.freed ? -EAGAIN :
						  ledger_place(l, &c->key.shape, placement);
		if (rc && rc != -EAGAIN)
			return rc;
		q->round.next = c->first;
		q->round.next.at.number++; /* the classes behind it */
		if (!rc) {
			*item = first_item(c);
			take_out(q, *item);
			return 0;
		}
		note_unfit(q, c);
	}
	return -EAGAIN;
}

/* ---- questions ---- */

/*
 * The number of the class's items with more work than `s` has, or with as much, if they come
 * first nevertheless. Items are in order of their limits.
 */
static size_t class_before_work(const struct queue_class *c, const struct spot *s)
{
	struct order_node at = s->at;

	if (c->first.cores == s->cores)
		return order_count_before(&c->items, &at);
	if (!c->first.cores)
		return 0;
	at.limit_s = (uint32_t)(work_of(s) / c->first.cores);
	at.number = work_of(s) % c->first.cores == 0 && c->first.cores > s->cores ?
			    UINT64_MAX : 0;
	return order_count_before(&c->items, &at);
}

/* The number of the class's items before `s`, a position in any class. */
static size_t class_before(const struct queue *q, const struct queue_class *c,
			   const struct spot *s)
{
	if (c->first.priority != s->priority)
		return c->first.priority > s->priority ? c->waiting : 0;
	if (q->options.order == QUEUE_LARGE && c->first.cores != s->cores)
		return c->first.cores > s->cores ? c->waiting : 0;
	if (q->options.order == QUEUE_WORK)
		return class_before_work(c, s);
	return order_count_before(&c->items, &s->at);
}

size_t queue_before(const struct queue *q, const struct queue_item *item,
		    const struct queue_item **first)
{
	const struct spot at = spot_in(item->class, &item->at);
	size_t n = 0;

	for (const struct queue_class *c = q->classes; c; c = c->hh.next)
		n += class_before(q, c, &at);
	*first = n ? first_item(class_of_node(order_first(&q->order))) : NULL;
	return n;
}

const struct queue_item *queue_held_for(const struct queue *q, const struct ledger *l,
					const struct queue_item *item,
					uint64_t now_ms)
{
	struct spot best = spot_in(item->class, &item->at), s;
	const struct queue_item *found = NULL, *i;

	for (const struct queue_class *c = q->classes; c; c = c->hh.next) {
		i = first_impatient(q, c, now_ms);
		if (!i || i == item)
			continue;
		s = spot_in(c, &i->at);
		if (!is_before(q, &s, &best) || ledger_fits(l, &c->key.shape))
			continue;
		best = s;
		found = i;
	}
	return found;
}

struct queue_item *queue_impossible(struct queue *q, const struct ledger *l)
{
	struct queue_class *c;

	for (c = q->classes; c; c = c->hh.next)
		if (c->waiting && !ledger_can_ever(l, &c->key.shape))
			return first_item(c);
	return NULL;
}
