/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A server without memory: whichever allocation fails while the last rank
 * enters a barrier, nobody waits forever.
 */
#include "net.h"


#include "wrap-memory.h"

#define LAST 5 /* the rank whose server runs out of memory */

static struct {
	bool armed;
	uint32_t count; /* allocations so far */
	uint32_t fail;  /* the one that fails, from 1 */
} memory;

static bool is_refused(void)
{
	return memory.armed && ++memory.count == memory.fail;
}

static bool has_answer(struct net *n, uint32_t rank)
{
	const char *answer = net_read(n, rank);

	return answer && strstr(answer, "barrier_");
}

/* With the allocation of this number failing; false: there are not as many. */
static bool one_failure(uint32_t fail)
{
	static const char enter[] = "cmd=put kvsname=17.2 key=a value=b\n"
				    "cmd=barrier_in\n";
	struct net *n = net_create(NULL);

	for (uint32_t r = 0; r < NET_RANKS; r++)
		net_init1(n, r);
	for (uint32_t r = 0; r < LAST; r++)
		assert_null(net_pmi1(n, r, "cmd=barrier_in"));
	memory.count = 0;
	memory.fail = fail;
	memory.armed = true;
	net_input(n, LAST, enter, sizeof(enter) - 1);
	memory.armed = false;
	net_run(n);
	for (uint32_t r = 0; r < LAST; r++)
		if (!has_answer(n, r))
			fail_msg("allocation %u: rank %u waits", fail, r);
	unit_end(n);
	return memory.count >= fail;
}

TEST(nobody_waits_for_a_rank_that_could_not_enter)
{
	uint32_t fail = 1;

	while (one_failure(fail))
		fail++;
	assert_true(fail > 5); /* it did allocate */
}

/* As above, for a group, where nobody is told: they are let out, or the step ends. */
static bool one_failure_in_a_group(uint32_t fail)
{
	static const char enter[] = "cmd=put kvsname=17.2 key=a value=b\n"
				    "cmd=barrier_in group=0,2,1,5:3\n";
	struct net *n = net_create(NULL);

	for (uint32_t r = 0; r < NET_RANKS; r++)
		net_init1(n, r);
	for (uint32_t r = 0; r < 3; r++)
		assert_null(net_pmi1(n, r, "cmd=barrier_in group=0,2,1,5:3"));
	memory.count = 0;
	memory.fail = fail;
	memory.armed = true;
	net_input(n, LAST, enter, sizeof(enter) - 1);
	memory.armed = false;
	net_run(n);
	for (uint32_t r = 0; r < 3; r++)
		if (!has_answer(n, r) && !n->abort_code)
			fail_msg("allocation %u: rank %u waits", fail, r);
	unit_end(n);
	return memory.count >= fail;
}

TEST(nobody_waits_for_a_member_that_could_not_enter)
{
	uint32_t fail = 1;

	while (one_failure_in_a_group(fail))
		fail++;
	assert_true(fail > 5);
}
