/* SPDX-License-Identifier: BSD-3-Clause */
/* A process that starts PMI or PMIx while another process of the rank may use the other. */
#include "pmix-bed.h"

#include <errno.h>

#define INIT "cmd=init pmi_version=1 pmi_subversion=1"

static const char sockets[2 * PMIX_SOCKET_BYTES];

/* Rank 0's next message is of this process. */
static const char *say_as(struct net *n, uint32_t pid, const char *line)
{
	pmi_server_client_writes(n->nodes[0].server, 0, pid);
	return net_pmi1(n, 0, line);
}

/* Rank 0's client asks to be let in; `refused`: libpmix has another one. */
static void ask(struct net *n, bool refused)
{
	const struct pmix_msg m = {
		.type = PMIX_MSG_ADMIT, .id = 7, .rank = 0, .number = refused,
		.data = sockets, .len = PMIX_SOCKET_BYTES * (refused ? 2 : 1),
	};

	assert_int_equal(say(&n->nodes[0], &m), 0);
}

static void connect_client(struct net *n)
{
	const struct pmix_msg m = {
		.type = PMIX_MSG_CONNECTED, .rank = 0, .data = sockets,
		.len = PMIX_SOCKET_BYTES,
	};

	assert_int_equal(say(&n->nodes[0], &m), 0);
}

static void assert_admitted(struct net *n, int status)
{
	struct pmix_msg m;

	assert_true(hear(&n->nodes[0], &m));
	assert_int_equal(m.type, PMIX_MSG_ADMITTED);
	assert_int_equal(m.id, 7);
	assert_int_equal(m.status, status);
}

/* The program that serves PMIx is there, and process 100 of rank 0 uses PMI. */
static struct net *use_pmi(void)
{
	struct net *n = net_create(NULL);

	hello(&n->nodes[0]);
	assert_false(n->nodes[0].pmi);
	assert_non_null(strstr(say_as(n, 100, INIT), "rc=0"));
	assert_true(n->nodes[0].pmi);
	return n;
}

TEST(pmix_client_of_another_process_is_refused_beside_pmi)
{
	struct net *n = use_pmi();

	ask(n, false);
	assert_silence(&n->nodes[0]);
	assert_int_equal(n->nodes[0].near, 100);
	pmi_server_holder_found(n->nodes[0].server, 200);
	assert_admitted(n, -EBUSY);
	assert_int_equal(n->reports, 1);
	assert_non_null(strstr(n->report, "started PMIx while the first one uses PMI"));
	assert_non_null(strstr(n->report, "process 200; first"));
}

TEST(process_that_uses_pmi_may_use_pmix)
{
	struct net *n = use_pmi();

	ask(n, false);
	pmi_server_holder_found(n->nodes[0].server, 100);
	assert_admitted(n, 0);
	assert_int_equal(n->reports, 0);
}

TEST(pmix_client_that_nobody_knows_is_admitted)
{
	struct net *n = use_pmi();

	ask(n, false);
	pmi_server_holder_found(n->nodes[0].server, -EACCES);
	assert_admitted(n, 0);
}

TEST(pmix_client_after_the_end_of_pmi_is_admitted)
{
	struct net *n = use_pmi();

	ask(n, false);
	assert_non_null(strstr(say_as(n, 100, "cmd=finalize"), "finalize_ack"));
	pmi_server_holder_found(n->nodes[0].server, 200);
	assert_admitted(n, 0);
	ask(n, false);
	assert_admitted(n, 0);
	assert_int_equal(n->nodes[0].looks, 1);
}

NET_TEST(both_clients_of_pmix_are_named)
{
	hello(&n->nodes[0]);
	connect_client(n);
	ask(n, true);
	pmi_server_holder_found(n->nodes[0].server, 200);
	assert_int_equal(n->nodes[0].near, 200);
	pmi_server_holder_found(n->nodes[0].server, 100);
	assert_admitted(n, -EBUSY);
	assert_non_null(strstr(n->report, "started PMIx while the first one uses it"));
	assert_non_null(strstr(n->report, "process 200; first process 100"));
	ask(n, true); /* the holder is known by now */
	assert_admitted(n, -EBUSY);
	assert_int_equal(n->reports, 1);
}

NET_TEST(pmi_of_another_process_is_refused_beside_pmix)
{
	const char *answer;

	hello(&n->nodes[0]);
	connect_client(n);
	assert_null(say_as(n, 200, INIT));
	assert_int_equal(n->nodes[0].near, 200);
	pmi_server_holder_found(n->nodes[0].server, 100);
	answer = net_read(n, 0);
	assert_non_null(answer);
	assert_non_null(strstr(answer, "another_process"));
	assert_non_null(strstr(n->report, "started PMI while the first one uses PMIx"));
	assert_non_null(strstr(say_as(n, 200, "cmd=get_maxes"), "another_process"));
}

NET_TEST(process_that_uses_pmix_may_use_pmi)
{
	hello(&n->nodes[0]);
	connect_client(n);
	assert_null(say_as(n, 100, INIT));
	pmi_server_holder_found(n->nodes[0].server, 100);
	assert_non_null(strstr(net_read(n, 0), "rc=0"));
	assert_non_null(strstr(say_as(n, 100, "cmd=get_maxes"), "cmd=maxes"));
}

NET_TEST(pmi_after_the_death_of_the_pmix_client_is_admitted)
{
	hello(&n->nodes[0]);
	connect_client(n);
	assert_null(say_as(n, 200, INIT));
	pmi_server_holder_found(n->nodes[0].server, -ENOENT);
	assert_non_null(strstr(net_read(n, 0), "rc=0"));
	assert_int_equal(n->reports, 0);
}

TEST(one_question_is_asked_at_a_time)
{
	struct net *n = use_pmi();

	ask(n, false);
	ask(n, false);
	assert_int_equal(n->nodes[0].looks, 1);
	pmi_server_holder_found(n->nodes[0].server, 100);
	assert_int_equal(n->nodes[0].looks, 2);
	unit_end(n); /* with a question that is not answered */
}
