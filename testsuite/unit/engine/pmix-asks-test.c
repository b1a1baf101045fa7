/* SPDX-License-Identifier: BSD-3-Clause */
/* PMIx clients that wait inside the program that serves them. */
#include "pmix-bed.h"

#include <errno.h>

static int say_asks(struct net *n, uint32_t number, const uint32_t *ranks, uint32_t count)
{
	struct pmix_msg m = {
		.type = PMIX_MSG_ASKS, .rank = PMIX_NO_RANK, .number = number,
	};
	struct buf b;
	int rc;

	buf_init(&b, BYTES_MAX);
	assert_int_equal(pmix_members_pack(&b, ranks, count), 0);
	m.data = b.data;
	m.len = b.len;
	rc = say(&n->nodes[1], &m);
	buf_free(&b);
	return rc;
}

static void expect_wait(struct net *n, const char *want)
{
	struct pmi_server *s = n->nodes[1].server;
	char text[PMI_WAIT_TEXT_MAX];

	assert_int_equal(pmi_server_waits(s), want[0] != 0);
	assert_false(pmi_server_expires(s));
	pmi_server_tell_wait(s, 60, text);
	assert_string_equal(text, want);
}

/* Node 1 has ranks 1, 2 and 4. */
PMIX_TEST(client_that_others_may_wait_for_is_named)
{
	static const uint32_t two[] = { 1, 4 }, one[] = { 2 };

	expect_wait(n, "");
	assert_int_equal(say_asks(n, 2, two, 2), 0);
	expect_wait(n, "PMIx on node n1: 60 s, clients may wait for rank 2: the last request of ranks 1, 4 has no answer");
	assert_int_equal(say_asks(n, 1, one, 1), 0);
	expect_wait(n, "PMIx on node n1: 60 s, clients may wait for ranks 1, 4: the last request of rank 2 has no answer");
	assert_int_equal(say_asks(n, 0, NULL, 0), 0);
	expect_wait(n, "");
}

/* All clients wait: for other nodes, or each client for another operation. */
PMIX_TEST(clients_that_all_wait_are_not_named)
{
	static const uint32_t all[] = { 1, 2, 4 };

	assert_int_equal(say_asks(n, 3, all, 3), 0);
	expect_wait(n, "");
}

PMIX_TEST(rank_that_has_left_pmix_is_not_waited_for)
{
	static const uint32_t two[] = { 1, 4 };

	assert_int_equal(say_asks(n, 2, two, 2), 0);
	assert_int_equal(say_rank(n, PMIX_MSG_FINALIZED, 2), 0);
	expect_wait(n, "");
}

PMIX_TEST(each_wait_is_counted_from_its_own_begin)
{
	static const uint32_t one[] = { 1 };
	struct pmi_server *s = n->nodes[1].server;
	uint64_t before = pmi_server_ended(s);

	assert_int_equal(say_asks(n, 1, one, 1), 0);
	assert_int_equal(say_asks(n, 1, one, 1), 0);
	assert_true(pmi_server_ended(s) > before + 1);
}

PMIX_TEST(invalid_list_of_clients_is_refused)
{
	static const uint32_t many[] = { 1, 2, 4, 5 }, foreign[] = { 0 };

	assert_int_equal(say_asks(n, 4, many, 4), -EPROTO);
	assert_int_equal(say_asks(n, 2, many, 1), -EPROTO);
	assert_int_equal(say_asks(n, 1, foreign, 1), 0);
	expect_wait(n, "");
}
