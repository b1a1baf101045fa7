/* SPDX-License-Identifier: BSD-3-Clause */
/* How a rank has ended is known later than that it has. */
#include "unit.h"

#include <limits.h>
#include <sys/wait.h>

#include "cluster.h"

/* Rank 0 goes without finalizing; another one is to hear why. */
static void lose_rank_0(struct cluster *c, unsigned exits_after)
{
	c->exits = true;
	c->exits_after = exits_after;
	c->exit.status = W_EXITCODE(5, 0);
	cluster_start_all(c);
	cluster_init_all(c);
	for (uint32_t i = 1; i < 3; i++)
		rank_say(c, i, "cmd=barrier_in");
	rank_close(c, 0);
}

static void expect_reason(struct cluster *c, const char *part)
{
	for (uint32_t i = 1; i < 3; i++)
		rank_expect(c, i, part);
}

CLUSTER_TEST(a_reason_has_the_exit_code_that_is_known_a_little_later, 3)
{
	lose_rank_0(c, 3);
	expect_reason(c, "rank_0_(node_n0)_exited_with_exit_code_5_without_"
			  "finalizing_PMI");
}

CLUSTER_TEST(a_node_that_leaves_says_how_its_rank_has_ended, 3)
{
	lose_rank_0(c, 3);
	cluster_stop(c, 0);
	expect_reason(c, "rank_0_(node_n0)_exited_with_exit_code_5_without_"
			  "finalizing_PMI");
}

CLUSTER_TEST(process_that_closed_its_connection_is_not_waited_for, 3)
{
	lose_rank_0(c, UINT_MAX);
	expect_reason(c, "rank_0_(node_n0)_closed_PMI_FD_without_"
			  "finalizing_PMI");
}
