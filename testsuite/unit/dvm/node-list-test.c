/* SPDX-License-Identifier: BSD-3-Clause */
/* Lists of nodes, as Slurm writes them. */
#include "unit.h"

#include "dvm/cli/node_list.h"

static json_t *names_create(void)
{
	return json_array();
}

static void end(void *names)
{
	json_decref(names);
}

#define LIST_TEST(name) TEST_ON(name, json_t *names, unit_at_end(end, names_create()))

static void assert_names(json_t *names, const char *expected)
{
	char *text = json_dumps(names, JSON_COMPACT);

	assert_string_equal(text, expected);
	free(text);
}

static const struct {
	const char *text, *names;
} right[] = {
	{ "n1", "[\"n1\"]" },
	{ "n1,m2", "[\"n1\",\"m2\"]" },
	{ "n[1-3,7],x", "[\"n1\",\"n2\",\"n3\",\"n7\",\"x\"]" },
	{ "n[08-10]", "[\"n08\",\"n09\",\"n10\"]" },
	{ "a[1-2]-ib.site", "[\"a1-ib.site\",\"a2-ib.site\"]" },
};

LIST_TEST(names_are_expanded_in_order)
{
	for (size_t i = 0; i < sizeof(right) / sizeof(*right); i++) {
		json_array_clear(names);
		assert_true(node_list_expand(right[i].text, names));
		assert_names(names, right[i].names);
	}
}

LIST_TEST(wrong_lists_are_rejected)
{
	static const char *const wrong[] = {
		"", ",", "n1,", ",n1", "n1,,n2", "n[", "n[]", "n]", "n[1", "n[1-]", "n[2-1]",
		"n[1,]", "n[1]]", "n[1-2][3-4]", "[1-2]", "n 1", "n[x]", "n[1-9999999]",
		"n[0-99999999999999999999]",
	};

	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
		assert_false(node_list_expand(wrong[i], names));
}
