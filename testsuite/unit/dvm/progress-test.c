/* SPDX-License-Identifier: BSD-3-Clause */
/* The line of progress of pmi2x-dvm: its text, and when it is shown. */
#include "unit.h"

#include "dvm/cli/progress.h"

static void assert_text(const struct progress_counts *c, const char *expected)
{
	char text[PROGRESS_TEXT_MAX];

	progress_text(text, c);
	assert_string_equal(text, expected);
}

TEST(line_has_counts_rate_and_rest)
{
	const struct progress_counts c = {
		.submitted = 1000, .done = 190, .failed = 10, .running = 16, .seconds = 10,
	};

	assert_text(&c, "190 done, 10 failed, 16 running, 784 queued; 20 tasks/s; about 40 s left");
}

TEST(rest_is_unknown_before_the_first_end)
{
	const struct progress_counts c = { .submitted = 5, .running = 2, .seconds = 7 };

	assert_text(&c, "0 done, 0 failed, 2 running, 3 queued");
}

TEST(rest_has_units_up_to_days)
{
	struct progress_counts c = { .submitted = 61, .done = 1, .seconds = 5 };

	assert_text(&c, "1 done, 0 failed, 0 running, 60 queued; 0.20 tasks/s; about 5 min left");
	c.seconds = 100;
	assert_text(&c, "1 done, 0 failed, 0 running, 60 queued; 0.01 tasks/s; about 1 h 40 min left");
	c.seconds = 10000;
	assert_text(&c, "1 done, 0 failed, 0 running, 60 queued; 0.00 tasks/s; about 6 d 22 h left");
}

/* The head's number is older than the ends that have come. */
TEST(running_tasks_are_at_most_those_left)
{
	const struct progress_counts c = {
		.submitted = 10, .done = 9, .running = 4, .seconds = 9,
	};

	assert_text(&c, "9 done, 0 failed, 1 running, 0 queued; 1.00 tasks/s; about 1 s left");
}

TEST(line_is_due_twice_a_second_on_a_terminal)
{
	struct progress p;

	progress_begin(&p, true, 100);
	assert_false(progress_due(&p, 100.4));
	assert_true(progress_due(&p, 100.6));
	assert_false(progress_due(&p, 100.7));
	assert_int_equal(progress_interval(&p), 500);
}

TEST(line_is_due_once_a_minute_elsewhere)
{
	struct progress p;

	progress_begin(&p, false, 100);
	assert_false(progress_due(&p, 159));
	assert_true(progress_due(&p, 160));
	assert_false(progress_due(&p, 219));
	assert_true(progress_due(&p, 221));
	assert_int_equal(progress_interval(&p), 60000);
}
