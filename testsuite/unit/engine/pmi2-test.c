/* SPDX-License-Identifier: BSD-3-Clause */
/* PMI-2 ranks: every command, both protocols in one step, node attributes. */
#include "net.h"

#include <errno.h>
#include <stdio.h>

static void init_all(struct net *n)
{
	for (uint32_t r = 0; r < NET_RANKS; r++)
		net_init2(n, r);
}

static void fence(struct net *n)
{
	for (uint32_t r = 0; r + 1 < NET_RANKS; r++)
		assert_null(net_pmi2(n, r, "cmd=kvs-fence;"));
	assert_string_equal(net_pmi2(n, NET_RANKS - 1, "cmd=kvs-fence;"),
			    "cmd=kvs-fence-response;rc=0;");
	for (uint32_t r = 0; r + 1 < NET_RANKS; r++)
		assert_string_equal(net_read(n, r),
				    "cmd=kvs-fence-response;rc=0;");
}

NET_TEST(thread_ids_come_back)
{
	char body[200], x[101];

	memset(x, 'x', 100);
	x[100] = '\0';
	net_init2(n, 0);
	assert_string_equal(net_pmi2(n, 0, "cmd=job-getid;thrid=0x1f;"),
			    "cmd=job-getid-response;thrid=0x1f;rc=0;"
			    "jobid=17.2;");
	snprintf(body, sizeof(body), "cmd=job-getid;thrid=%s;", x);
	assert_string_equal(net_pmi2(n, 0, body),
			    "cmd=job-getid-response;rc=3;"
			    "errmsg=a message with too many fields or too long "
			    "a thrid;");
}

NET_TEST(values_survive_semicolons)
{
	init_all(n);
	assert_string_equal(
		net_pmi2(n, 1, "cmd=kvs-put;key=a;value=x;;y=;;;;z;"),
		"cmd=kvs-put-response;rc=0;");
	assert_string_equal(net_pmi2(n, 1, "cmd=kvs-get;key=a;"),
			    "cmd=kvs-get-response;rc=0;found=FALSE;");
	fence(n);
	assert_string_equal(
		net_pmi2(n, 5, "cmd=kvs-get;jobid=17.2;srcid=-1;key=a;"),
		"cmd=kvs-get-response;rc=0;found=TRUE;value=x;;y=;;;;z;");
	assert_string_equal(net_pmi2(n, 5, "cmd=kvs-get;key=-NONEXIST-KEY;"),
			    "cmd=kvs-get-response;rc=0;found=FALSE;");
}

NET_TEST(both_protocols_share_fences_and_values)
{
	for (uint32_t r = 0; r < NET_RANKS; r++) {
		if (r % 2)
			net_init2(n, r);
		else
			net_init1(n, r);
	}
	net_pmi1(n, 0, "cmd=put key=a value=1");
	net_pmi2(n, 1, "cmd=kvs-put;key=b;value=2;");
	for (uint32_t r = 0; r < NET_RANKS; r++) {
		if (r % 2)
			net_pmi2(n, r, "cmd=kvs-fence;");
		else
			net_pmi1(n, r, "cmd=barrier_in");
	}
	assert_string_equal(net_read(n, 2), "cmd=barrier_out rc=0 tag=0");
	assert_string_equal(net_read(n, 3), "cmd=kvs-fence-response;rc=0;");
	net_forget(n);
	assert_string_equal(net_pmi2(n, 3, "cmd=kvs-get;key=a;"),
			    "cmd=kvs-get-response;rc=0;found=TRUE;value=1;");
	assert_string_equal(net_pmi1(n, 4, "cmd=get key=b"),
			    "cmd=get_result rc=0 value=2");
}

NET_TEST(job_attributes_are_known)
{
	static const char *const attrs[][2] = {
		{"universeSize", "TRUE;value=12;"},
		{"appnum", "TRUE;value=-1;"},
		{"hasNameServ", "TRUE;value=TRUE;"},
		{"PMI_process_mapping", "TRUE;value=(vector,(0,3,2));"},
		{"PMI_netinfo_of_task",
		 "TRUE;value=(n0,(eth0,IP_V4,10.0.0.1));"},
		{"mpi_reserved_ports", "FALSE;"},
		{"physTopology", "FALSE;"},
		{"nonsense", "FALSE;"},
	};
	char body[100], expected[200];

	net_init2(n, 0);
	for (size_t i = 0; i < sizeof(attrs) / sizeof(attrs[0]); i++) {
		snprintf(body, sizeof(body), "cmd=info-getjobattr;key=%s;",
			 attrs[i][0]);
		snprintf(expected, sizeof(expected),
			 "cmd=info-getjobattr-response;rc=0;found=%s",
			 attrs[i][1]);
		/* Making it costs, so nobody does before a rank wants it. */
		assert_int_equal(n->netinfo_asked, i > 4);
		assert_string_equal(net_pmi2(n, 0, body), expected);
	}
}

NET_TEST(node_attributes_stay_on_the_node)
{
	init_all(n);
	assert_string_equal(
		net_pmi2(n, 1, "cmd=info-putnodeattr;key=a;value=b;"),
		"cmd=info-putnodeattr-response;rc=0;");
	assert_string_equal(
		net_pmi2(n, 2, "cmd=info-getnodeattr;key=a;wait=FALSE;"),
		"cmd=info-getnodeattr-response;rc=0;found=TRUE;value=b;");
	assert_string_equal(
		net_pmi2(n, 0, "cmd=info-getnodeattr;key=a;wait=FALSE;"),
		"cmd=info-getnodeattr-response;rc=0;found=FALSE;");
	net_pmi2(n, 4, "cmd=info-putnodeattr;key=a;value=c;");
	assert_string_equal(
		net_pmi2(n, 1, "cmd=info-getnodeattr;key=a;wait=TRUE;"),
		"cmd=info-getnodeattr-response;rc=0;found=TRUE;value=c;");
}

NET_TEST(waiting_gets_end_with_the_put_or_the_last_peer)
{
	init_all(n);
	assert_null(net_pmi2(n, 1,
			     "cmd=info-getnodeattr;thrid=1;key=a;wait=TRUE;"));
	assert_null(net_pmi2(n, 1,
			     "cmd=info-getnodeattr;thrid=2;key=b;wait=TRUE;"));
	net_pmi2(n, 2, "cmd=info-putnodeattr;key=b;value=x;");
	assert_string_equal(net_read(n, 1),
			    "cmd=info-getnodeattr-response;thrid=2;rc=0;"
			    "found=TRUE;value=x;");
	net_eof(n, 2);
	assert_null(net_read(n, 1));
	net_pmi2(n, 4, "cmd=finalize;");
	pmi_server_client_exit(n->nodes[1].server, 2, NULL);
	assert_string_equal(net_read(n, 1),
			    "cmd=info-getnodeattr-response;thrid=1;rc=-1;"
			    "errmsg=node attribute a: no other rank of node n1 "
			    "is left to put it;");
	/* A rank alone on its node can only wait for itself. */
	assert_non_null(strstr(
		net_pmi2(n, 5, "cmd=info-getnodeattr;key=a;wait=TRUE;"),
		"rc=-1;"));
}

NET_TEST(a_get_that_waits_for_long_is_told_and_can_be_given_up)
{
	char text[PMI_WAIT_TEXT_MAX];
	struct pmi_server *s;

	init_all(n);
	s = n->nodes[1].server;
	assert_false(pmi_server_waits(s));
	pmi_server_tell_wait(s, 60, text);
	assert_string_equal(text, "");
	assert_null(net_pmi2(n, 1, "cmd=info-getnodeattr;key=a;wait=TRUE;"));
	assert_true(pmi_server_waits(s));
	assert_int_equal(pmi_server_ended(s), 0);
	pmi_server_tell_wait(s, 60, text);
	assert_string_equal(text,
			    "node attribute a: 60 s, rank 1 waits for it, and no "
			    "rank of node n1 has put it");
	pmi_server_expire_all(s, "has waited long");
	assert_string_equal(net_read(n, 1),
			    "cmd=info-getnodeattr-response;rc=-1;"
			    "errmsg=node attribute a: has waited long;");
	assert_false(pmi_server_waits(s));
	assert_int_equal(pmi_server_ended(s), 1);
}

NET_TEST(waiting_gets_are_limited)
{
	const char *answer = NULL;
	int i;

	net_init2(n, 1);
	for (i = 0; i < 10000 && !answer; i++)
		answer = net_pmi2(n, 1,
				  "cmd=info-getnodeattr;key=a;wait=TRUE;");
	assert_string_equal(answer, "cmd=info-getnodeattr-response;rc=14;"
				    "errmsg=too many unanswered requests;");
	assert_int_equal(i, 1025);
}

NET_TEST(a_ring_goes_by_node_then_rank)
{
	static const uint32_t order[NET_RANKS] = {0, 3, 1, 2, 4, 5};
	char text[200];

	init_all(n);
	for (uint32_t r = 0; r < NET_RANKS; r++) {
		snprintf(text, sizeof(text),
			 "cmd=ring;thrid=7;ring-count=1;ring-left=l;;%u;"
			 "ring-right=r%u;", r, r);
		net_pmi2(n, r, text);
		if (r + 1 == NET_RANKS)
			break;
		assert_null(net_read(n, r));
	}
	for (uint32_t i = 0; i + 1 < NET_RANKS; i++) {
		snprintf(text, sizeof(text),
			 "cmd=ring-response;thrid=7;rc=0;ring-count=%u;"
			 "ring-left=r%u;ring-right=l;;%u;ring-size=6;", i,
			 order[(i + NET_RANKS - 1) % NET_RANKS], order[i + 1]);
		assert_string_equal(net_read(n, order[i]), text);
	}
}

NET_TEST(everything_is_answered)
{
	static const char *const bodies[][2] = {
		{"cmd=job-connect;jobid=9.1;", "cmd=job-connect-response;rc=-1;"},
		{"cmd=job-disconnect;jobid=9.1;",
		 "cmd=job-disconnect-response;rc=-1;"},
		{"cmd=nonsense;thrid=3;",
		 "cmd=nonsense-response;thrid=3;rc=3;"
		 "errmsg=an unknown command;"},
		{"cmd=pmi2x-fence;",
		 "cmd=pmi2x-fence-response;rc=3;errmsg=an unknown command;"},
		{"cmd=kvs-put;key=a;", "cmd=kvs-put-response;rc=3;"},
		{"cmd=kvs-put;garbage;", "cmd=kvs-put-response;rc=3;"},
		{"cmd=kvs-get;", "cmd=kvs-get-response;rc=4;"},
		{"cmd=ring;", "cmd=ring-response;rc=3;"},
		{"cmd=ring;ring-count=-1;", "cmd=ring-response;rc=3;"},
		{"cmd=spawn;", "cmd=spawn-response;rc=10;"},
		{"cmd=name-publish;name=a;", "cmd=name-publish-response;rc=3;"},
		{"cmd=info-getnodeattr;key=a;wait=MAYBE;",
		 "cmd=info-getnodeattr-response;rc=3;"},
		{"key=value;", "cmd=-response;rc=3;"},
		{"nothing", "cmd=-response;rc=3;"},
		{"", "cmd=-response;rc=3;"},
	};

	net_init2(n, 0);
	for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++) {
		const char *answer = net_pmi2(n, 0, bodies[i][0]);

		assert_non_null(answer);
		assert_memory_equal(answer, bodies[i][1],
				    strlen(bodies[i][1]));
		assert_null(net_read(n, 0));
	}
}

NET_TEST(lengths_are_checked)
{
	char body[2000], x[1100];

	memset(x, 'x', sizeof(x));
	net_init2(n, 0);
	snprintf(body, sizeof(body), "cmd=kvs-put;key=%.64s;value=v;", x);
	assert_string_equal(net_pmi2(n, 0, body),
			    "cmd=kvs-put-response;rc=5;errmsg=key has 64 "
			    "bytes, the limit is 63;");
	snprintf(body, sizeof(body), "cmd=kvs-put;key=a;value=%.1024s;", x);
	assert_string_equal(net_pmi2(n, 0, body),
			    "cmd=kvs-put-response;rc=7;errmsg=value has 1024 "
			    "bytes, the limit is 1023;");
}

NET_TEST(a_second_program_may_speak_the_other_protocol)
{
	init_all(n);
	fence(n);
	for (uint32_t r = 0; r < NET_RANKS; r++)
		assert_string_equal(net_pmi2(n, r, "cmd=finalize;"),
				    "cmd=finalize-response;rc=0;");
	for (uint32_t r = 0; r < NET_RANKS; r++)
		net_init1(n, r);
	for (uint32_t r = 0; r < NET_RANKS; r++)
		net_pmi1(n, r, "cmd=barrier_in");
	assert_string_equal(net_read(n, 0), "cmd=barrier_out rc=0 tag=0");
	for (uint32_t r = 0; r < NET_RANKS; r++)
		net_pmi1(n, r, "cmd=finalize");
	net_forget(n);
	init_all(n);
	fence(n);
}

/* As of MPICH 5, once for each of its sessions. */
NET_TEST(a_program_may_start_again)
{
	init_all(n);
	assert_string_equal(net_pmi2(n, 0, "cmd=kvs-put;key=a;value=b;"),
			    "cmd=kvs-put-response;rc=0;");
	init_all(n);
	fence(n);
	assert_string_equal(net_pmi2(n, 5, "cmd=kvs-get;key=a;"),
			    "cmd=kvs-get-response;rc=0;found=TRUE;value=b;");
}

static void expect_refused_init(struct net *n, const char *init)
{
	const char *answer = net_pmi1(n, 0, init);

	assert_non_null(strstr(answer, "cmd=response_to_init rc=1 "));
	assert_non_null(strstr(answer, "has_not_finalized"));
}

NET_TEST(another_program_waits_for_the_first_to_finalize)
{
	const char *answer;

	net_init2(n, 0);
	expect_refused_init(n, "cmd=init pmi_version=1 pmi_subversion=1");
	answer = net_pmi1(n, 0, "cmd=put key=a value=b");
	assert_non_null(strstr(answer, "cmd=put_result rc=1 "));
	assert_string_equal(net_pmi2(n, 0, "cmd=job-getid;"),
			    "cmd=job-getid-response;rc=0;jobid=17.2;");
	unit_end(n);
	n = net_create(NULL);
	net_init_ext(n, 0, 0);
	expect_refused_init(n, "cmd=init pmi_version=2 pmi_subversion=0");
}

TEST(bad_lengths_end_the_connection)
{
	static const char *const inputs[] = {"-1    ", "abcdef", "x",
					     "12 4  cmd=a;"};

	for (size_t i = 0; i < sizeof(inputs) / sizeof(inputs[0]); i++) {
		struct net *n = net_create(NULL);

		net_init2(n, 0);
		net_input(n, 0, inputs[i], strlen(inputs[i]));
		assert_string_equal(net_read(n, 0),
				    "cmd=error-response;rc=3;errmsg=sent bytes "
				    "that are not a PMI message;");
		assert_true(n->ranks[0].closed);
		unit_end(n);
	}
}

NET_TEST(a_lost_link_fails_fences_by_name)
{
	init_all(n);
	for (uint32_t r = 0; r < NET_RANKS; r++)
		if (r != 5)
			net_pmi2(n, r, "cmd=kvs-fence;");
	n->nodes[2].link_lost = true;
	pmi_server_link_lost(n->nodes[0].server, 2, false, "node n2 has died");
	net_run(n);
	assert_string_equal(net_read(n, 1),
			    "cmd=kvs-fence-response;rc=14;"
			    "errmsg=fence 0 failed: node n2 has died;");
	assert_string_equal(n->report, "fence 0 failed: node n2 has died");
	assert_int_equal(n->reports, 1);
}

NET_TEST(a_later_fence_may_fail_first)
{
	init_all(n);
	for (uint32_t r = 0; r < 4; r++) {
		net_pmi2(n, r, "cmd=kvs-fence;thrid=0;");
		net_pmi2(n, r, "cmd=kvs-fence;thrid=1;");
	}
	net_pmi2(n, 5, "cmd=kvs-fence;");
	net_hang_up(n, 5);
	assert_non_null(strstr(net_read(n, 0),
			       "thrid=1;rc=14;errmsg=fence 1 failed: rank 5"));
	assert_null(net_read(n, 0));
	assert_string_equal(net_pmi2(n, 4, "cmd=kvs-fence;"),
			    "cmd=kvs-fence-response;rc=0;");
	assert_string_equal(net_read(n, 0),
			    "cmd=kvs-fence-response;thrid=0;rc=0;");
}

/* Values that were put before it are in the next one. */
NET_TEST(a_fence_too_many_takes_nothing_with_it)
{
	init_all(n);
	for (int i = 0; i < COLL_IN_FLIGHT_MAX; i++)
		assert_null(net_pmi2(n, 0, "cmd=kvs-fence;"));
	assert_non_null(strstr(net_pmi2(n, 0, "cmd=kvs-put;key=a;value=b;"),
			       "rc=0"));
	assert_non_null(strstr(net_pmi2(n, 0, "cmd=kvs-fence;"),
			       "too many collectives in flight"));
	for (int i = 0; i < COLL_IN_FLIGHT_MAX; i++)
		for (uint32_t r = 1; r < NET_RANKS; r++)
			net_pmi2(n, r, "cmd=kvs-fence;");
	net_forget(n);
	for (uint32_t r = 0; r < NET_RANKS; r++)
		net_pmi2(n, r, "cmd=kvs-fence;");
	net_forget(n);
	assert_non_null(strstr(net_pmi2(n, 5, "cmd=kvs-get;key=a;"),
			       "found=TRUE;value=b;"));
}

NET_TEST(hostile_messages_break_the_link)
{
	struct pmi_server *s = n->nodes[0].server;

	const struct coll_msg odd = { .type = COLL_MSG_TYPES };
	const struct coll_msg rest = { .type = COLL_MSG_REST };

	assert_int_equal(pmi_server_node_input(s, 1, &odd, NULL), -EPROTO);
	assert_int_equal(pmi_server_node_input(s, 1, &rest, NULL), -EPROTO);
	assert_int_equal(pmi_server_node_input(s, 9, &rest, NULL), -EPROTO);
	assert_null(pmi_server_node_room(s, 1, &rest, 10));
}
