/* SPDX-License-Identifier: BSD-3-Clause */
/* The queue of waiting tasks, as classes of tasks that are alike. */
#include "dvm/core/queue.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <uthash.h>
#include <utlist.h>

/* The key of a class of tasks; all its bytes count. */
struct class_key {
	struct ledger_shape shape;
	uint64_t limit_s;
	int64_t priority;
};

struct queue_class {
	struct class_key key;
	struct queue_item *items; /* waiting items, in order */
	size_t tasks;             /* waiting and running tasks */
	uint64_t tried;           /* in this round it did not fit */
	UT_hash_handle hh;
};

struct queue {
	struct queue_options options;
	struct queue_class *classes;
	uint64_t next;  /* number */
	uint64_t round;
	size_t waiting;
};

int queue_create(struct queue **out, const struct queue_options *options)
{
	struct queue *q = calloc(1, sizeof(*q));

	if (!q)
		return -ENOMEM;
	q->options = *options;
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
		     int32_t priority, uint64_t limit_s)
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
	key->limit_s = limit_s;
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
	HASH_ADD(hh, q->classes, key, sizeof(c->key), c);
	return c;
}

int queue_add(struct queue *q, struct queue_item *item,
	      const struct ledger_shape *shape, int32_t priority,
	      uint64_t limit_s, uint64_t now_ms)
{
	struct class_key key;

	key_init(&key, shape, priority, limit_s);
	item->class = class_of(q, &key);
	if (!item->class) {
		free((void *)(uintptr_t)shape->placed);
		return -ENOMEM;
	}
	item->number = q->next++;
	item->since_ms = now_ms;
	DL_APPEND(item->class->items, item);
	item->class->tasks++;
	q->waiting++;
	return 0;
}

void queue_put_back(struct queue *q, struct queue_item *item)
{
	DL_PREPEND(item->class->items, item);
	q->waiting++;
}

void queue_remove(struct queue *q, struct queue_item *item)
{
	DL_DELETE(item->class->items, item);
	q->waiting--;
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

/* ---- order ---- */

static uint64_t all_cores(const struct queue_class *c)
{
	return (uint64_t)c->key.shape.ranks * c->key.shape.cores;
}

/* A task of one class, with its number, and one of the other. */
static bool is_before(const struct queue *q, const struct queue_class *a,
		      uint64_t a_number, const struct queue_class *b,
		      uint64_t b_number)
{
	if (a->key.priority != b->key.priority)
		return a->key.priority > b->key.priority;
	if (q->options.order == QUEUE_LARGE) {
		if (all_cores(a) != all_cores(b))
			return all_cores(a) > all_cores(b);
		if (a->key.limit_s != b->key.limit_s)
			return a->key.limit_s > b->key.limit_s;
	}
	return a_number < b_number;
}

/* The first in order of those that have not been tried in this round. */
static struct queue_class *first_class(const struct queue *q)
{
	struct queue_class *c, *best = NULL;

	for (c = q->classes; c; c = c->hh.next)
		if (c->items && c->tried != q->round &&
		    (!best || is_before(q, c, c->items->number, best,
					best->items->number)))
			best = c;
	return best;
}

/* ---- placing ---- */

static int take_from(struct queue *q, struct queue_class *c, struct ledger *l,
		     struct queue_item **item, struct ledger_placement **placement)
{
	int rc = ledger_place(l, &c->key.shape, placement);

	if (rc)
		return rc;
	*item = c->items;
	queue_remove(q, *item);
	return 0;
}

/* May others go on behind this one, which does not fit? */
static bool is_patient(const struct queue *q, const struct queue_item *item,
		       uint64_t now_ms)
{
	return now_ms - item->since_ms < q->options.patience_ms;
}

static bool in_window(const struct queue *q, const struct queue_class *c,
		      uint64_t first)
{
	return q->options.order != QUEUE_FIFO || c->items->number < first ||
	       c->items->number - first <= q->options.window;
}

int queue_place(struct queue *q, struct ledger *l, uint64_t now_ms,
		struct queue_item **item, struct ledger_placement **placement)
{
	uint64_t first = UINT64_MAX;
	struct queue_class *c;
	int rc;

	q->round++;
	while ((c = first_class(q))) {
		if (!in_window(q, c, first))
			return -EAGAIN;
		rc = take_from(q, c, l, item, placement);
		if (rc != -EAGAIN || !is_patient(q, c->items, now_ms))
			return rc;
		c->tried = q->round;
		if (c->items->number < first)
			first = c->items->number;
	}
	return -EAGAIN;
}

size_t queue_before(const struct queue *q, const struct queue_item *item,
		    const struct queue_item **first)
{
	const struct queue_item *i;
	size_t n = 0;

	*first = NULL;
	for (struct queue_class *c = q->classes; c; c = c->hh.next)
		DL_FOREACH(c->items, i) {
			if (!is_before(q, c, i->number, item->class, item->number))
				continue;
			n++;
			if (!*first || is_before(q, c, i->number, (*first)->class,
						 (*first)->number))
				*first = i;
		}
	return n;
}

const struct queue_item *queue_held_for(struct queue *q, const struct ledger *l,
					const struct queue_item *item,
					uint64_t now_ms)
{
	struct queue_class *c;

	q->round++;
	while ((c = first_class(q)) && c != item->class) {
		c->tried = q->round;
		if (!is_patient(q, c->items, now_ms) &&
		    !ledger_fits(l, &c->key.shape))
			return c->items;
	}
	return NULL;
}

struct queue_item *queue_impossible(struct queue *q, struct ledger *l)
{
	struct queue_class *c;

	for (c = q->classes; c; c = c->hh.next)
		if (c->items && !ledger_can_ever(l, &c->key.shape))
			return c->items;
	return NULL;
}
