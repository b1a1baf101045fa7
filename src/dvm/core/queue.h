/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tasks that wait, and which of them starts next: the first in order that fits. Tasks
 * behind may pass it, within a window, until it has waited for `patience_ms`: then
 * everything is kept free for it.
 *
 * Tasks of one shape fit, or do not, together: so what is tried is the first task of each
 * shape and priority, and only when something has been freed since it did not fit. Calls
 * no system function; one thread at a time.
 */
#ifndef PMI2X_DVM_QUEUE_H
#define PMI2X_DVM_QUEUE_H

#include "dvm/core/ledger.h"
#include "dvm/core/order.h"

enum queue_order {
	QUEUE_FIFO,
	QUEUE_LARGE, /* most cores first; of equal ones that with the longest limit */
};

struct queue_options {
	enum queue_order order;
	uint32_t window;      /* tasks that may pass one that does not fit */
	uint64_t patience_ms; /* how long they may */
};

struct queue_class;

/* A task's place in the queue, part of it. */
struct queue_item {
	struct order_node at;      /* number: in order of queue_add */
	struct queue_class *class; /* NULL: it has ended */
};

struct queue;

/* 0 or -ENOMEM. */
int queue_create(struct queue **out, const struct queue_options *options);
/* Items that are in it are forgotten. NULL is allowed. */
void queue_destroy(struct queue *q);

/*
 * Add a task at the end. `shape` is copied, `shape->placed` taken over (free()), also
 * on failure. Higher priorities first. 0 or -ENOMEM.
 */
int queue_add(struct queue *q, struct queue_item *item,
	      const struct ledger_shape *shape, int32_t priority,
	      uint32_t limit_s, uint64_t now_ms);
/* One that has been placed, or removed, waits again, in its old place of the order. */
void queue_put_back(struct queue *q, struct queue_item *item);
/* Take it out, wherever it is. Its class is kept for queue_shape until queue_done. */
void queue_remove(struct queue *q, struct queue_item *item);
/* The task has ended. */
void queue_done(struct queue *q, struct queue_item *item);
const struct ledger_shape *queue_shape(const struct queue_item *item);

/*
 * Place the next task: take it out of the queue, which now owns what *placement says. 0,
 * -EAGAIN: none fits; -ENOMEM.
 */
int queue_place(struct queue *q, struct ledger *l, uint64_t now_ms,
		struct queue_item **item, struct ledger_placement **placement);
/*
 * A waiting task that can never run with the nodes that there are, or NULL. Call it
 * when a node has been lost, until it is NULL.
 */
struct queue_item *queue_impossible(struct queue *q, const struct ledger *l);
/*
 * How many tasks come before a waiting one, and the first of all in *first: NULL when it
 * is this one.
 */
size_t queue_before(const struct queue *q, const struct queue_item *item,
		    const struct queue_item **first);
/*
 * The item before `item` for which all room is kept, since it does not fit and has waited
 * too long; or NULL.
 */
const struct queue_item *queue_held_for(const struct queue *q, const struct ledger *l,
					const struct queue_item *item,
					uint64_t now_ms);
/* How many tasks wait. */
size_t queue_waiting(const struct queue *q);

#endif
