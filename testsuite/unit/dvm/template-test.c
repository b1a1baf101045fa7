/* SPDX-License-Identifier: BSD-3-Clause */
/* Values in place of words in arguments. */
#include "unit.h"


#include "dvm/cli/template.h"

static const char *const pair[] = { "a", "b c" };
static const struct template_values one = { pair, 1, 7 }, two = { pair, 2, 12 };

static void assert_filled(const struct template_values *v, const char *text, const char *expected)
{
	char *filled = template_fill(text, v);

	assert_string_equal(filled, expected);
	free(filled);
}

TEST(every_word_is_replaced)
{
	assert_filled(&one, "{}", "a");
	assert_filled(&one, "{}-{}{#}", "a-a7");
	assert_filled(&two, "x{1}y{2}z{1}", "xayb cza");
	assert_filled(&two, "{} {#}", "a b c 12");
	assert_filled(&one, "", "");
}

TEST(other_braces_stay)
{
	assert_filled(&one, "{1} {2}", "{1} {2}");
	assert_filled(&two, "{0} {3} {1", "{0} {3} {1");
	assert_filled(&two, "{x} ${y} { } {{}}", "{x} ${y} { } {a b c}");
	assert_filled(&one, "awk {print $1}", "awk {print $1}");
}

TEST(number_of_the_task_is_no_value)
{
	assert_false(template_has_value("{#}", &two));
	assert_false(template_has_value("{1}", &one));
	assert_true(template_has_value("x{1}", &two));
	assert_true(template_has_value("{#}{}", &one));
}
