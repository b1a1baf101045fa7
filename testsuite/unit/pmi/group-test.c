/* SPDX-License-Identifier: BSD-3-Clause */
/* Groups of PMI-1 1.2 out of text. */
#include "unit.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>

#include "libpmi/group.h"

#define RANKS 20000 /* of the step */

static int read_group(struct pmi_group *g, const char *text)
{
	char why[PMI_GROUP_WHY_MAX] = "";
	int rc = pmi_group_read(g, text, RANKS, why);

	assert_true(!rc == !why[0]);
	return rc;
}

TEST(all_forms_are_read)
{
	struct pmi_group g;

	assert_int_equal(read_group(&g, "WORLD:0"), 0);
	assert_int_equal(g.form, PMI_GROUP_WORLD);
	assert_int_equal(g.tag, 0);
	pmi_group_free(&g);
	assert_int_equal(read_group(&g, "NODE:2147483647"), 0);
	assert_int_equal(g.form, PMI_GROUP_NODE);
	assert_int_equal(g.tag, INT_MAX);
	pmi_group_free(&g);
	assert_int_equal(read_group(&g, "5:7"), 0);
	assert_int_equal(g.form, PMI_GROUP_LIST);
	assert_int_equal(g.count, 1);
	assert_int_equal(g.ranks[0], 5);
	pmi_group_free(&g);
}

/* abs() leaves the smallest number as it is. */
TEST(a_tag_without_an_absolute_value_is_read)
{
	struct pmi_group g;

	assert_int_equal(read_group(&g, "WORLD:-2147483648"), 0);
	assert_int_equal(g.tag, INT_MIN);
	pmi_group_free(&g);
}

TEST(a_list_may_be_in_any_order)
{
	struct pmi_group g;

	assert_int_equal(read_group(&g, "19999,3,0,12:1"), 0);
	assert_int_equal(g.count, 4);
	assert_int_equal(g.ranks[0], 0);
	assert_int_equal(g.ranks[1], 3);
	assert_int_equal(g.ranks[2], 12);
	assert_int_equal(g.ranks[3], 19999);
	pmi_group_free(&g);
}

TEST(ten_thousand_leaders_are_read)
{
	char *text = malloc(70000), *at = text;
	struct pmi_group g;

	for (uint32_t i = 0; i < 10000; i++)
		at += sprintf(at, "%s%u", i ? "," : "", 2 * i);
	strcpy(at, ":12");
	assert_int_equal(read_group(&g, text), 0);
	assert_int_equal(g.count, 10000);
	for (uint32_t i = 0; i < 10000; i++)
		assert_int_equal(g.ranks[i], 2 * i);
	pmi_group_free(&g);
	free(text);
}

TEST(invalid_groups_are_rejected)
{
	static const char *const texts[] = {
		"", ":", ":1", "WORLD", "NODE", "0,1", "world:1", "WORLDS:1",
		"WORL:1", "WORLD,0:1", "0,WORLD:1", "0,NODE:1", "0,,1:1",
		",0:1", "0,1,:1", "0 1:1", "0, 1:1", " 0:1", "0:", "0:-1",
		"0:+1", "0: 1", "0:1 ", "0:1:2", "0:x", "0:0x1",
		"0:2147483648", "0:-2147483649", "0:99999999999999999999",
		"20000:1", "0,20000:1", "-1:1", "4294967296:1",
		"18446744073709551616:1", "0.5:1", "0-3:1", "3,3:1", "0,1,0:1",
	};
	struct pmi_group g;

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		if (read_group(&g, texts[i]) != -EINVAL || g.ranks)
			fail_msg("\"%s\" was taken for a group", texts[i]);
}

/* An answer has to name it, if it can. */
TEST(the_tag_is_known_after_an_error)
{
	struct pmi_group g;

	assert_int_equal(read_group(&g, "0,0:17"), -EINVAL);
	assert_int_equal(g.tag, 17);
	assert_int_equal(read_group(&g, "0:-5"), -EINVAL);
	assert_int_equal(g.tag, -5);
}

TEST(a_reason_names_what_is_wrong)
{
	char why[PMI_GROUP_WHY_MAX];
	struct pmi_group g;

	pmi_group_read(&g, "4,0,4:1", 8, why);
	assert_string_equal(why, "rank 4 is named twice");
	pmi_group_read(&g, "0,8:1", 8, why);
	assert_string_equal(why, "not a list of ranks from 0 to 7");
	pmi_group_read(&g, "0,1,2,3,4,5,6,7,8:1", 8, why);
	assert_string_equal(why, "the group has too many ranks");
}

TEST(the_world_can_be_a_list)
{
	struct pmi_group g;

	assert_int_equal(read_group(&g, "WORLD:3"), 0);
	assert_int_equal(pmi_group_fill(&g, 3), 0);
	assert_int_equal(g.count, 3);
	assert_int_equal(g.ranks[2], 2);
	pmi_group_free(&g);
}
