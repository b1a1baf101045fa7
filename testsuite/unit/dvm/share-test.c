/* SPDX-License-Identifier: BSD-3-Clause */
/* Tasks that are shared out to several DVMs. */
#include "unit.h"

#include "dvm/core/share.h"

#define MEMBERS 3

static struct share_member members[MEMBERS];

static int set_up(void **state)
{
	for (int i = 0; i < MEMBERS; i++)
		members[i] = (struct share_member){ .up = true, .slots = 8, .nodes = 1 };
	return 0;
}

static struct share_task task(double slots, double seconds)
{
	return (struct share_task){ slots, seconds, 0, SHARE_ANY };
}

static void share(const struct share_task *tasks, size_t count, size_t *to)
{
	assert_int_equal(share_out(members, MEMBERS, tasks, count, to), 0);
}

/* In the order given, the last task would find three members that are equally busy. */
TEST_WITH(largest_task_has_a_member_of_its_own, set_up, NULL)
{
	const struct share_task tasks[] = {
		task(1, 100), task(1, 100), task(1, 100), task(1, 100), task(4, 100),
	};
	size_t to[5];

	share(tasks, 5, to);
	for (int i = 0; i < 4; i++)
		assert_int_not_equal(to[i], to[4]);
}

TEST_WITH(time_counts_as_much_as_slots, set_up, NULL)
{
	const struct share_task tasks[] = { task(1, 800), task(8, 100), task(2, 400) };
	size_t to[3];

	share(tasks, 3, to);
	for (int i = 0; i < MEMBERS; i++)
		assert_true(members[i].work > 799 && members[i].work < 801);
}

TEST_WITH(task_without_time_counts_like_the_mean, set_up, NULL)
{
	const struct share_task tasks[] = { task(1, 100), task(1, 300), task(1, 0) };
	size_t to[3];

	assert_true(share_mean(tasks, 3) > 199 && share_mean(tasks, 3) < 201);
	share(tasks, 3, to);
	assert_true(members[to[2]].work > 199 && members[to[2]].work < 201);
}

TEST_WITH(task_goes_where_it_fits, set_up, NULL)
{
	const struct share_task tasks[] = {
		task(12, 10), { 2, 10, 4, SHARE_ANY }, { 1, 10, 0, 0 }, task(99, 10),
	};
	size_t to[4];

	members[1].slots = 16;
	members[2].nodes = 4;
	share(tasks, 4, to);
	assert_int_equal(to[0], 1);
	assert_int_equal(to[1], 2);
	assert_int_equal(to[2], 0); /* where it must */
	assert_int_equal(to[3], 1); /* which refuses it */
}

TEST_WITH(member_that_is_down_gets_nothing, set_up, NULL)
{
	const struct share_task tasks[] = { task(1, 1), task(1, 1), task(1, 1) };
	size_t to[3];

	members[0].up = members[2].up = false;
	share(tasks, 3, to);
	for (int i = 0; i < 3; i++)
		assert_int_equal(to[i], 1);
	members[1].up = false;
	share(tasks, 3, to);
	assert_int_equal(to[0], MEMBERS);
}
