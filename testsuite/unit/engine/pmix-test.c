/* SPDX-License-Identifier: BSD-3-Clause */
/* PMIx clients of three nodes, by messages of who serves them: what they enter together. */
#include "pmix-bed.h"

#include <errno.h>

#include "libpmi/pmix_nspace.h"
#include "scarce-memory.h"

#define BIG 300000 /* bytes of a rank: more than go in one message between nodes */

/* ---- the beginning ---- */

NET_TEST(hello_is_answered_with_the_namespace)
{
	struct net_node *node = &n->nodes[1];
	const struct pmix_msg m = {
		.type = PMIX_MSG_HELLO, .number = PMIX_MSG_VERSION,
	};
	struct pmix_nspace ns;
	struct pmix_msg got;

	pmi_server_use_pmix(node->server, 1000, 100, 60000);
	assert_int_equal(say(node, &m), 0);
	/* pmixd may be there before any rank, and never be needed. */
	assert_int_equal(node->links_wanted, 0);
	assert_int_equal(node->topology_wanted, 1);
	assert_silence(node);
	pmi_server_topology(node->server, "/topology.xml");
	assert_true(hear(node, &got));
	assert_int_equal(got.type, PMIX_MSG_NSPACE);
	assert_int_equal(pmix_nspace_unpack(&ns, got.data, got.len), 0);
	assert_string_equal(ns.name, "pmi2x.17.2");
	assert_string_equal(ns.topology, "/topology.xml");
	assert_string_equal(ns.node_names[2], "n2");
	assert_int_equal(ns.position, 1);
	assert_int_equal(layout_ranks(ns.layout), NET_RANKS);
	assert_int_equal(ns.universe_size, 12);
	assert_int_equal(ns.uid, 1000);
	assert_null(ns.parent);
	pmix_nspace_free(&ns);
	pmi_server_topology(node->server, "/later.xml");
	assert_silence(node);
}

TEST(a_spawned_step_has_a_parent_and_is_ready)
{
	const struct net_options o = { .spawned = true, .ends = true };
	const struct pmix_msg m = {
		.type = PMIX_MSG_HELLO, .number = PMIX_MSG_VERSION,
	};
	struct net *n = net_create(&o);
	struct pmix_nspace ns;
	struct pmix_msg got;

	pmi_server_use_pmix(n->nodes[0].server, 1000, 100, 60000);
	assert_int_equal(say(&n->nodes[0], &m), 0);
	assert_true(hear(&n->nodes[0], &got));
	assert_int_equal(pmix_nspace_unpack(&ns, got.data, got.len), 0);
	assert_string_equal(ns.parent, "pmi2x.17.1");
	assert_int_equal(ns.napps, 2);
	assert_int_equal(ns.app_sizes[1], 4);
	pmix_nspace_free(&ns);
	assert_int_equal(n->ready, 0);
	assert_int_equal(say_rank(n, PMIX_MSG_CONNECTED, 0), 0);
	assert_int_equal(n->ready, 1);
}

NET_TEST(another_version_is_refused)
{
	const struct pmix_msg m = {
		.type = PMIX_MSG_HELLO, .number = PMIX_MSG_VERSION + 1,
	};

	pmi_server_use_pmix(n->nodes[0].server, 1000, 100, 60000);
	assert_int_equal(say(&n->nodes[0], &m), -EPROTO);
	assert_non_null(strstr(buf_cstr(&n->log), "the same release"));
}

/* ---- fences of all ---- */

PMIX_TEST(a_fence_gathers_what_ranks_give)
{
	for (uint64_t id = 1; id <= 3; id++) {
		fence(n, id, 10);
	}
}

PMIX_TEST(a_fence_waits_for_every_node)
{
	enter_node(&n->nodes[0], 1, NULL, 0, 4);
	enter_node(&n->nodes[2], 1, NULL, 0, 4);
	net_run(n);
	assert_silence(&n->nodes[0]);
	assert_silence(&n->nodes[2]);
	assert_int_equal(pmi_server_pending(n->nodes[0].server), 1);
	enter_node(&n->nodes[1], 1, NULL, 0, 4);
	net_run(n);
	assert_all_ended(n, 1, 4);
	assert_int_equal(pmi_server_pending(n->nodes[0].server), 0);
}

PMIX_TEST(several_fences_may_be_under_way)
{
	for (uint32_t i = 0; i < NET_NODES; i++) {
		enter_node(&n->nodes[i], 7, NULL, 0, 3);
		enter_node(&n->nodes[i], 5, NULL, 0, 4);
	}
	net_run(n);
	for (uint32_t i = 0; i < NET_NODES; i++) {
		assert_ended(&n->nodes[i], 7, givers, 5, 3);
		assert_ended(&n->nodes[i], 5, givers, 5, 4);
	}
}

TEST(large_data_arrive_whole)
{
	const struct net_options heap = { .heap = true };
	const struct net_options *all[] = { NULL, &heap };

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		struct net *n = serve(all[i]);

		fence(n, 1, BIG);
		unit_end(n);
	}
}

PMIX_TEST(pmi_and_pmix_do_not_count_together)
{
	for (uint32_t r = 0; r < NET_RANKS; r++)
		net_init1(n, r);
	for (uint32_t r = 0; r < NET_RANKS - 1; r++)
		assert_null(net_pmi1(n, r, "cmd=barrier_in"));
	fence(n, 1, 8);
	assert_non_null(net_pmi1(n, NET_RANKS - 1, "cmd=barrier_in"));
}

/* ---- fences of some ---- */

PMIX_TEST(fence_of_some_ranks_completes)
{
	static const uint32_t some[] = { 0, 2, 4 }, others[] = { 1, 3, 4, 5 };
	static const uint32_t gave[] = { 3, 4, 5 };

	enter_node(&n->nodes[0], 1, some, 3, 6);
	enter_node(&n->nodes[0], 2, others, 4, 7);
	enter_node(&n->nodes[1], 8, others, 4, 7);
	enter_node(&n->nodes[1], 9, some, 3, 6);
	net_run(n);
	assert_ended(&n->nodes[0], 1, some, 3, 6);
	assert_ended(&n->nodes[1], 9, some, 3, 6);
	assert_silence(&n->nodes[0]);
	enter_node(&n->nodes[2], 3, others, 4, 7);
	net_run(n);
	assert_ended(&n->nodes[0], 2, gave, 3, 7);
	assert_ended(&n->nodes[1], 8, gave, 3, 7);
	assert_ended(&n->nodes[2], 3, gave, 3, 7);
	for (uint32_t i = 0; i < NET_NODES; i++)
		assert_silence(&n->nodes[i]);
}

PMIX_TEST(fence_of_some_ranks_fails_when_one_exits)
{
	static const uint32_t some[] = { 0, 2, 4 }, others[] = { 0, 5 };

	enter_node(&n->nodes[0], 1, some, 3, 6);
	net_run(n);
	exit_of(n, 4, NULL);
	assert_failed(&n->nodes[0], 1,
		      "rank 4 (node n1) exited without finalizing PMIx");
	assert_non_null(strstr(n->report, "PMIx fence of 3 ranks failed"));
	enter_node(&n->nodes[0], 2, others, 2, 6);
	enter_node(&n->nodes[2], 2, others, 2, 6);
	net_run(n);
	assert_ended(&n->nodes[0], 2, others, 2, 6);
}

/* ---- groups ---- */

PMIX_TEST(groups_are_told_apart_by_name)
{
	static const char *const names[NET_NODES][2] = {
		{ "one", "other" }, { "other", "one" }, { "one", "other" },
	};

	for (uint32_t i = 0; i < NET_NODES; i++)
		for (uint64_t id = 1; id <= 2; id++)
			enter_named(&n->nodes[i], id, PMIX_OP_CONSTRUCT,
				    names[i][id - 1], NULL, 0,
				    strlen(names[i][id - 1]));
	net_run(n);
	for (uint32_t i = 0; i < NET_NODES; i++) {
		bool swapped = i == 1;

		assert_ended(&n->nodes[i], 1 + swapped, givers, 5, 3);
		assert_ended(&n->nodes[i], 2 - swapped, givers, 5, 5);
	}
}

PMIX_TEST(a_group_is_no_fence)
{
	static const uint32_t some[] = { 0, 2 };

	enter_named(&n->nodes[0], 1, PMIX_OP_CONSTRUCT, "g", NULL, 0, 4);
	fence(n, 2, 6);
	enter_named(&n->nodes[0], 3, PMIX_OP_CONSTRUCT, "", some, 2, 4);
	enter_named(&n->nodes[0], 4, PMIX_OP_DESTRUCT, "", some, 2, 5);
	enter_node(&n->nodes[1], 5, some, 2, 6);
	enter_named(&n->nodes[1], 6, PMIX_OP_DESTRUCT, "", some, 2, 5);
	net_run(n);
	assert_ended(&n->nodes[0], 4, some, 2, 5);
	assert_ended(&n->nodes[1], 6, some, 2, 5);
	assert_silence(&n->nodes[0]);
	assert_silence(&n->nodes[1]);
}

/* Connections of all ranks in different order than their fence, and of some. */
PMIX_TEST(processes_connect_and_disconnect)
{
	static const uint32_t some[] = { 0, 2 };

	for (uint32_t i = 0; i < NET_NODES; i++) {
		if (i == 1)
			enter_node(&n->nodes[i], 2, NULL, 0, 6);
		enter_named(&n->nodes[i], 1, PMIX_OP_CONNECT, "", NULL, 0, 0);
		if (i != 1)
			enter_node(&n->nodes[i], 2, NULL, 0, 6);
	}
	net_run(n);
	for (uint32_t i = 0; i < NET_NODES; i++) {
		assert_ended(&n->nodes[i], 1, givers, 0, 0);
		assert_ended(&n->nodes[i], 2, givers, 5, 6);
	}
	enter_named(&n->nodes[0], 3, PMIX_OP_DISCONNECT, "", some, 2, 0);
	enter_named(&n->nodes[1], 4, PMIX_OP_CONNECT, "", some, 2, 0);
	net_run(n);
	assert_silence(&n->nodes[0]);
	enter_named(&n->nodes[1], 5, PMIX_OP_DISCONNECT, "", some, 2, 0);
	net_run(n);
	assert_ended(&n->nodes[0], 3, some, 0, 0);
	assert_ended(&n->nodes[1], 5, some, 0, 0);
}

PMIX_TEST(a_name_may_be_as_long_as_a_tag_of_mpi)
{
	char name[PMIX_MSG_TEXT_MAX + 1] = "";

	memset(name, 'n', PMIX_MSG_TEXT_MAX);
	for (uint32_t i = 0; i < NET_NODES; i++)
		enter_named(&n->nodes[i], 1, PMIX_OP_CONSTRUCT, name, NULL, 0, 4);
	net_run(n);
	assert_all_ended(n, 1, 4);
}

PMIX_TEST(a_group_fails_when_a_member_goes)
{
	static const uint32_t some[] = { 0, 2, 4 };
	char text[PMI_WAIT_TEXT_MAX];

	enter_named(&n->nodes[0], 1, PMIX_OP_CONSTRUCT, "g", some, 3, 6);
	net_run(n);
	pmi_server_tell_wait(n->nodes[0].server, 60, text);
	assert_string_equal(text,
			    "PMIx group construct of 3 ranks (g): 60 s, node n0 waits for "
			    "ranks of or below these nodes: n1");
	exit_of(n, 4, NULL);
	assert_failed(&n->nodes[0], 1,
		      "rank 4 (node n1) exited without finalizing PMIx");
	assert_non_null(strstr(n->report, "PMIx group construct of 3 ranks failed"));
	enter_named(&n->nodes[2], 7, PMIX_OP_DESTRUCT, "all", NULL, 0, 6);
	net_run(n);
	assert_failed(&n->nodes[2], 7, "rank 4 (node n1)");
}

/* ---- events ---- */

static void tell(struct net_node *node, const char *data)
{
	const struct pmix_msg m = {
		.type = PMIX_MSG_EVENT, .data = data, .len = strlen(data),
	};

	assert_int_equal(say(node, &m), 0);
}

static void assert_told(struct net_node *node, const char *data)
{
	struct pmix_msg m;

	assert_true(hear(node, &m));
	assert_int_equal(m.type, PMIX_MSG_EVENT);
	assert_int_equal(m.len, strlen(data));
	assert_memory_equal(m.data, data, m.len);
}

PMIX_TEST(an_event_comes_to_the_other_nodes)
{
	const struct pmix_msg ready = { .type = PMIX_MSG_READY };

	assert_int_equal(say(&n->nodes[0], &ready), 0);
	assert_int_equal(say(&n->nodes[1], &ready), 0);
	tell(&n->nodes[1], "one");
	tell(&n->nodes[1], "two");
	net_run(n);
	assert_told(&n->nodes[0], "one");
	assert_told(&n->nodes[0], "two");
	assert_silence(&n->nodes[1]);
	assert_silence(&n->nodes[2]); /* it has no clients yet */
	assert_int_equal(say(&n->nodes[2], &ready), 0);
	assert_told(&n->nodes[2], "one");
	assert_told(&n->nodes[2], "two");
	assert_silence(&n->nodes[2]);
	tell(&n->nodes[0], ""); /* it is nothing */
	net_run(n);
	assert_silence(&n->nodes[1]);
	assert_non_null(strstr(buf_cstr(&n->log), "cannot send a PMIx event"));
}

/* ---- what cannot be ---- */

/* The entry is rejected for this reason, and a fence of all can be entered nevertheless. */
static void refuse(struct entering *e, const char *why)
{
	struct net *n = serve(NULL);

	assert_int_equal(enter(e, &n->nodes[1]), 0);
	assert_failed(&n->nodes[1], 3, why);
	fence(n, 4, 5);
	unit_end(n);
}

TEST(entries_that_cannot_be_are_refused)
{
	static const uint32_t some[] = { 0, 1 }, disorder[] = { 4, 2, 1 };
	static const uint32_t none[] = { 0, 5 }, unknown[] = { 1, 2, 4, 6 };
	struct entering e;

	begin(&e, 3, NULL, 0);
	add(&e, 1, "x", 1);
	add(&e, 2, "x", 1);
	refuse(&e, "rank 4 is missing");
	begin(&e, 3, NULL, 0);
	add(&e, 1, "x", 1);
	add(&e, 1, "x", 1);
	refuse(&e, "rank 1 enters twice");
	begin(&e, 3, NULL, 0);
	add(&e, 0, "x", 1);
	refuse(&e, "rank 0 runs elsewhere");
	begin(&e, 3, NULL, 0);
	add(&e, 1000000, "x", 1);
	refuse(&e, "rank 1000000 runs elsewhere");
	begin(&e, 3, some, 2);
	add(&e, 2, "x", 1);
	refuse(&e, "rank 2 is not a member");
	begin(&e, 3, none, 2);
	refuse(&e, "is not a member");
	begin(&e, 3, disorder, 3);
	add(&e, 2, "x", 1);
	refuse(&e, "");
	begin(&e, 3, unknown, 4);
	for (uint32_t r = 0; r < 4; r += 1 + (r == 2))
		if (r)
			add(&e, r, "x", 1);
	add(&e, 4, "x", 1);
	refuse(&e, "");
	begin(&e, 3, NULL, 0);
	assert_int_equal(buf_append(&e.data, "\1\0\0\0\377\377\0\0x", 9), 0);
	refuse(&e, "Protocol error");
	begin(&e, 3, NULL, 0);
	e.m.op = PMIX_OP_END;
	refuse(&e, "not supported");
	begin(&e, 3, NULL, 0);
	e.m.op = 0;
	refuse(&e, "not supported");
}

PMIX_TEST(an_id_serves_one_at_a_time)
{
	enter_node(&n->nodes[1], 3, NULL, 0, 4);
	enter_node(&n->nodes[1], 3, NULL, 0, 4);
	assert_failed(&n->nodes[1], 3, "File exists");
	enter_node(&n->nodes[0], 1, NULL, 0, 4);
	enter_node(&n->nodes[2], 1, NULL, 0, 4);
	net_run(n);
	assert_ended(&n->nodes[1], 3, givers, 5, 4);
	enter_node(&n->nodes[1], 3, NULL, 0, 4);
	assert_silence(&n->nodes[1]);
}

PMIX_TEST(pmixd_that_breaks_the_protocol_is_shut_out)
{
	const struct pmix_msg wrong[] = {
		{ .type = PMIX_MSG_HELLO, .number = PMIX_MSG_VERSION },
		{ .type = PMIX_MSG_NSPACE },
		{ .type = PMIX_MSG_ENDED },
		{ .type = PMIX_MSG_READY, .nspace = 1 },
	};

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_int_equal(say(&n->nodes[0], &wrong[i]), -EPROTO);
	assert_int_equal(say_bytes(&n->nodes[0], "x", 1), -EPROTO);
	unit_end(n);
	n = net_create(NULL);
	pmi_server_use_pmix(n->nodes[0].server, 1000, 100, 60000);
	assert_int_equal(say(&n->nodes[0], &(struct pmix_msg){
				 .type = PMIX_MSG_READY }), -EPROTO);
}

PMIX_TEST(pmixd_reports_ranks_of_its_own_node_only)
{
	static const enum pmix_msg_type types[] = {
		PMIX_MSG_CONNECTED, PMIX_MSG_FINALIZED, PMIX_MSG_ABORT,
	};

	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		for (uint32_t rank = 1; rank < 9; rank += 7)
			assert_int_equal(say(&n->nodes[0], &(struct pmix_msg){
						 .type = types[i], .rank = rank }),
					 0);
	assert_string_equal(n->abort_text, "");
	buf_clear(&n->nodes[0].pmix); /* each abort has been answered */
	fence(n, 1, 4);
}

/* ---- without memory ---- */

static bool has_ended(struct net_node *node)
{
	struct pmix_msg m;
	bool ended = false;

	while (!ended && hear(node, &m)) {
		ended = m.type == PMIX_MSG_ENDED;
	}
	return ended;
}

/* Node 1 enters with this allocation failing; false: there are not as many. */
static bool one_failure(int number, enum pmix_op op, const uint32_t *members,
			uint32_t count)
{
	struct net *n = serve(NULL);
	struct pmix_msg m = { .type = PMIX_MSG_ENTER, .id = 1, .op = op };
	struct payload *p;
	struct buf b, data;
	bool failed;
	int rc;

	buf_init(&b, BYTES_MAX);
	buf_init(&data, BYTES_MAX);
	pmix_members_pack(&data, members, count);
	for (uint32_t r = 1; r <= 4; r += 1 + (r == 2))
		pmix_entry_pack(&data, &(struct pmix_entry){ r, 1, "x" });
	m.data = data.data;
	m.len = data.len;
	assert_int_equal(pmix_msg_pack(&b, &m), 0);
	p = payload_copy(b.data, b.len);
	enter_named(&n->nodes[0], 1, op, "", members, count, 4);
	net_run(n);
	allowed = number;
	rc = pmi_server_pmix_input(n->nodes[1].server, p);
	failed = allowed < 0;
	allowed = -1;
	assert_int_equal(rc, 0);
	payload_unref(p);
	if (!count)
		enter_named(&n->nodes[2], 1, op, "", members, count, 4);
	net_run(n);
	if (!has_ended(&n->nodes[1]))
		fail_msg("allocation %d: node 1 waits", number);
	/* The rejected entry left nothing, and can be made again. */
	if (pmi_server_pending(n->nodes[0].server)) {
		enter_named(&n->nodes[1], 2, op, "", members, count, 4);
		net_run(n);
	}
	if (!has_ended(&n->nodes[0]))
		fail_msg("allocation %d: node 0 waits", number);
	buf_free(&b);
	buf_free(&data);
	unit_end(n);
	return failed;
}

TEST(without_memory_nobody_waits)
{
	static const uint32_t some[] = { 0, 1, 2, 4 };
	int number = 0;

	while (one_failure(number, PMIX_OP_FENCE, NULL, 0))
		number++;
	assert_true(number > 5);
	for (number = 0; one_failure(number, PMIX_OP_FENCE, some, 4);)
		number++;
	assert_true(number > 5);
	for (number = 0; one_failure(number, PMIX_OP_CONSTRUCT, NULL, 0);)
		number++;
	assert_true(number > 5);
}

PMIX_TEST(client_of_another_user_is_reported_once)
{
	const struct pmix_msg m = { .type = PMIX_MSG_USER, .rank = 3, .number = 1234 };
	const struct pmix_msg elsewhere = { .type = PMIX_MSG_USER, .rank = 1, .number = 1234 };

	assert_int_equal(say(&n->nodes[0], &elsewhere), 0);
	assert_int_equal(n->reports, 0);
	assert_int_equal(say(&n->nodes[0], &m), 0);
	assert_int_equal(say(&n->nodes[0], &m), 0);
	assert_int_equal(n->reports, 1);
}
