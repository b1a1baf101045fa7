/* SPDX-License-Identifier: BSD-3-Clause */
/* A step that is ended when a collective fails, before each rank says so. */
#include "net.h"

#include <string.h>
#include <sys/wait.h>

#define REASON "rank 3 (node n0) exited with exit code 5 without starting PMI"
#define REASON1 "rank_3_(node_n0)_exited_with_exit_code_5_without_starting_PMI"

static const struct pmi_exit CODE_5 = { .status = W_EXITCODE(5, 0) };

static struct net *create(void)
{
	const struct net_options ending = { .ends = true };

	return net_create(&ending);
}

#define END_TEST(name) TEST_ON(name, struct net *n, create())

static void lose_rank_3(struct net *n)
{
	pmi_server_client_exit(n->nodes[0].server, net_slot_of(n, 3), &CODE_5);
	net_run(n);
}

/* All but rank 3 are in a fence: rank 0 by PMI-1, the others by PMI-2. */
static void fence_without_rank_3(struct net *n)
{
	net_init1(n, 0);
	assert_null(net_pmi1(n, 0, "cmd=barrier_in"));
	for (uint32_t r = 1; r < NET_RANKS; r++)
		if (r != 3) {
			net_init2(n, r);
			assert_null(net_pmi2(n, r, "cmd=kvs-fence;"));
		}
}

static void assert_ended_once(struct net *n)
{
	for (uint32_t i = 0; i < NET_NODES; i++) {
		assert_int_equal(n->nodes[i].ends, 1);
		assert_int_equal(n->nodes[i].end_code, 5);
		assert_string_equal(n->nodes[i].end_why,
				    "fence 0 failed: " REASON);
	}
	assert_int_equal(n->reports, 0); /* the end says why */
}

static void assert_nobody_is_answered(struct net *n)
{
	for (uint32_t r = 0; r < NET_RANKS; r++)
		if (r != 3)
			assert_null(net_read(n, r));
}

END_TEST(no_rank_hears_of_the_failure_that_ends_the_step)
{
	fence_without_rank_3(n);
	lose_rank_3(n);
	assert_ended_once(n);
	assert_nobody_is_answered(n);
}

END_TEST(later_requests_get_no_failure_before_the_step_ends)
{
	fence_without_rank_3(n);
	lose_rank_3(n);
	assert_null(net_pmi2(n, 4, "cmd=ring;ring-count=1;ring-left=a;"
				   "ring-right=b;"));
	assert_ended_once(n);
}

/* The end may be harmless, if the program goes on without the rank. */
END_TEST(the_end_of_a_rank_ends_no_step)
{
	for (uint32_t r = 0; r < NET_RANKS; r++)
		if (r != 3)
			net_init2(n, r);
	lose_rank_3(n);
	for (uint32_t i = 0; i < NET_NODES; i++)
		assert_int_equal(n->nodes[i].ends, 0);
	assert_non_null(strstr(net_pmi2(n, 4, "cmd=kvs-put;key=k;value=v;"),
			       "rc=0;"));
	assert_non_null(strstr(net_pmi2(n, 4, "cmd=finalize;"), "rc=0;"));
}

static void answer_all(struct net *n)
{
	for (uint32_t i = 0; i < NET_NODES; i++)
		pmi_server_answer_failed(n->nodes[i].server);
	net_run(n);
}

/* Each is told what has failed for it, once; what fails later is told at once. */
END_TEST(a_step_that_does_not_end_tells_its_ranks)
{
	fence_without_rank_3(n);
	lose_rank_3(n);
	answer_all(n);
	assert_string_equal(net_read(n, 0),
			    "cmd=barrier_failed rc=14 info=fail "
			    "msg=fence_0_failed:_" REASON1);
	for (uint32_t r = 1; r < NET_RANKS; r++)
		if (r != 3)
			assert_non_null(strstr(net_read(n, r), REASON));
	assert_nobody_is_answered(n);
	assert_non_null(strstr(net_pmi2(n, 4, "cmd=kvs-fence;"),
			       "fence 1 failed: " REASON));
	answer_all(n);
	assert_nobody_is_answered(n);
	assert_ended_once(n);
}

/* A rank that is killed meanwhile takes what it waits for with it. */
END_TEST(killed_ranks_get_no_answer)
{
	const struct pmi_exit killed = { .status = 9, .by_launcher = true };

	fence_without_rank_3(n);
	lose_rank_3(n);
	for (uint32_t r = 0; r < NET_RANKS; r++)
		if (r != 3)
			pmi_server_client_exit(net_node_of(n, r)->server,
					       net_slot_of(n, r), &killed);
	net_run(n);
	answer_all(n);
	assert_nobody_is_answered(n);
	assert_ended_once(n);
}

/* Without an end of the step: whose end makes it one that has failed? */
static int gave_ups(bool finalizes, const struct pmi_exit *end)
{
	struct net *n = net_create(NULL);
	int count;

	fence_without_rank_3(n);
	lose_rank_3(n);
	assert_int_equal(n->reports, 1);
	net_forget(n);
	for (uint32_t r = 1; r < NET_RANKS; r++) {
		struct pmi_server *s = net_node_of(n, r)->server;

		if (r == 3)
			continue;
		if (finalizes)
			net_pmi2(n, r, "cmd=finalize;");
		assert_true(pmi_server_client_end_matters(s, net_slot_of(n, r)));
		pmi_server_client_exit(s, net_slot_of(n, r), end);
	}
	net_run(n);
	count = n->gave_ups;
	unit_end(n);
	return count;
}

/* Ranks of nodes 1 and 2 end: that is said once by each. */
TEST(srun_learns_whether_a_failure_was_survived)
{
	const struct pmi_exit well = { .status = 0 };

	assert_int_equal(gave_ups(true, &well), 0);
	assert_int_equal(gave_ups(false, &well), 0);
	assert_int_equal(gave_ups(true, NULL), 0);
	assert_int_equal(gave_ups(true, &CODE_5), 2);
	assert_int_equal(gave_ups(false, &CODE_5), 2);
	assert_int_equal(gave_ups(false, NULL), 2);
}
