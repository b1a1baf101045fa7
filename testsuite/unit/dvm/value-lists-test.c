/* SPDX-License-Identifier: BSD-3-Clause */
/* All combinations of values from several lists. */
#include "unit.h"


#include "dvm/cli/value_lists.h"

struct seen {
	char text[100];
	size_t most;
};

static bool note(void *arg, const char *const *values, size_t count)
{
	struct seen *s = arg;

	for (size_t i = 0; i < count; i++)
		strcat(s->text, values[i]);
	strcat(s->text, " ");
	return --s->most;
}

static void assert_seen(const struct value_lists *v, size_t most, const char *expected)
{
	struct seen s = { .most = most };

	assert_true(value_lists_combine(v, note, &s));
	assert_string_equal(s.text, expected);
}

static void add_list(struct value_lists *v, const char *letters)
{
	assert_true(value_lists_begin(v));
	for (; *letters; letters++)
		assert_true(value_lists_add(v, (char[]){ *letters, '\0' }));
}

TEST(last_list_is_the_fastest)
{
	struct value_lists v = { 0 };

	add_list(&v, "ab");
	assert_seen(&v, 100, "a b ");
	add_list(&v, "1");
	add_list(&v, "xyz");
	assert_seen(&v, 100, "a1x a1y a1z b1x b1y b1z ");
	value_lists_free(&v);
}

TEST(combinations_end_when_no_more_are_taken)
{
	struct value_lists v = { 0 };

	add_list(&v, "ab");
	add_list(&v, "xy");
	assert_seen(&v, 3, "ax ay bx ");
	value_lists_free(&v);
}

TEST(empty_list_has_no_combination)
{
	struct value_lists v = { 0 };

	assert_seen(&v, 100, "");
	add_list(&v, "ab");
	add_list(&v, "");
	assert_seen(&v, 100, "");
	value_lists_free(&v);
}
