/* SPDX-License-Identifier: BSD-3-Clause */
/* How lent cores are divided. */
#include "unit.h"

#include "lend/core/shares.h"

static void assert_shares(uint32_t n, uint32_t cores, uint32_t threads, uint32_t lent,
			  const uint32_t *expected)
{
	struct share_rank ranks[8] = { { 0 } };

	for (uint32_t i = 0; i < n; i++)
		ranks[i] = (struct share_rank){ cores, threads, 0, 0 };
	shares_divide(ranks, n, lent);
	for (uint32_t i = 0; i < n; i++)
		assert_int_equal(ranks[i].share, expected[i]);
}

TEST(cores_that_would_help_nobody_are_not_taken)
{
	assert_shares(1, 8, 16, 7, (uint32_t[]){ 0 });
	assert_shares(1, 8, 16, 8, (uint32_t[]){ 8 });
	assert_shares(1, 8, 16, 20, (uint32_t[]){ 8 });
	assert_shares(1, 8, 8, 20, (uint32_t[]){ 0 });
	assert_shares(1, 8, 32, 2, (uint32_t[]){ 0 });
	assert_shares(1, 8, 32, 3, (uint32_t[]){ 3 });
	assert_shares(1, 8, 32, 10, (uint32_t[]){ 8 });
	assert_shares(1, 8, 32, 24, (uint32_t[]){ 24 });
}

TEST(ranks_take_turns)
{
	assert_shares(3, 1, 4, 3, (uint32_t[]){ 1, 1, 1 });
	assert_shares(3, 1, 4, 4, (uint32_t[]){ 1, 1, 1 });
	assert_shares(2, 1, 4, 4, (uint32_t[]){ 3, 1 });
	assert_shares(2, 8, 32, 7, (uint32_t[]){ 3, 3 });
}

TEST(rank_that_has_waited_least_comes_first)
{
	struct share_rank ranks[] = { { 8, 16, 30, 0 }, { 8, 16, 10, 0 }, { 8, 16, 20, 0 } };

	shares_divide(ranks, 3, 8);
	assert_int_equal(ranks[0].share, 0);
	assert_int_equal(ranks[1].share, 8);
	assert_int_equal(ranks[2].share, 0);
	shares_divide(ranks, 3, 17);
	assert_int_equal(ranks[0].share, 0);
	assert_int_equal(ranks[1].share, 8);
	assert_int_equal(ranks[2].share, 8);
}

TEST(no_more_is_shared_than_is_lent)
{
	struct share_rank ranks[8];
	uint32_t sum;

	for (unsigned seed = 1; seed < 2000; seed++) {
		uint32_t n, lent;

		srand(seed);
		n = 1 + (uint32_t)rand() % 8;
		lent = (uint32_t)rand() % 64;
		for (uint32_t i = 0; i < n; i++)
			ranks[i] = (struct share_rank){ (uint32_t)rand() % 9, (uint32_t)rand() % 40,
							(uint32_t)rand() % 4, 0 };
		shares_divide(ranks, n, lent);
		sum = 0;
		for (uint32_t i = 0; i < n; i++) {
			sum += ranks[i].share;
			assert_true(!ranks[i].share ||
				    ranks[i].cores + ranks[i].share <= ranks[i].threads);
		}
		assert_true(sum <= lent);
	}
}
