/* SPDX-License-Identifier: BSD-3-Clause */
/* Lists of numbers as people write them. */
#include "unit.h"

#include "dvm/cli/number_list.h"

#define MAX INT32_MAX

TEST(list_has_ranges_steps_and_single_numbers)
{
	const char *at = "1,3,007-9,0-10:2";
	struct number_range r;

	assert_true(number_list_ok(at, MAX));
	assert_true(number_list_take(&at, MAX, &r));
	assert_true(r.first == 1 && r.last == 1 && r.step == 1 && !r.width);
	assert_true(number_list_take(&at, MAX, &r));
	assert_true(number_list_take(&at, MAX, &r));
	assert_true(r.first == 7 && r.last == 9 && r.step == 1 && r.width == 3);
	assert_true(number_list_take(&at, MAX, &r));
	assert_true(r.first == 0 && r.last == 10 && r.step == 2);
	assert_int_equal(*at, '\0');
}

TEST(other_texts_are_rejected)
{
	static const char *const wrong[] = {
		"", ",", "1,", ",1", "1,,2", "2-1", "1-", "-1", "1-2:", "1-2:0", "1:2", "1-2-3",
		"1 2", "a", "2147483648", "18446744073709551616",
	};

	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
		if (number_list_ok(wrong[i], MAX))
			fail_msg("\"%s\" is a list", wrong[i]);
}
