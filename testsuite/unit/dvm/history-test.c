/* SPDX-License-Identifier: BSD-3-Clause */
/* Histories and figures of tasks, from a journal that the test has written. */
#include "unit.h"

#include <errno.h>

#include "sealed.h"
#include "dvm/core/history.h"
#include "wrap-memory.h"

#define MS(ms) ((uint64_t)(ms) * 1000000)

/* Allocations that are left before one is refused; negative: any number. */
static int allowed = -1;

static bool is_refused(void)
{
	return allowed >= 0 && allowed-- == 0;
}

static void begin(struct buf *b)
{
	buf_init(b, 1 << 20);
	assert_int_equal(journal_put_header(b), 0);
}

static void put(struct buf *b, struct journal_record r)
{
	assert_int_equal(put_sealed(b, &r), 0);
}

static void put_nodes(struct buf *b, uint64_t ms, bool begins, uint64_t slots)
{
	put(b, (struct journal_record){ .type = JOURNAL_NODES,
		.nodes = { MS(ms), begins, 1, slots } });
}

static void put_submit(struct buf *b, uint64_t task, uint64_t ms)
{
	put(b, (struct journal_record){ .type = JOURNAL_SUBMIT,
		.submit = { .task = task, .submitted_ns = MS(ms) } });
}

static void put_start(struct buf *b, uint64_t task, uint64_t ms, uint32_t slots)
{
	put(b, (struct journal_record){ .type = JOURNAL_START,
		.start = { .task = task, .placed_ns = MS(ms), .slots = slots } });
}

static void put_end(struct buf *b, uint64_t task, uint64_t started_ms,
		    uint64_t ended_ms, int32_t status)
{
	put(b, (struct journal_record){ .type = JOURNAL_END,
		.end = { .task = task, .status = status,
			 .started_ns = MS(started_ms), .ended_ns = MS(ended_ms) } });
}

static void put_cancelled(struct buf *b, uint64_t task, uint64_t ms)
{
	put(b, (struct journal_record){ .type = JOURNAL_END,
		.end = { .task = task, .status = 127 << 8, .not_started = true,
			 .cancelled = true, .ended_ns = MS(ms) } });
}

static int try_read(struct history *h, const struct buf *b)
{
	struct journal_reader j;
	uint32_t version;

	assert_int_equal(journal_open(&j, b->data, b->len, &version), 0);
	return history_read(h, &j);
}

static struct history_figures figures_of(struct history *h, const struct buf *b)
{
	struct history_figures f;

	assert_int_equal(try_read(h, b), 0);
	assert_int_equal(history_count(h, &f), 0);
	return f;
}

static void end(struct history *h, struct buf *b)
{
	history_free(h);
	buf_free(b);
}

static void assert_near(double is, double should)
{
	if (is < should - 1e-6 || is > should + 1e-6)
		fail_msg("%f is not %f", is, should);
}

/* Two slots: tasks 1 and 2 get them at once, and 3 when 2 has ended. */
static void make_six_tasks(struct buf *b)
{
	begin(b);
	put_nodes(b, 1000, true, 2);
	for (uint64_t i = 1; i <= 6; i++)
		put_submit(b, i, 2000);
	put_start(b, 1, 2001, 1);
	put_start(b, 2, 2001, 1);
	put_end(b, 2, 2010, 3000, 3 << 8);
	put_start(b, 3, 3004, 1);
	put_end(b, 1, 2020, 4000, 0);
	put_end(b, 3, 3005, 5000, 9);
	put_start(b, 4, 5001, 1);
	put_cancelled(b, 6, 6000);
}

TEST(each_task_is_told_of)
{
	static const enum history_state states[] = {
		HISTORY_DONE, HISTORY_FAILED, HISTORY_FAILED, HISTORY_RUNNING,
		HISTORY_QUEUED, HISTORY_CANCELLED,
	};
	struct history h;
	struct buf b;

	make_six_tasks(&b);
	assert_int_equal(try_read(&h, &b), 0);
	assert_int_equal(h.ntasks, 6);
	for (size_t i = 0; i < 6; i++)
		assert_int_equal(h.tasks[i].state, states[i]);
	assert_int_equal(history_code(&h.tasks[1]), 3);
	assert_int_equal(history_code(&h.tasks[2]), 128 + 9);
	assert_near(history_seconds(&h.tasks[0]), 1.98);
	assert_near(history_seconds(&h.tasks[5]), 0);
	assert_int_equal(h.heads, 1);
	end(&h, &b);
}

TEST(figures_are_of_all_tasks)
{
	struct history_figures f;
	struct history h;
	struct buf b;

	make_six_tasks(&b);
	f = figures_of(&h, &b);
	assert_int_equal(f.states[HISTORY_DONE], 1);
	assert_int_equal(f.states[HISTORY_FAILED], 2);
	assert_int_equal(f.first_ns, MS(2000));
	assert_int_equal(f.last_ns, MS(6000));
	assert_int_equal(f.setup.count, 3);
	assert_near(f.setup.median, 0.010); /* 5, 10 and 20 ms */
	assert_near(f.setup.p99, 0.020);
	assert_near(f.start.median, 0.009); /* 1, 9 and 19 ms */
	assert_near(f.there, 2 * 4);
	assert_near(f.used, 1.98 + 0.99 + 1.995);
	end(&h, &b);
}

TEST(a_slot_that_is_free_waits_for_a_task)
{
	struct history_figures f;
	struct history h;
	struct buf b;

	begin(&b);
	put_nodes(&b, 1000, true, 2);
	put_submit(&b, 1, 2000);
	put_start(&b, 1, 2000, 2);
	put_end(&b, 1, 2001, 3000, 0);
	put_submit(&b, 2, 9000); /* long after the slots were free */
	put_start(&b, 2, 9001, 2);
	put_end(&b, 2, 9005, 9500, 0);
	f = figures_of(&h, &b);
	assert_near(f.setup.p99, 0.005);
	end(&h, &b);
}

/* The second needs both slots, one of which is free long before the other. */
TEST(a_task_waits_for_as_many_slots_as_it_needs)
{
	struct history_figures f;
	struct history h;
	struct buf b;

	begin(&b);
	put_nodes(&b, 1000, true, 2);
	put_submit(&b, 1, 2000);
	put_submit(&b, 2, 2000);
	put_start(&b, 1, 2000, 1);
	put_end(&b, 1, 2001, 4000, 0);
	put_start(&b, 2, 4002, 2);
	put_end(&b, 2, 4003, 4500, 0);
	f = figures_of(&h, &b);
	assert_near(f.setup.p99, 0.003);
	end(&h, &b);
}

TEST(without_a_head_there_are_no_slots)
{
	struct history_figures f;
	struct history h;
	struct buf b;

	begin(&b);
	put_nodes(&b, 1000, true, 4);
	put_submit(&b, 1, 1000);
	put_start(&b, 1, 1000, 4);
	put_end(&b, 1, 1000, 2000, 0);
	put_submit(&b, 2, 2000);
	put_nodes(&b, 9000, true, 2);
	put_start(&b, 2, 9010, 2);
	put_end(&b, 2, 9020, 10000, 0);
	f = figures_of(&h, &b);
	assert_int_equal(h.heads, 2);
	assert_near(f.there, 4 * 1 + 2 * 1);
	assert_near(f.used, 4 * 1 + 2 * 0.98);
	assert_near(f.setup.p99, 0.020); /* from the second head's begin */
	end(&h, &b);
}

TEST(slots_come_and_go_with_nodes)
{
	struct history_figures f;
	struct history h;
	struct buf b;

	begin(&b);
	put_nodes(&b, 1000, true, 2);
	put_submit(&b, 1, 1000);
	put_nodes(&b, 2000, false, 6);
	put_nodes(&b, 3000, false, 3);
	put_start(&b, 1, 3000, 3);
	put_end(&b, 1, 3001, 5000, 0);
	f = figures_of(&h, &b);
	assert_int_equal(h.heads, 1);
	assert_near(f.there, 2 * 1 + 6 * 1 + 3 * 2);
	end(&h, &b);
}

TEST(the_last_try_counts_and_what_follows_the_end_does_not)
{
	struct history_figures f;
	struct history h;
	struct buf b;

	begin(&b);
	put_nodes(&b, 1000, true, 1);
	put_start(&b, 7, 1000, 1); /* of which nothing else is known */
	put_end(&b, 7, 1000, 90000, 0);
	put_submit(&b, 8, 1000);
	put_start(&b, 8, 1000, 1);
	put_start(&b, 8, 2000, 1);
	put_end(&b, 8, 2100, 3000, 1 << 8);
	put_start(&b, 8, 3000, 1);
	put_end(&b, 8, 3000, 4000, 0);
	put_submit(&b, 8, 5000);
	f = figures_of(&h, &b);
	assert_int_equal(h.ntasks, 1);
	assert_int_equal(f.states[HISTORY_FAILED], 1);
	assert_near(f.used, 0.9);
	assert_near(f.start.median, 0.1);
	end(&h, &b);
}

TEST(an_empty_journal_has_no_figures)
{
	struct history_figures f;
	struct history h;
	struct buf b;

	begin(&b);
	f = figures_of(&h, &b);
	assert_int_equal(h.ntasks, 0);
	assert_int_equal(f.setup.count, 0);
	assert_near(f.there, 0);
	end(&h, &b);
}

TEST(without_memory_there_is_no_report)
{
	struct history_figures f;
	struct history h;
	struct buf b;
	int rc;

	make_six_tasks(&b);
	for (int n = 0; n < 100; n++) {
		allowed = n;
		rc = try_read(&h, &b);
		rc = rc ? rc : history_count(&h, &f);
		history_free(&h);
		if (allowed >= 0) { /* none was refused */
			assert_int_equal(rc, 0);
			break;
		}
		assert_int_equal(rc, -ENOMEM);
	}
	assert_true(allowed >= 0);
	allowed = -1;
	buf_free(&b);
}
