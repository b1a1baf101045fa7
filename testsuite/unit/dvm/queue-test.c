/* SPDX-License-Identifier: BSD-3-Clause */
/* The queue of a DVM: who starts next, who may pass, and who may not any more. */
#include "unit.h"


#include "dvm/core/queue.h"

static const struct ledger_shape one = { .ranks = 1, .cores = 1 };
static const struct ledger_shape all = { .ranks = 1, .cores = 4 };

struct bed {
	struct ledger *ledger;
	struct queue *queue;
};

static void end(void *bed)
{
	struct bed *b = bed;

	queue_destroy(b->queue);
	ledger_destroy(b->ledger);
	free(b);
}

static struct bed *bed(enum queue_order order, uint32_t window)
{
	const struct queue_options options = {
		.order = order, .window = window, .patience_ms = 1000,
	};
	const struct ledger_resources has = { .cores = 4 };
	struct bed *b = malloc(sizeof(*b));

	assert_int_equal(ledger_create(&b->ledger), 0);
	assert_int_equal(ledger_add_node(b->ledger, &has), 0);
	assert_int_equal(queue_create(&b->queue, &options), 0);
	return unit_at_end(end, b);
}

#define QUEUE_TEST(name, order, window) TEST_ON(name, struct bed *b, bed(order, window))

static void add(struct bed *b, struct queue_item *item,
		const struct ledger_shape *shape, int priority, uint64_t limit)
{
	assert_int_equal(queue_add(b->queue, item, shape, priority, limit, 0), 0);
}

/* The next item, which has nothing of the ledger then; NULL: nothing. */
static struct queue_item *next(struct bed *b, uint64_t now)
{
	struct ledger_placement *p;
	struct queue_item *item;

	if (queue_place(b->queue, b->ledger, now, &item, &p))
		return NULL;
	ledger_release(b->ledger, queue_shape(item), p);
	free(p);
	return item;
}

static struct ledger_placement *fill(struct bed *b, uint32_t cores)
{
	const struct ledger_shape s = { .ranks = 1, .cores = cores };
	struct ledger_placement *p;

	assert_int_equal(ledger_place(b->ledger, &s, &p), 0);
	return p;
}

QUEUE_TEST(the_first_comes_first, QUEUE_FIFO, 10)
{
	struct queue_item items[4];

	add(b, &items[0], &one, 0, 0);
	add(b, &items[1], &all, 0, 0);
	add(b, &items[2], &one, 0, 0);
	add(b, &items[3], &one, 5, 0);
	assert_int_equal(queue_waiting(b->queue), 4);
	assert_ptr_equal(next(b, 0), &items[3]);
	assert_ptr_equal(next(b, 0), &items[0]);
	assert_ptr_equal(next(b, 0), &items[1]);
	assert_ptr_equal(next(b, 0), &items[2]);
	assert_null(next(b, 0));
	for (int i = 0; i < 4; i++)
		queue_done(b->queue, &items[i]);
}

QUEUE_TEST(the_largest_comes_first_where_that_is_wanted, QUEUE_LARGE, 10)
{
	struct queue_item items[3];

	add(b, &items[0], &one, 0, 0);
	add(b, &items[1], &one, 0, 60);
	add(b, &items[2], &all, 0, 0);
	assert_ptr_equal(next(b, 0), &items[2]);
	assert_ptr_equal(next(b, 0), &items[1]);
	assert_ptr_equal(next(b, 0), &items[0]);
}

QUEUE_TEST(most_work_comes_first_where_that_is_wanted, QUEUE_WORK, 10)
{
	struct queue_item items[4];

	add(b, &items[0], &all, 0, 0);
	add(b, &items[1], &all, 0, 10);
	add(b, &items[2], &one, 0, 10);
	add(b, &items[3], &one, 0, 100);
	assert_ptr_equal(next(b, 0), &items[3]);
	assert_ptr_equal(next(b, 0), &items[1]);
	assert_ptr_equal(next(b, 0), &items[2]);
	assert_ptr_equal(next(b, 0), &items[0]);
}

QUEUE_TEST(blocked_task_is_passed_by_a_limited_number, QUEUE_FIFO, 10)
{
	struct ledger_placement *p = fill(b, 1);
	struct queue_item large, small[2];

	add(b, &large, &all, 0, 0);
	add(b, &small[0], &one, 0, 0);
	add(b, &small[1], &one, 0, 0);
	assert_ptr_equal(next(b, 999), &small[0]);
	assert_null(next(b, 1000)); /* its patience is over */
	ledger_release(b->ledger, &one, p);
	free(p);
	assert_ptr_equal(next(b, 1000), &large);
	assert_ptr_equal(next(b, 1000), &small[1]);
}

QUEUE_TEST(only_a_window_of_tasks_may_pass, QUEUE_FIFO, 2)
{
	struct ledger_placement *p = fill(b, 1);
	struct queue_item large, small[3];

	add(b, &large, &all, 0, 0);
	for (int i = 0; i < 3; i++)
		add(b, &small[i], &one, 0, 0);
	assert_ptr_equal(next(b, 0), &small[0]);
	assert_ptr_equal(next(b, 0), &small[1]);
	assert_null(next(b, 0));
	ledger_release(b->ledger, &one, p);
	free(p);
}

QUEUE_TEST(one_that_was_placed_can_wait_again, QUEUE_FIFO, 10)
{
	struct queue_item items[2];

	add(b, &items[0], &one, 0, 0);
	add(b, &items[1], &one, 0, 0);
	assert_ptr_equal(next(b, 0), &items[0]);
	queue_put_back(b->queue, &items[0]);
	assert_ptr_equal(next(b, 0), &items[0]);
	queue_remove(b->queue, &items[1]);
	assert_null(next(b, 0));
	assert_int_equal(queue_waiting(b->queue), 0);
}

/* Neither of two shapes fits: one has the first task, the other that which waited too long. */
QUEUE_TEST(impatient_task_of_any_shape_holds_the_rest, QUEUE_LARGE, 10)
{
	const struct ledger_shape gpu = { .ranks = 1, .cores = 2, .gpus = 1 };
	const struct ledger_shape memory = { .ranks = 1, .cores = 2, .memory = 1 };
	const struct ledger_shape fits = { .ranks = 1, .cores = 2 };
	struct queue_item old[2], young[2], fit[2];

	assert_int_equal(queue_add(b->queue, &old[0], &gpu, 0, 10, 0), 0);
	assert_int_equal(queue_add(b->queue, &old[1], &memory, 0, 20, 0), 0);
	assert_int_equal(queue_add(b->queue, &young[0], &gpu, 0, 50, 5000), 0);
	assert_int_equal(queue_add(b->queue, &young[1], &memory, 0, 40, 5000), 0);
	assert_int_equal(queue_add(b->queue, &fit[0], &fits, 0, 15, 5000), 0);
	assert_null(next(b, 5000));
	assert_ptr_equal(queue_held_for(b->queue, b->ledger, &fit[0], 5000), &old[1]);
	assert_int_equal(queue_add(b->queue, &fit[1], &fits, 0, 30, 5000), 0);
	assert_ptr_equal(next(b, 5000), &fit[1]);
}

QUEUE_TEST(tasks_that_can_no_longer_fit_are_found, QUEUE_FIFO, 10)
{
	struct queue_item item;

	add(b, &item, &one, 0, 0);
	assert_null(queue_impossible(b->queue, b->ledger));
	ledger_lose_node(b->ledger, 0);
	assert_ptr_equal(queue_impossible(b->queue, b->ledger), &item);
}
