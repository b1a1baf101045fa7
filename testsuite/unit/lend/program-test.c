/* SPDX-License-Identifier: BSD-3-Clause */
/* Programs with and without lending: the computed rows of doc/lend.md. */
#include "unit.h"

#include <stdio.h>

#include "program-sim.h"

/* Against the same work divided evenly, without lending. */
static double ratio(const struct sim_program *p, uint32_t factor)
{
	struct sim_program even = *p, lends = *p;
	double got;

	even.factor = 1;
	even.lends = false;
	for (uint32_t r = 0; r < p->ranks; r++)
		even.load[r] = 1.0;
	lends.factor = factor;
	lends.lends = factor > 1;
	got = sim_run(&lends) / sim_run(&even);
	if (getenv("LEND_VERBOSE"))
		printf("factor %u: %.3f\n", factor, got);
	return got;
}

static struct sim_program program(uint32_t ranks, uint32_t each, uint32_t regions)
{
	return (struct sim_program){ .ranks = ranks, .each = each, .regions = regions,
				     .meetings = 10, .region_us = 2000 };
}

TEST(two_ranks_of_8_cores_share_the_work_of_the_slower)
{
	struct sim_program p = program(2, 8, 8);

	p.load[0] = 1.5;
	p.load[1] = 0.5;
	assert_true(ratio(&p, 1) > 1.49);
	assert_true(ratio(&p, 2) < 1.05);
}

TEST(eight_ranks_of_8_cores_come_closer_to_even_work)
{
	struct sim_program p = program(8, 8, 40);

	for (uint32_t r = 0; r < p.ranks; r++)
		p.load[r] = 0.5 + r / 7.0;
	assert_true(ratio(&p, 1) > 1.49);
	assert_true(ratio(&p, 2) < 1.25);
	assert_true(ratio(&p, 4) < 1.15);
}

/* The ledger learns at the first meeting which ranks are late. */
TEST(first_part_of_a_program_is_faster_than_without_lending)
{
	struct sim_program p = program(8, 8, 40);

	p.meetings = 1;
	for (uint32_t r = 0; r < p.ranks; r++)
		p.load[r] = 0.5 + r / 7.0;
	assert_true(ratio(&p, 2) < 1.5);
	for (uint32_t r = 0; r < p.ranks; r++)
		p.load[r] = 1.5 - r / 7.0;
	assert_true(ratio(&p, 2) < 1.5);
}

TEST(balanced_ranks_lose_little)
{
	struct sim_program p = program(8, 8, 1);

	p.meetings = 300;
	p.region_us = 2000.0 / 3;
	p.jitter = 0.02;
	for (uint32_t r = 0; r < p.ranks; r++)
		p.load[r] = 1.0;
	assert_true(ratio(&p, 2) < 1.02);
}

TEST(two_ranks_of_1_core_share_the_work_of_the_slower)
{
	struct sim_program p = program(2, 1, 8);

	p.load[0] = 1.5;
	p.load[1] = 0.5;
	assert_true(ratio(&p, 2) < 1.15);
}
