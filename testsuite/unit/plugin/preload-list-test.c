/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A path in LD_PRELOAD, beside those of the user. */
#include "unit.h"

#include "preload_list.h"

#define OURS "/usr/lib/pmi2x/libpmi2x-lend.so"

static void assert_text(char *got, const char *expected)
{
	assert_non_null(got);
	unit_at_end(free, got);
	assert_string_equal(got, expected);
}

TEST(path_comes_behind_those_of_the_user)
{
	assert_text(preload_list_with(NULL, OURS), OURS);
	assert_text(preload_list_with("", OURS), OURS);
	assert_text(preload_list_with("liba.so libb.so", OURS), "liba.so:libb.so:" OURS);
	assert_text(preload_list_with(":liba.so:", OURS), "liba.so:" OURS);
}

TEST(path_of_an_outer_step_is_not_repeated)
{
	assert_text(preload_list_with(OURS, OURS), OURS);
	assert_text(preload_list_with("a.so:" OURS, OURS), "a.so:" OURS);
	assert_text(preload_list_with(OURS " a.so", OURS), "a.so:" OURS);
}

TEST(path_alone_is_removed)
{
	assert_text(preload_list_without(OURS, OURS), "");
	assert_text(preload_list_without("a.so:" OURS ":b.so", OURS), "a.so:b.so");
	assert_text(preload_list_without(OURS "x:/y" OURS, OURS), OURS "x:/y" OURS);
}
