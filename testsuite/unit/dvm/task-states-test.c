/* SPDX-License-Identifier: BSD-3-Clause */
/* States of a task of the head: which moves are legal. */
#include "unit.h"

#include "dvm/core/head_private.h"

static bool *with_move(bool seen[TASK_STATES], enum task_state from)
{
	for (enum task_state to = 0; to < TASK_STATES; to++)
		if (task_may_move(from, to) && !seen[to]) {
			seen[to] = true;
			with_move(seen, to);
		}
	return seen;
}

TEST(ended_task_stays_ended)
{
	for (enum task_state to = 0; to < TASK_STATES; to++)
		assert_false(task_may_move(TASK_ENDED, to));
}

TEST(each_other_state_can_end_and_run)
{
	for (enum task_state from = 0; from < TASK_ENDED; from++) {
		bool seen[TASK_STATES] = { false };

		assert_true(task_may_move(from, TASK_ENDED));
		assert_true(with_move(seen, from)[TASK_LAUNCHED]);
		assert_false(task_may_move(from, from));
	}
}

TEST(held_task_starts_only_from_the_queue)
{
	assert_false(task_may_move(TASK_HELD, TASK_PLACED));
	assert_false(task_may_move(TASK_HELD, TASK_LAUNCHED));
	assert_true(task_may_move(TASK_HELD, TASK_QUEUED));
}

TEST(launched_task_is_not_placed_again_without_the_queue)
{
	assert_false(task_may_move(TASK_LAUNCHED, TASK_PLACED));
	assert_true(task_may_move(TASK_LAUNCHED, TASK_QUEUED));
	assert_true(task_may_move(TASK_QUEUED, TASK_PLACED));
}
