/* SPDX-License-Identifier: BSD-3-Clause */
/* How ranks that are PMIx clients end, and who serves them. */
#include "pmix-bed.h"

#include <errno.h>

/* ---- ends of ranks ---- */

PMIX_TEST(rank_that_exits_without_finalize_is_named)
{
	const struct pmi_exit end = { .status = 9 };
	struct pmix_msg m;

	enter_node(&n->nodes[0], 1, NULL, 0, 4);
	net_run(n);
	exit_of(n, 5, &end);
	assert_failed(&n->nodes[0], 1,
		      "rank 5 (node n2) exited by signal 9 (Killed) without finalizing PMIx");
	assert_non_null(strstr(n->report, "PMIx fence 0 failed: rank 5"));
	assert_int_equal(n->reports, 1);
	enter_node(&n->nodes[1], 2, NULL, 0, 4);
	assert_failed(&n->nodes[1], 2, "rank 5 (node n2)");
	assert_true(hear(&n->nodes[2], &m));
	assert_int_equal(m.type, PMIX_MSG_GONE);
	assert_int_equal(m.rank, 5);
	assert_int_equal(m.number, 1);
}

/* libpmix does not tell of a fence that waits for a rank of its own node. */
TEST(rank_that_failed_before_pmix_ends_the_step)
{
	const struct net_options o = { .ends = true };
	const struct pmi_exit end = { .status = 9 };
	struct net *n = net_create(&o);
	const struct net_node *node = &n->nodes[0];

	hello(&n->nodes[0]);
	exit_of(n, 3, &end);
	assert_int_equal(node->ends, 0); /* perhaps no rank uses PMIx */
	assert_int_equal(say_rank(n, PMIX_MSG_CONNECTED, 0), 0);
	assert_int_equal(node->ends, 1);
	assert_string_equal(node->end_why,
			    "rank 3 (node n0) exited by signal 9 (Killed) without starting PMI");
	unit_end(n);
	n = net_create(&o);
	hello(&n->nodes[0]);
	assert_int_equal(say_rank(n, PMIX_MSG_CONNECTED, 0), 0);
	exit_of(n, 3, NULL);
	assert_int_equal(n->nodes[0].ends, 0); /* nothing is known yet */
	unit_end(n);
	n = net_create(&o);
	hello(&n->nodes[0]);
	assert_int_equal(say_rank(n, PMIX_MSG_CONNECTED, 0), 0);
	exit_of(n, 3, &end);
	assert_int_equal(n->nodes[0].ends, 1);
}

/* Clients may wait for the rank, or do without it. */
NET_TEST(rank_that_exited_well_before_pmix_is_reported_as_waited_for)
{
	const struct pmi_exit end = { .status = 0 };
	char text[PMI_WAIT_TEXT_MAX];

	hello(&n->nodes[0]);
	exit_of(n, 3, &end);
	assert_false(pmi_server_waits(n->nodes[0].server));
	assert_int_equal(say_rank(n, PMIX_MSG_CONNECTED, 0), 0);
	assert_true(pmi_server_waits(n->nodes[0].server));
	pmi_server_tell_wait(n->nodes[0].server, 60, text);
	assert_string_equal(text, "PMIx on node n0: 60 s, clients may wait in a fence of all ranks: rank 3 (node n0) exited with exit code 0 without starting PMI");
	assert_int_equal(say_rank(n, PMIX_MSG_FINALIZED, 0), 0);
	assert_false(pmi_server_waits(n->nodes[0].server));
	assert_int_equal(n->reports, 0);
}

static void expect_wait(struct net *n, uint32_t node, const char *want)
{
	char text[PMI_WAIT_TEXT_MAX];

	assert_int_equal(pmi_server_waits(n->nodes[node].server), want[0] != 0);
	assert_false(pmi_server_expires(n->nodes[node].server));
	pmi_server_tell_wait(n->nodes[node].server, 60, text);
	assert_string_equal(text, want);
}

/* A rank that uses PMI may start PMIx, too, and its process may be one inside another. */
NET_TEST(ranks_that_have_not_started_pmix_are_named)
{
	for (uint32_t i = 0; i < NET_NODES; i++)
		hello(&n->nodes[i]);
	expect_wait(n, 1, "");
	assert_int_equal(say_rank(n, PMIX_MSG_CONNECTED, 1), 0);
	expect_wait(n, 1, "PMIx on node n1: 60 s, clients may wait: ranks 2, 4 have not started PMIx");
	net_init1(n, 2);
	expect_wait(n, 1, "PMIx on node n1: 60 s, clients may wait: ranks 2, 4 have not started PMIx");
	net_eof(n, 4);
	expect_wait(n, 1, "PMIx on node n1: 60 s, clients may wait: ranks 2, 4 have not started PMIx");
	assert_int_equal(say_rank(n, PMIX_MSG_CONNECTED, 4), 0);
	expect_wait(n, 1, "PMIx on node n1: 60 s, clients may wait: rank 2 has started PMI, not PMIx: all ranks of a step must use the same one");
	assert_int_equal(say_rank(n, PMIX_MSG_CONNECTED, 2), 0);
	expect_wait(n, 1, "");
	expect_wait(n, 0, "");
	assert_int_equal(n->reports, 0);
}

/* A wrapper runs a program of PMIx, and then one of MPICH, which does not find PMI_FD. */
PMIX_TEST(mpich_without_pmi_fd_after_a_pmix_program_is_reported)
{
	struct pmi_exit of_mpich = { .status = 15 << 8, .lacked_fd = true };
	struct pmi_exit other = { .status = 1 << 8, .lacked_fd = true };

	assert_int_equal(say_rank(n, PMIX_MSG_FINALIZED, 0), 0);
	assert_int_equal(say_rank(n, PMIX_MSG_FINALIZED, 3), 0);
	pmi_server_client_exit(n->nodes[0].server, 0, &other);
	assert_int_equal(n->reports, 0);
	pmi_server_client_exit(n->nodes[0].server, 1, &of_mpich);
	assert_int_equal(n->reports, 1);
	assert_non_null(strstr(n->report, "rank 3 (node n0) exited with exit code 15 after finalizing PMIx: an MPICH program fails so"));
}

PMIX_TEST(a_goodbye_is_no_death)
{
	fence(n, 1, 4);
	assert_true(pmi_server_client_end_matters(n->nodes[2].server, 0));
	assert_int_equal(say_rank(n, PMIX_MSG_FINALIZED, 5), 0);
	assert_false(pmi_server_client_end_matters(n->nodes[2].server, 0));
	exit_of(n, 5, NULL);
	for (uint32_t i = 0; i < NET_NODES; i++)
		assert_silence(&n->nodes[i]);
	assert_int_equal(n->reports, 0);
	enter_node(&n->nodes[0], 2, NULL, 0, 4);
	assert_failed(&n->nodes[0], 2, "exited after finalizing PMIx");
}

PMIX_TEST(a_rank_may_start_over)
{
	for (uint32_t r = 0; r < NET_RANKS; r++) {
		assert_int_equal(say_rank(n, PMIX_MSG_FINALIZED, r), 0);
		assert_int_equal(say_rank(n, PMIX_MSG_CONNECTED, r), 0);
	}
	fence(n, 1, 4);
}

PMIX_TEST(pmi_fd_need_not_stay_open)
{
	for (uint32_t r = 0; r < NET_RANKS; r++)
		net_eof(n, r);
	fence(n, 1, 4);
}

/* A step whose nodes serve PMIx, and whose ranks use nothing yet. */
static struct net *offer(void)
{
	struct net *n = net_create(NULL);

	for (uint32_t i = 0; i < NET_NODES; i++)
		hello(&n->nodes[i]);
	return n;
}

static void connect_all(struct net *n)
{
	for (uint32_t r = 0; r < NET_RANKS; r++)
		assert_int_equal(say_rank(n, PMIX_MSG_CONNECTED, r), 0);
}

static void assert_fence_passes(struct net *n, uint64_t id)
{
	fence(n, id, 4);
	assert_int_equal(n->reports, 0);
}

TEST_ON(rank_without_pmi_fd_starts_pmix_later, struct net *n, offer())
{
	for (uint32_t r = 0; r < NET_RANKS; r++) {
		net_hang_up(n, r);
		assert_int_equal(say_rank(n, PMIX_MSG_CONNECTED, r), 0);
	}
	assert_false(pmi_server_waits(n->nodes[0].server));
	assert_fence_passes(n, 1);
}

/* MPICH shuts PMI_FD down when it finalizes. */
TEST_ON(finalized_pmi_program_is_followed_by_one_of_pmix, struct net *n, offer())
{
	for (uint32_t r = 0; r < NET_RANKS; r++) {
		net_init1(n, r);
		net_pmi1(n, r, "cmd=finalize");
		net_eof(n, r);
	}
	net_run(n);
	connect_all(n);
	assert_fence_passes(n, 1);
}

PMIX_TEST(end_of_pmi_fd_fails_no_pending_work_of_pmix)
{
	static const uint32_t some[] = { 2, 5 };

	enter_node(&n->nodes[0], 1, NULL, 0, 4);
	enter_node(&n->nodes[2], 1, NULL, 0, 4);
	enter_node(&n->nodes[2], 2, some, 2, 4);
	for (uint32_t r = 0; r < NET_RANKS; r++)
		net_eof(n, r);
	net_run(n);
	enter_node(&n->nodes[1], 1, NULL, 0, 4);
	enter_node(&n->nodes[1], 2, some, 2, 4);
	net_run(n);
	assert_ended(&n->nodes[0], 1, givers, 5, 4);
	assert_ended(&n->nodes[1], 1, givers, 5, 4);
	assert_ended(&n->nodes[1], 2, some, 2, 4);
	assert_ended(&n->nodes[2], 1, givers, 5, 4);
	assert_ended(&n->nodes[2], 2, some, 2, 4);
}

PMIX_TEST(end_of_pmi_fd_drops_no_fetch_of_pmix)
{
	const struct pmix_msg want = {
		.type = PMIX_MSG_FETCH, .id = 4, .rank = 5, .number = 1000,
	};
	struct pmix_msg m;

	ready(n);
	assert_int_equal(say(&n->nodes[0], &want), 0);
	net_run(n);
	net_hang_up(n, 5);
	assert_silence(&n->nodes[0]);
	exit_of(n, 5, &(struct pmi_exit){ .status = 9 });
	assert_true(hear(&n->nodes[0], &m));
	assert_int_equal(m.type, PMIX_MSG_FETCHED);
	assert_int_equal(m.status, -ECONNRESET);
}

PMIX_TEST(end_of_pmi_fd_fails_fences_of_pmi_at_once)
{
	net_init1(n, 0);
	assert_null(net_pmi1(n, 0, "cmd=barrier_in"));
	net_hang_up(n, 5);
	assert_non_null(strstr(net_read(n, 0),
			       "rank_5_(node_n2)_closed_PMI_FD_without_starting_PMI"));
}

PMIX_TEST(broken_pmi_message_ends_no_pmix)
{
	net_pmi1(n, 5, "GET / HTTP/1.0");
	assert_true(n->ranks[5].closed);
	assert_fence_passes(n, 1);
	exit_of(n, 5, &(struct pmi_exit){ .status = 9 });
	enter_node(&n->nodes[0], 2, NULL, 0, 4);
	assert_failed(&n->nodes[0], 2,
		      "rank 5 (node n2) exited by signal 9 (Killed) without finalizing PMIx");
}

/* Both ends are told once each, and only the second one is the rank's. */
TEST_ON(process_that_closed_pmi_fd_fails_pmix_when_it_ends, struct net *n, offer())
{
	net_hang_up(n, 5);
	for (uint32_t r = 0; r < NET_RANKS - 1; r++)
		assert_int_equal(say_rank(n, PMIX_MSG_CONNECTED, r), 0);
	enter_node(&n->nodes[0], 1, NULL, 0, 4);
	net_run(n);
	assert_silence(&n->nodes[0]);
	exit_of(n, 5, &(struct pmi_exit){ .status = 0 });
	exit_of(n, 5, NULL);
	assert_failed(&n->nodes[0], 1,
		      "rank 5 (node n2) exited with exit code 0 without starting PMI");
}

PMIX_TEST(the_goodbye_of_one_protocol_is_not_that_of_the_other)
{
	net_init1(n, 5);
	net_pmi1(n, 5, "cmd=finalize");
	assert_true(pmi_server_client_end_matters(n->nodes[2].server, 0));
	enter_node(&n->nodes[0], 1, NULL, 0, 4);
	exit_of(n, 5, NULL);
	assert_failed(&n->nodes[0], 1, "without finalizing PMIx");
}

PMIX_TEST(an_abort_names_the_rank)
{
	const struct pmix_msg m = {
		.type = PMIX_MSG_ABORT, .id = 17, .rank = 4, .status = 7,
		.text = "no\nway", .text_len = 6,
	};
	struct pmix_msg answer;

	assert_int_equal(say(&n->nodes[1], &m), 0);
	assert_int_equal(n->abort_code, 7);
	assert_string_equal(n->abort_text, "4 no?way");
	assert_true(hear(&n->nodes[1], &answer));
	assert_int_equal(answer.type, PMIX_MSG_ABORTED);
	assert_int_equal(answer.id, 17);
}

/* Open MPI gives this text with every abort. */
PMIX_TEST(abort_text_that_says_nothing_is_left_out)
{
	const struct pmix_msg m = {
		.type = PMIX_MSG_ABORT, .id = 17, .rank = 4, .status = 7,
		.text = "N/A", .text_len = 3,
	};

	assert_int_equal(say(&n->nodes[1], &m), 0);
	assert_int_equal(n->abort_code, 7);
	assert_string_equal(n->abort_text, "4 ");
}

/* ---- ends of who serves them ---- */

PMIX_TEST(its_death_fails_fences_everywhere)
{
	static const uint32_t some[] = { 0, 2 };

	enter_node(&n->nodes[0], 1, NULL, 0, 4);
	enter_node(&n->nodes[0], 2, some, 2, 4);
	enter_node(&n->nodes[1], 1, NULL, 0, 4);
	net_run(n);
	pmi_server_pmix_lost(n->nodes[1].server, "PMIx server of node n1 died");
	pmi_server_pmix_lost(n->nodes[1].server, "PMIx server of node n1 died");
	net_run(n);
	assert_failed(&n->nodes[0], 1, "PMIx server of node n1 died");
	assert_failed(&n->nodes[0], 2, "PMIx server of node n1 died");
	enter_node(&n->nodes[2], 5, NULL, 0, 4);
	assert_failed(&n->nodes[2], 5, "PMIx server of node n1 died");
	assert_silence(&n->nodes[1]);
	assert_non_null(strstr(n->report, "PMIx server of node n1 died"));
}

PMIX_TEST(its_end_after_the_ranks_is_none)
{
	for (uint32_t r = 0; r < NET_RANKS; r++)
		assert_int_equal(say_rank(n, PMIX_MSG_FINALIZED, r), 0);
	pmi_server_client_exit(n->nodes[2].server, 0, NULL);
	pmi_server_pmix_lost(n->nodes[2].server, "PMIx server of node n2 died");
	net_run(n);
	assert_int_equal(n->reports, 0);
	enter_node(&n->nodes[0], 1, NULL, 0, 4);
	assert_failed(&n->nodes[0], 1, "rank 5 (node n2) exited after");
}

NET_TEST(pmixd_without_clients_is_not_missed)
{
	pmi_server_use_pmix(n->nodes[0].server, 1000, 100, 60000);
	pmi_server_pmix_lost(n->nodes[0].server, "PMIx server of node n0 died");
	net_run(n);
	assert_int_equal(n->reports, 0);
	for (uint32_t r = 0; r < NET_RANKS; r++)
		net_init1(n, r);
}

/* A step of which node n2 has no libpmix; the first node's ranks are in a fence. */
static struct net *miss_pmix_at_n2(void)
{
	struct net *n = net_create(NULL);

	hello(&n->nodes[0]);
	hello(&n->nodes[1]);
	pmi_server_no_pmix(n->nodes[2].server, "node n2 has no libpmix");
	for (uint32_t r = 0; r < 3; r++)
		assert_int_equal(say_rank(n, PMIX_MSG_CONNECTED, r), 0);
	enter_node(&n->nodes[0], 1, NULL, 0, 4);
	net_run(n);
	return n;
}

TEST_ON(a_node_that_never_serves_is_named, struct net *n, miss_pmix_at_n2())
{
	assert_silence(&n->nodes[0]);
	pmi_server_link_up(n->nodes[2].server, 0);
	net_run(n);
	assert_failed(&n->nodes[0], 1, "node n2 has no libpmix");
	enter_node(&n->nodes[1], 2, NULL, 0, 4);
	assert_failed(&n->nodes[1], 2, "node n2 has no libpmix");
	assert_string_equal(n->report, "PMIx fence 0 failed: node n2 has no libpmix");
}

/* A rank that does not find it may end at once. */
TEST_ON(a_node_that_never_serves_is_named_before_its_ranks, struct net *n, miss_pmix_at_n2())
{
	exit_of(n, 5, &(struct pmi_exit){ .status = 256 });
	assert_failed(&n->nodes[0], 1, "node n2 has no libpmix");
}

TEST_ON(ranks_with_pmi_are_not_waited_for_in_pmix, struct net *n, miss_pmix_at_n2())
{
	net_init1(n, 5);
	pmi_server_link_up(n->nodes[2].server, 0);
	net_run(n);
	assert_silence(&n->nodes[0]);
	assert_int_equal(n->reports, 0);
}

NET_TEST(reason_of_a_pmixd_that_cannot_serve_is_reported)
{
	const struct pmix_msg m = {
		.type = PMIX_MSG_REFUSED, .rank = PMIX_NO_RANK,
		.text = "no libpmix", .text_len = 10,
	};

	for (uint32_t i = 0; i < NET_NODES; i++)
		hello(&n->nodes[i]);
	enter_node(&n->nodes[0], 1, NULL, 0, 4);
	assert_int_equal(say(&n->nodes[2], &m), 0);
	net_run(n);
	assert_int_equal(n->reports, 2); /* this report, and the fence that fails by it */
	assert_non_null(strstr(n->report, "node n2 cannot serve PMIx: no libpmix"));
	assert_failed(&n->nodes[0], 1, "node n2 cannot serve PMIx: no libpmix");
}

TEST(answers_wait_for_the_end_of_the_step)
{
	const struct net_options o = { .ends = true };
	struct net *n = serve(&o);
	struct pmix_msg m;

	enter_node(&n->nodes[0], 1, NULL, 0, 4);
	exit_of(n, 5, NULL);
	assert_int_equal(n->nodes[0].ends, 1);
	assert_non_null(strstr(n->nodes[0].end_why, "PMIx fence 0 failed: rank 5"));
	assert_silence(&n->nodes[0]);
	assert_true(hear(&n->nodes[2], &m));
	assert_int_equal(m.type, PMIX_MSG_GONE);
	assert_int_equal(m.number, 0); /* nobody need be told */
	pmi_server_answer_failed(n->nodes[0].server);
	assert_failed(&n->nodes[0], 1, "rank 5");
}
