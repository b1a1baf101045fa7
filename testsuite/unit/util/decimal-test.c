/* SPDX-License-Identifier: BSD-3-Clause */
/* Decimal numbers: digits within limits, and nothing else. */
#include "unit.h"

#include "libutil/decimal.h"

#define BEFORE 77 /* in *out */

TEST(takes_what_is_within_the_limits)
{
	uint64_t large;
	uint32_t small;

	assert_true(decimal_u32("0", 0, 0, &small));
	assert_int_equal(small, 0);
	assert_true(decimal_u32("5", 5, 5, &small));
	assert_int_equal(small, 5);
	assert_true(decimal_u32("0012", 0, 12, &small));
	assert_int_equal(small, 12);
	assert_true(decimal_u32("4294967295", 0, UINT32_MAX, &small));
	assert_int_equal(small, UINT32_MAX);
	assert_true(decimal_u64("18446744073709551615", 0, UINT64_MAX, &large));
	assert_true(large == UINT64_MAX);
}

static void refuses_u32(const char *text, uint32_t min, uint32_t max)
{
	uint32_t out = BEFORE;

	if (decimal_u32(text, min, max, &out))
		fail_msg("\"%s\" was taken", text);
	assert_int_equal(out, BEFORE);
}

TEST(refuses_what_is_beyond_the_limits)
{
	refuses_u32("4", 5, 7);
	refuses_u32("8", 5, 7);
	refuses_u32("0", 1, UINT32_MAX);
	refuses_u32("4294967296", 0, UINT32_MAX);
	refuses_u32("4294967301", 0, 7); /* 5, were it cut to 32 bits */
	refuses_u32("18446744073709551621", 0, 7); /* 5, if to 64 */
}

TEST(refuses_what_no_64_bits_hold)
{
	static const char *const texts[] = {
		"18446744073709551616", /* by the last digit */
		"18446744073709551620", /* by the multiplication before it */
		"99999999999999999999999999999999999999",
	};
	uint64_t out = BEFORE;

	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
		assert_false(decimal_u64(texts[i], 0, UINT64_MAX, &out));
	assert_int_equal(out, BEFORE);
}

TEST(refuses_all_but_digits)
{
	static const char *const texts[] = {
		"", " ", "-", "+", "-1", "+1", "-0", " 1", "1 ", "\t1", "1\n",
		"0x10", "1k", "1.", "1e3", "1,000", "1-2", "ten", "\xb2", "1/", "1:",
	};

	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
		refuses_u32(texts[i], 0, UINT32_MAX);
}

TEST(takes_digits_up_to_what_is_none)
{
	const char *text = "12,-3,2147483648", *at = text;
	uint64_t large = BEFORE;
	int number = BEFORE;

	assert_true(decimal_take(&at, 12, &large));
	assert_true(large == 12 && at == text + 2);
	assert_false(decimal_take(&at, UINT64_MAX, &large));
	assert_true(large == 12 && at == text + 2);
	at++;
	assert_true(decimal_int(&at, &number));
	assert_true(number == -3 && *at == ',');
	at++;
	assert_false(decimal_int(&at, &number));
	assert_true(number == -3 && *at == '2');
	at = "-2147483648";
	assert_true(decimal_int(&at, &number));
	assert_true(number == INT32_MIN && !*at);
}
