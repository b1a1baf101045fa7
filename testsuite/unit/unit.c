/* SPDX-License-Identifier: BSD-3-Clause */
/* The tests that have registered themselves, and what ends with each of them. */
#include "unit.h"

#include <errno.h>

#define TESTS_MAX 256  /* of one program */
#define OBJECTS_MAX 64 /* of one test */

static struct unit_test *tests; /* in the order of their file */
static struct unit_test *running, *next_one;

static struct {
	void *object;
	void (*end)(void *object);
} objects[OBJECTS_MAX];
static size_t nobjects;

void *unit_at_end(void (*end)(void *object), void *object)
{
	assert_true(nobjects < OBJECTS_MAX);
	objects[nobjects].object = object;
	objects[nobjects++].end = end;
	return object;
}

void unit_end(void *object)
{
	void (*end)(void *) = NULL;

	for (size_t i = nobjects; i-- > 0;) {
		if (objects[i].object != object)
			continue;
		end = objects[i].end;
		nobjects--;
		memmove(&objects[i], &objects[i + 1], (nobjects - i) * sizeof(objects[0]));
		end(object);
	}
	assert_non_null(end);
}

void unit_register(struct unit_test *test)
{
	struct unit_test **at = &tests;

	while (*at && (*at)->line < test->line)
		at = &(*at)->next;
	test->next = *at;
	*at = test;
}

static int begin_test(void **state)
{
	running = next_one;
	next_one = running->next;
	return running->test.setup_func ? running->test.setup_func(state) : 0;
}

static int end_test(void **state)
{
	int rc = running->test.teardown_func ? running->test.teardown_func(state) : 0;

	while (nobjects)
		unit_end(objects[nobjects - 1].object);
	return rc;
}

int unit_run(const char *name, CMFixtureFunction set_up, CMFixtureFunction tear_down)
{
	struct CMUnitTest all[TESTS_MAX];
	size_t n = 0;

	for (struct unit_test *test = tests; test; test = test->next) {
		if (n == TESTS_MAX)
			abort();
		all[n++] = (struct CMUnitTest){ test->test.name, test->test.test_func,
						begin_test, end_test, NULL };
	}
	next_one = tests;
	return _cmocka_run_group_tests(name ? name : program_invocation_short_name, all, n,
				       set_up, tear_down);
}
