/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Waiting tasks, and the one that starts next: the first in order that fits. Tasks behind
 * may pass a task, within a window, until it has waited for `patience_ms`: then all room is
 * kept free for it. Tasks of one shape fit, or do not fit, together. So only the first task
 * of each shape and priority is tried, and only when something has been freed since it did
 * not fit. Calls no system function; one thread at a time.
 */
#pragma once

#include "dvm/core/ledger.h"
#include "dvm/core/order.h"

enum queue_order {
	QUEUE_FIFO,
	QUEUE_LARGE, /* most cores first; with equal cores the longest limit first */
	QUEUE_WORK,  /* most cores x limit first; equal ones as QUEUE_LARGE */
	QUEUE_ORDERS,
};

struct queue_options {
	enum queue_order order;
	uint32_t window;      /* tasks that may pass a task that does not fit */
	uint64_t patience_ms; /* limit of the time in which they may */
};

struct queue_class;

/* A task's member of the queue. */
struct queue_item {
	struct order_node at;      /* number: in the order of queue_add */
	struct queue_class *class; /* NULL: the task has ended */
};

struct queue;

/* Create a queue. 0 or -ENOMEM. */
int queue_create(struct queue **out, const struct queue_options *options);
/* Free the queue, and forget its items. NULL is allowed. */
void queue_destroy(struct queue *q);

/*
 * Add a task at the end. `shape` is copied, `shape->placed` taken over (free()), also
 * on failure. Higher priorities first. 0 or -ENOMEM.
 */
int queue_add(struct queue *q, struct queue_item *item,
	      const struct ledger_shape *shape, int32_t priority,
	      uint32_t limit_s, uint64_t now_ms);
/* An item that was placed or removed waits again, at its old position of the order. */
void queue_put_back(struct queue *q, struct queue_item *item);
/* Remove the item, at any position. Its class is kept for queue_shape until queue_done. */
void queue_remove(struct queue *q, struct queue_item *item);
/* The task has ended. */
void queue_done(struct queue *q, struct queue_item *item);
const struct ledger_shape *queue_shape(const struct queue_item *item);

/*
 * Place the next task: remove it from the queue. The task now owns the resources of
 * *placement. 0, -EAGAIN: no task fits; -ENOMEM.
 */
int queue_place(struct queue *q, struct ledger *l, uint64_t now_ms,
		struct queue_item **item, struct ledger_placement **placement);
/*
 * A waiting task that can never run on the present nodes, or NULL. Call it when a node has
 * been lost, until it returns NULL.
 */
struct queue_item *queue_impossible(struct queue *q, const struct ledger *l);
/*
 * The number of tasks before a waiting one, and the first of all in *first: NULL when it is
 * this one.
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
/* The number of waiting tasks. */
size_t queue_waiting(const struct queue *q);
