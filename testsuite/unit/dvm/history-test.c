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

static struct buf journal;
static struct history h; /* read from it */

static int begin(void **state)
{
	buf_init(&journal, 1 << 20);
	return journal_put_header(&journal);
}

static int end(void **state)
{
	history_free(&h);
	h = (struct history){ 0 };
	buf_free(&journal);
	return 0;
}

#define HISTORY_TEST(name) TEST_WITH(name, begin, end)

static void put(struct journal_record r)
{
	assert_int_equal(put_sealed(&journal, &r), 0);
}

static void put_nodes(uint64_t ms, bool begins, uint64_t slots)
{
	put((struct journal_record){ .type = JOURNAL_NODES,
		.nodes = { MS(ms), begins, 1, slots } });
}

static void put_submit(uint64_t task, uint64_t ms)
{
	put((struct journal_record){ .type = JOURNAL_SUBMIT,
		.submit = { .task = task, .submitted_ns = MS(ms) } });
}

static void put_start(uint64_t task, uint64_t ms, uint32_t slots)
{
	put((struct journal_record){ .type = JOURNAL_START,
		.start = { .task = task, .placed_ns = MS(ms), .slots = slots } });
}

static void put_end(uint64_t task, uint64_t started_ms,
		    uint64_t ended_ms, int32_t status)
{
	put((struct journal_record){ .type = JOURNAL_END,
		.end = { .task = task, .status = status,
			 .started_ns = MS(started_ms), .ended_ns = MS(ended_ms) } });
}

static void put_cancelled(uint64_t task, uint64_t ms)
{
	put((struct journal_record){ .type = JOURNAL_END,
		.end = { .task = task, .status = 127 << 8, .not_started = true,
			 .cancelled = true, .ended_ns = MS(ms) } });
}

static int try_read(void)
{
	struct journal_reader j;
	uint32_t version;

	assert_int_equal(journal_open(&j, journal.data, journal.len, &version), 0);
	return history_read(&h, &j);
}

static struct history_figures figures(void)
{
	struct history_figures f;

	assert_int_equal(try_read(), 0);
	assert_int_equal(history_count(&h, 1, &f), 0);
	return f;
}

static void assert_near(double is, double should)
{
	if (is < should - 1e-6 || is > should + 1e-6)
		fail_msg("%f is not %f", is, should);
}

/* Two slots: tasks 1 and 2 get them at once, and 3 when 2 has ended. */
static void make_six_tasks(void)
{
	put_nodes(1000, true, 2);
	for (uint64_t i = 1; i <= 6; i++)
		put_submit(i, 2000);
	put_start(1, 2001, 1);
	put_start(2, 2001, 1);
	put_end(2, 2010, 3000, 3 << 8);
	put_start(3, 3004, 1);
	put_end(1, 2020, 4000, 0);
	put_end(3, 3005, 5000, 9);
	put_start(4, 5001, 1);
	put_cancelled(6, 6000);
}

HISTORY_TEST(each_task_is_told_of)
{
	static const enum history_state states[] = {
		HISTORY_DONE, HISTORY_FAILED, HISTORY_FAILED, HISTORY_RUNNING,
		HISTORY_QUEUED, HISTORY_CANCELLED,
	};

	make_six_tasks();
	assert_int_equal(try_read(), 0);
	assert_int_equal(h.ntasks, 6);
	for (size_t i = 0; i < 6; i++)
		assert_int_equal(h.tasks[i].state, states[i]);
	assert_int_equal(history_code(&h.tasks[1]), 3);
	assert_int_equal(history_code(&h.tasks[2]), 128 + 9);
	assert_near(history_seconds(&h.tasks[0]), 1.98);
	assert_near(history_seconds(&h.tasks[5]), 0);
	assert_int_equal(h.heads, 1);
}

HISTORY_TEST(figures_are_of_all_tasks)
{
	struct history_figures f;

	make_six_tasks();
	f = figures();
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
}

HISTORY_TEST(a_slot_that_is_free_waits_for_a_task)
{
	struct history_figures f;

	put_nodes(1000, true, 2);
	put_submit(1, 2000);
	put_start(1, 2000, 2);
	put_end(1, 2001, 3000, 0);
	put_submit(2, 9000); /* long after the slots were free */
	put_start(2, 9001, 2);
	put_end(2, 9005, 9500, 0);
	f = figures();
	assert_near(f.setup.p99, 0.005);
}

/* The second needs both slots, one of which is free long before the other. */
HISTORY_TEST(a_task_waits_for_as_many_slots_as_it_needs)
{
	struct history_figures f;

	put_nodes(1000, true, 2);
	put_submit(1, 2000);
	put_submit(2, 2000);
	put_start(1, 2000, 1);
	put_end(1, 2001, 4000, 0);
	put_start(2, 4002, 2);
	put_end(2, 4003, 4500, 0);
	f = figures();
	assert_near(f.setup.p99, 0.003);
}

HISTORY_TEST(without_a_head_there_are_no_slots)
{
	struct history_figures f;

	put_nodes(1000, true, 4);
	put_submit(1, 1000);
	put_start(1, 1000, 4);
	put_end(1, 1000, 2000, 0);
	put_submit(2, 2000);
	put_nodes(9000, true, 2);
	put_start(2, 9010, 2);
	put_end(2, 9020, 10000, 0);
	f = figures();
	assert_int_equal(h.heads, 2);
	assert_near(f.there, 4 * 1 + 2 * 1);
	assert_near(f.used, 4 * 1 + 2 * 0.98);
	assert_near(f.setup.p99, 0.020); /* from the second head's begin */
}

HISTORY_TEST(slots_come_and_go_with_nodes)
{
	struct history_figures f;

	put_nodes(1000, true, 2);
	put_submit(1, 1000);
	put_nodes(2000, false, 6);
	put_nodes(3000, false, 3);
	put_start(1, 3000, 3);
	put_end(1, 3001, 5000, 0);
	f = figures();
	assert_int_equal(h.heads, 1);
	assert_near(f.there, 2 * 1 + 6 * 1 + 3 * 2);
}

HISTORY_TEST(the_last_try_counts_and_what_follows_the_end_does_not)
{
	struct history_figures f;

	put_nodes(1000, true, 1);
	put_start(7, 1000, 1); /* of which nothing else is known */
	put_end(7, 1000, 90000, 0);
	put_submit(8, 1000);
	put_start(8, 1000, 1);
	put_start(8, 2000, 1);
	put_end(8, 2100, 3000, 1 << 8);
	put_start(8, 3000, 1);
	put_end(8, 3000, 4000, 0);
	put_submit(8, 5000);
	f = figures();
	assert_int_equal(h.ntasks, 1);
	assert_int_equal(f.states[HISTORY_FAILED], 1);
	assert_near(f.used, 0.9);
	assert_near(f.start.median, 0.1);
}

/* Stages of a head, and GPUs. */
static void put_head(void)
{
	put((struct journal_record){ .type = JOURNAL_NODES,
		.nodes = { MS(1000), true, 1, 4, .gpus = 2, .from_ns = MS(750) } });
	put_submit(1, 1000);
	put((struct journal_record){ .type = JOURNAL_START,
		.start = { .task = 1, .placed_ns = MS(1000), .slots = 2, .gpus = 1 } });
	put((struct journal_record){ .type = JOURNAL_END,
		.end = { .task = 1, .started_ns = MS(1010), .ended_ns = MS(3000),
			 .told_ns = MS(3001) } });
	put((struct journal_record){ .type = JOURNAL_NODES,
		.nodes = { MS(5000), .left = true, .from_ns = MS(4500) } });
}

HISTORY_TEST(figures_of_several_dvms_are_joined)
{
	struct history_figures f;
	struct history both[2];
	struct buf first;

	put_head();
	assert_int_equal(try_read(), 0);
	both[0] = h;
	first = journal;
	assert_int_equal(begin(NULL), 0);
	make_six_tasks();
	assert_int_equal(try_read(), 0);
	both[1] = h;
	assert_int_equal(history_count(both, 2, &f), 0);
	assert_int_equal(f.states[HISTORY_DONE], 2);
	assert_int_equal(f.first_ns, MS(1000));
	assert_int_equal(f.last_ns, MS(6000));
	assert_near(f.there, 4 * 4 + 2 * 5);
	assert_near(f.used, 2 * 1.99 + 1.98 + 0.99 + 1.995);
	assert_near(f.gpus_there, 2 * 4);
	assert_near(f.gpus_used, 1.99);
	assert_int_equal(f.setup.count, 4);
	assert_near(f.setup.mean, (5 + 10 + 10 + 20) / 4e3);
	assert_near(f.setup.q3, 0.020);
	assert_int_equal(f.stages.starts, 1);
	assert_near(f.stages.start, 0.25);
	assert_near(f.stages.stop, 0.5);
	history_free(&both[0]);
	buf_free(&first);
}

HISTORY_TEST(tasks_at_once_are_counted_by_stage)
{
	struct history_figures f;

	make_six_tasks(); /* 1 and 2 are placed and run together; then 1 and 3 */
	f = figures();
	assert_int_equal(f.most.setup, 2);
	assert_int_equal(f.most.running, 2);
	assert_int_equal(f.most.ending, 0); /* no time of it is known */
	end(NULL);
	assert_int_equal(begin(NULL), 0);
	put_head();
	assert_int_equal(figures().most.ending, 1);
}

HISTORY_TEST(an_empty_journal_has_no_figures)
{
	struct history_figures f = figures();

	assert_int_equal(h.ntasks, 0);
	assert_int_equal(f.setup.count, 0);
	assert_near(f.there, 0);
}

HISTORY_TEST(without_memory_there_is_no_report)
{
	struct history_figures f;
	int rc;

	make_six_tasks();
	for (int n = 0; n < 100; n++) {
		allowed = n;
		rc = try_read();
		rc = rc ? rc : history_count(&h, 1, &f);
		if (allowed >= 0) { /* none was refused */
			assert_int_equal(rc, 0);
			break;
		}
		assert_int_equal(rc, -ENOMEM);
		history_free(&h);
	}
	assert_true(allowed >= 0);
	allowed = -1;
}
