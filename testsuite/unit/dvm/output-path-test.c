/* SPDX-License-Identifier: BSD-3-Clause */
/* Names of the files that tasks write to. */
#include "unit.h"

#include "dvm/core/output_path.h"

static const struct output_numbers numbers = { UINT64_MAX, 7, 2 };

TEST(words_become_numbers)
{
	static const char *const cases[][2] = {
		{ "/a/b", "/a/b" },
		{ "%t", "18446744073709551615" },
		{ "%r.%i", "7.2" },
		{ "50%%t", "50%t" },
		{ "%%%r%%", "%7%" },
		{ "", "" },
	};
	char out[64];

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		assert_null(output_path_unknown(cases[i][0]));
		assert_true(output_path_expand(out, sizeof(out), cases[i][0], &numbers));
		assert_string_equal(out, cases[i][1]);
	}
}

TEST(unknown_words_are_found)
{
	assert_string_equal(output_path_unknown("%t%j"), "%j");
	assert_string_equal(output_path_unknown("50%"), "%");
	assert_string_equal(output_path_unknown("%5t"), "%5t");
	assert_string_equal(output_path_unknown("%%%x"), "%x");
}

TEST(per_cent_sign_is_no_word)
{
	assert_true(output_path_has("a.%r.%t", 't'));
	assert_false(output_path_has("a.%%t", 't'));
	assert_false(output_path_has("a.%r", 't'));
	assert_false(output_path_has("%", 't'));
}

TEST(name_that_is_too_long_is_an_error)
{
	char out[6];

	assert_true(output_path_expand(out, sizeof(out), "abcd%r", &numbers));
	assert_string_equal(out, "abcd7");
	assert_false(output_path_expand(out, sizeof(out), "abcde%r", &numbers));
	assert_false(output_path_expand(out, sizeof(out), "%t", &numbers));
}
