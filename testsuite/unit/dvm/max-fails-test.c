/* SPDX-License-Identifier: BSD-3-Clause */
/* --max-fails of pmi2x-dvm: its forms, and when it is reached. */
#include "unit.h"

#include "dvm/cli/max_fails.h"

static struct max_fails parsed(const char *text)
{
	struct max_fails m = { 0 };

	assert_true(max_fails_parse(text, &m));
	assert_true(m.set);
	return m;
}

TEST(numbers_and_percentages_are_read)
{
	struct max_fails m = parsed("10");

	assert_int_equal(m.limit, 10);
	assert_false(m.percent || m.now);
	m = parsed("0,now");
	assert_int_equal(m.limit, 0);
	assert_true(m.now && !m.percent);
	m = parsed("100%,now");
	assert_int_equal(m.limit, 100);
	assert_true(m.now && m.percent);
}

TEST(other_texts_are_rejected)
{
	static const char *const wrong[] = {
		"", "-1", "%", "101%", "4294967296", "1,", "1,later", "1%%", "1 ", "now",
	};
	struct max_fails m;

	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
		assert_false(max_fails_parse(wrong[i], &m));
}

TEST(number_is_reached_by_one_more)
{
	const struct max_fails ten = parsed("10"), none = { 0 }, zero = parsed("0");

	assert_false(max_fails_reached(&ten, 10, 1000, false));
	assert_true(max_fails_reached(&ten, 11, 1000, false));
	assert_false(max_fails_reached(&zero, 0, 1000, true));
	assert_true(max_fails_reached(&zero, 1, 1000, false));
	assert_false(max_fails_reached(&none, 1000, 1000, true));
}

TEST(percentage_counts_when_all_tasks_are_known)
{
	const struct max_fails m = parsed("5%");

	assert_false(max_fails_reached(&m, 50, 1000, true));
	assert_false(max_fails_reached(&m, 51, 1000, false));
	assert_true(max_fails_reached(&m, 51, 1000, true));
	assert_false(max_fails_reached(&m, 0, 0, true));
}
