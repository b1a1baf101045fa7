/* SPDX-License-Identifier: BSD-3-Clause */
/* PMIx programs of a rank that follow one another, and those that were killed. */
#include "pmix-bed.h"


#define LEFT "the PMIx program of rank 5 (node n2) has ended without PMIx_Finalize"

static void connect_again(struct net *n, uint32_t first)
{
	for (uint32_t r = first; r < NET_RANKS; r++)
		assert_int_equal(say_rank(n, PMIX_MSG_CONNECTED, r), 0);
}

TEST(killed_program_fails_the_fence_that_others_wait_in)
{
	const struct net_options o = { .ends = true };
	struct net *n = serve(&o);

	enter_node(&n->nodes[0], 1, NULL, 0, 4);
	net_run(n);
	assert_silence(&n->nodes[0]);
	assert_int_equal(say_rank(n, PMIX_MSG_LOST, 5), 0);
	net_run(n);
	assert_failed(&n->nodes[0], 1, LEFT);
	enter_node(&n->nodes[1], 1, NULL, 0, 4);
	assert_failed(&n->nodes[1], 1, LEFT);
	assert_string_equal(n->report, "PMIx fence failed: " LEFT);
	for (uint32_t i = 0; i < NET_NODES; i++)
		assert_int_equal(n->nodes[i].ends, 0);
	connect_again(n, 0);
	fence(n, 2, 4);
}

/* The rank starts its next program before the end of the one before is reported. */
PMIX_TEST(next_program_of_a_killed_one_meets_its_own_kind_only)
{
	enter_node(&n->nodes[0], 1, NULL, 0, 4);
	enter_node(&n->nodes[1], 1, NULL, 0, 4);
	net_run(n);
	connect_again(n, 5);
	enter_node(&n->nodes[2], 1, NULL, 0, 4);
	net_run(n);
	assert_failed(&n->nodes[0], 1, LEFT);
	assert_failed(&n->nodes[1], 1, LEFT);
	assert_silence(&n->nodes[2]);
	for (uint32_t r = 0; r < 5; r++) {
		assert_int_equal(say_rank(n, PMIX_MSG_FINALIZED, r), 0);
		assert_int_equal(say_rank(n, PMIX_MSG_CONNECTED, r), 0);
	}
	enter_node(&n->nodes[0], 2, NULL, 0, 4);
	enter_node(&n->nodes[1], 2, NULL, 0, 4);
	net_run(n);
	assert_ended(&n->nodes[2], 1, givers, 5, 4);
}

/* pmi2x-pmixd has refused the fence, and the program finalized all the same. */
PMIX_TEST(program_that_missed_a_fence_is_counted)
{
	assert_int_equal(say_rank(n, PMIX_MSG_FINALIZED, 0), 0);
	assert_int_equal(say(&n->nodes[0], &(struct pmix_msg){
				 .type = PMIX_MSG_CONNECTED, .rank = 0, .number = 1 }), 0);
	connect_again(n, 1);
	fence(n, 1, 4);
}

PMIX_TEST(different_programs_on_a_node_enter_nothing_together)
{
	enter_node(&n->nodes[1], 1, NULL, 0, 4);
	net_run(n);
	assert_int_equal(say_rank(n, PMIX_MSG_CONNECTED, 3), 0);
	net_run(n);
	assert_failed(&n->nodes[1], 1, "the PMIx program of rank 3 (node n0) has ended");
	enter_node(&n->nodes[0], 1, NULL, 0, 4);
	assert_failed(&n->nodes[0], 1,
		      "ranks 0 and 3 (node n0) run different PMIx programs");
	for (uint32_t r = 1; r < NET_RANKS; r++)
		if (r != 3)
			assert_int_equal(say_rank(n, PMIX_MSG_CONNECTED, r), 0);
	assert_int_equal(say_rank(n, PMIX_MSG_CONNECTED, 0), 0);
	fence(n, 2, 4);
}

PMIX_TEST(killed_member_of_a_subset_is_missed)
{
	static const uint32_t members[] = { 0, 3, 5 };

	enter_node(&n->nodes[0], 1, members, 3, 4);
	net_run(n);
	assert_int_equal(say_rank(n, PMIX_MSG_LOST, 5), 0);
	net_run(n);
	assert_failed(&n->nodes[0], 1, LEFT);
	connect_again(n, 0);
	enter_node(&n->nodes[0], 2, members, 3, 4);
	enter_node(&n->nodes[2], 2, members, 3, 4);
	net_run(n);
	assert_ended(&n->nodes[0], 2, members, 3, 4);
	assert_ended(&n->nodes[2], 2, members, 3, 4);
}

/* libpmix does not say that the other rank's program waits for it. */
static void assert_missed_rank_is_named(bool fences)
{
	const struct pmi_exit end = { .status = 0 };
	struct net *n = serve(NULL);
	char text[PMI_WAIT_TEXT_MAX];

	if (fences) {
		fence(n, 1, 4);
	}
	for (uint32_t r = 0; r < 4; r += 3)
		assert_int_equal(say_rank(n, PMIX_MSG_FINALIZED, r), 0);
	exit_of(n, 3, &end);
	assert_false(pmi_server_waits(n->nodes[0].server));
	assert_int_equal(say_rank(n, PMIX_MSG_CONNECTED, 0), 0);
	assert_true(pmi_server_waits(n->nodes[0].server));
	pmi_server_tell_wait(n->nodes[0].server, 60, text);
	assert_non_null(strstr(text, "may wait in a fence of all ranks: rank 3 (node n0) exited"));
	unit_end(n);
}

TEST(rank_that_ended_before_the_program_of_others_is_named)
{
	assert_missed_rank_is_named(true);
	assert_missed_rank_is_named(false); /* libpmix has ended the fence of this node */
}

PMIX_TEST(end_of_no_session_is_ignored)
{
	assert_int_equal(say_rank(n, PMIX_MSG_FINALIZED, 5), 0);
	assert_int_equal(say_rank(n, PMIX_MSG_LOST, 5), 0);
	fence(n, 1, 4);
}
