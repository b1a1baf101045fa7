/* SPDX-License-Identifier: BSD-3-Clause */
/* The tests that have registered themselves. */
#include "unit.h"

#include <errno.h>

#define TESTS_MAX 256 /* of one program */

static struct unit_test *tests; /* in the order of their file */

void unit_register(struct unit_test *test)
{
	struct unit_test **at = &tests;

	while (*at && (*at)->line < test->line)
		at = &(*at)->next;
	test->next = *at;
	*at = test;
}

int unit_run(const char *name, CMFixtureFunction set_up, CMFixtureFunction tear_down)
{
	struct CMUnitTest all[TESTS_MAX];
	size_t n = 0;

	for (struct unit_test *test = tests; test; test = test->next) {
		if (n == TESTS_MAX)
			abort();
		all[n++] = test->test;
	}
	return _cmocka_run_group_tests(name ? name : program_invocation_short_name, all, n,
				       set_up, tear_down);
}
