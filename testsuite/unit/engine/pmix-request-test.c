/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests of a PMIx client to others: the data of a rank, names, a spawn. */
#include "pmix-bed.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "libpmi/names.h"

#define RANK_WAITS 1024 /* unanswered requests of a rank */

/* ---- direct modex ---- */

static void fetch_in(struct net *n, uint32_t node, uint64_t id, uint32_t rank,
		     uint32_t timeout)
{
	const struct pmix_msg m = {
		.type = PMIX_MSG_FETCH, .id = id, .rank = rank, .number = timeout,
		.text = "key", .text_len = 3,
	};

	assert_int_equal(say(&n->nodes[node], &m), 0);
	net_run(n);
}

static void fetch(struct net *n, uint32_t node, uint64_t id, uint32_t rank)
{
	fetch_in(n, node, id, rank, 77);
}

/* The node is asked for this rank; returns by what it answers. */
static uint64_t expect_asked_in(struct net_node *node, uint32_t rank, uint32_t timeout)
{
	struct pmix_msg m;

	assert_true(hear(node, &m));
	assert_int_equal(m.type, PMIX_MSG_FETCH);
	assert_int_equal(m.rank, rank);
	assert_int_equal(m.number, timeout);
	assert_int_equal(m.text_len, 3);
	assert_memory_equal(m.text, "key", 3);
	return m.id;
}

static uint64_t expect_asked(struct net_node *node, uint32_t rank)
{
	return expect_asked_in(node, rank, 77);
}

static void answer(struct net *n, uint32_t node, uint64_t id, int status,
		   const char *data)
{
	const struct pmix_msg m = {
		.type = PMIX_MSG_FETCHED, .id = id, .status = status,
		.data = data, .len = strlen(data),
	};

	assert_int_equal(say(&n->nodes[node], &m), 0);
	net_run(n);
}

static void expect_fetched(struct net_node *node, uint64_t id, int status,
			   const char *data, const char *why)
{
	struct pmix_msg m;

	assert_true(hear(node, &m));
	assert_int_equal(m.type, PMIX_MSG_FETCHED);
	assert_int_equal(m.id, id);
	assert_int_equal(m.status, status);
	assert_int_equal(m.len, strlen(data));
	assert_memory_equal(m.data ? m.data : "", data, m.len);
	assert_int_equal(m.text_len, strlen(why));
	assert_memory_equal(m.text ? m.text : "", why, m.text_len);
}

PMIX_TEST(committed_data_of_a_rank_are_fetched)
{
	uint64_t first, second;

	ready(n);
	fetch(n, 2, 11, 4);
	fetch(n, 0, 11, 4);
	first = expect_asked(&n->nodes[1], 4);
	second = expect_asked(&n->nodes[1], 4);
	answer(n, 1, second, 0, "of rank 4");
	expect_fetched(&n->nodes[0], 11, 0, "of rank 4", "");
	assert_silence(&n->nodes[2]);
	answer(n, 1, first, -ENOENT, "");
	expect_fetched(&n->nodes[2], 11, -ENOENT, "",
		       "the rank has not committed it");
	answer(n, 1, first, 0, "again"); /* nobody asks */
	answer(n, 1, 12345, 0, "never");
	assert_silence(&n->nodes[2]);
}

PMIX_TEST(a_fetch_waits_for_who_is_not_ready)
{
	fetch(n, 0, 1, 5);
	assert_silence(&n->nodes[2]);
	ready(n);
	answer(n, 2, expect_asked(&n->nodes[2], 5), 0, "x");
	expect_fetched(&n->nodes[0], 1, 0, "x", "");
}

PMIX_TEST(a_fetch_of_nobody_is_refused)
{
	struct pmix_msg m;

	ready(n);
	fetch(n, 0, 1, NET_RANKS);
	assert_true(hear(&n->nodes[0], &m));
	assert_int_equal(m.type, PMIX_MSG_FETCHED);
	assert_int_equal(m.status, -EINVAL);
}

PMIX_TEST(a_fetch_ends_with_its_rank)
{
	ready(n);
	fetch(n, 0, 1, 5);
	expect_asked(&n->nodes[2], 5);
	exit_of(n, 5, NULL);
	expect_fetched(&n->nodes[0], 1, -ECONNRESET, "",
		       "rank 5 (node n2) exited without finalizing PMIx");
}

/* Data that the rank has committed is there, or never will be. */
PMIX_TEST(fetch_of_ended_rank_has_a_limit)
{
	struct pmix_msg m;

	ready(n);
	assert_int_equal(say_rank(n, PMIX_MSG_FINALIZED, 5), 0);
	exit_of(n, 5, NULL);
	fetch_in(n, 0, 1, 5, UINT32_MAX);
	answer(n, 2, expect_asked_in(&n->nodes[2], 5, 1000), 0, "x");
	expect_fetched(&n->nodes[0], 1, 0, "x", "");
	fetch(n, 0, 2, 5);
	answer(n, 2, expect_asked(&n->nodes[2], 5), -ENOENT, "");
	assert_true(hear(&n->nodes[0], &m));
	assert_int_equal(m.status, -ENOENT);
}

NET_TEST(fetch_of_rank_that_ended_without_pmix_fails)
{
	struct pmix_msg m;

	for (uint32_t i = 0; i < NET_NODES; i++)
		hello(&n->nodes[i]);
	assert_int_equal(say_rank(n, PMIX_MSG_CONNECTED, 0), 0);
	exit_of(n, 5, NULL);
	fetch_in(n, 0, 1, 5, UINT32_MAX);
	assert_true(hear(&n->nodes[0], &m));
	assert_int_equal(m.type, PMIX_MSG_FETCHED);
	assert_int_equal(m.status, -EIO);
}

PMIX_TEST(a_fetch_ends_with_who_serves_the_rank)
{
	ready(n);
	for (uint32_t r = 0; r < NET_RANKS; r++)
		net_init1(n, r); /* so that the ranks stay */
	fetch(n, 0, 1, 5);
	expect_asked(&n->nodes[2], 5);
	pmi_server_pmix_lost(n->nodes[2].server, "PMIx server of node n2 died");
	net_run(n);
	expect_fetched(&n->nodes[0], 1, -ECONNRESET, "", "PMIx server of node n2 died");
	fetch(n, 0, 2, 5);
	assert_true(n->nodes[0].pmix.len > 0);
}

/* ---- names ---- */

static void say_names(struct net *n, uint32_t rank, uint64_t id,
		      const struct names_request *r)
{
	struct pmix_msg m = { .type = PMIX_MSG_NAMES, .id = id, .rank = rank };
	struct buf b;

	buf_init(&b, NAMES_BYTES_MAX);
	assert_int_equal(names_pack_request(&b, r), 0);
	m.data = b.data;
	m.len = b.len;
	assert_int_equal(say(net_node_of(n, rank), &m), 0);
	buf_free(&b);
	net_run(n);
}

/* The rank publishes, takes back or looks up "key", or waits for it. */
static void ask_names(struct net *n, uint32_t rank, uint64_t id, enum names_op op,
		      uint32_t wait)
{
	struct names_item item = { .key = "key" };
	const struct names_request r = {
		.op = op, .range = NAMES_OF_NODE, .items = &item, .count = 1,
		.wait = wait,
	};

	item.value = op == NAMES_PUBLISH ? "value" : NULL;
	item.len = op == NAMES_PUBLISH ? 5 : 0;
	say_names(n, rank, id, &r);
}

/* The answer: what has been found, or an error. */
static void expect_named(struct net *n, uint32_t rank, uint64_t id, int error,
			 uint32_t found)
{
	struct names_answer a;
	struct pmix_msg m;

	assert_true(hear(net_node_of(n, rank), &m));
	assert_int_equal(m.type, PMIX_MSG_NAMED);
	assert_int_equal(m.id, id);
	assert_int_equal(m.status, 0);
	assert_int_equal(names_unpack_answer(&a, m.data, m.len), 0);
	assert_int_equal(a.error, error);
	assert_int_equal(a.count, found);
	if (found) {
		assert_memory_equal(a.items[0].value, "value", 5);
		assert_string_equal(a.items[0].from.nspace, "pmi2x.17.2");
		assert_int_equal(a.items[0].from.rank, 0);
	}
	free(a.items);
}

/* Nobody has answered it. */
static void expect_unnamed(struct net *n, uint32_t rank, uint64_t id, int status,
			   const char *why)
{
	struct pmix_msg m;
	char text[PMIX_MSG_TEXT_MAX + 1];

	assert_true(hear(net_node_of(n, rank), &m));
	assert_int_equal(m.type, PMIX_MSG_NAMED);
	assert_int_equal(m.id, id);
	assert_int_equal(m.status, status);
	assert_int_equal(m.len, 0);
	snprintf(text, sizeof(text), "%.*s", (int)m.text_len, m.text);
	assert_non_null(strstr(text, why));
}

/* Ranks 0 and 3 are on a node; who asks is said by the agent. */
PMIX_TEST(published_names_are_found)
{
	ask_names(n, 3, 1, NAMES_LOOKUP, 1);
	ask_names(n, 5, 1, NAMES_LOOKUP, 1);
	assert_silence(net_node_of(n, 3));
	ask_names(n, 0, 2, NAMES_PUBLISH, 0);
	expect_named(n, 0, 2, 0, 0);
	expect_named(n, 3, 1, 0, 1);
	assert_silence(net_node_of(n, 5));
	ask_names(n, 3, 3, NAMES_UNPUBLISH, 0);
	expect_named(n, 3, 3, -ENOENT, 0);
	ask_names(n, 0, 4, NAMES_UNPUBLISH, 0);
	expect_named(n, 0, 4, 0, 0);
}

TEST(without_srun_nothing_is_found)
{
	const struct net_options o = { .no_launcher = true };
	struct net *n = serve(&o);

	ask_names(n, 3, 1, NAMES_LOOKUP, 1);
	pmi_server_control_lost(net_node_of(n, 3)->server, "it was killed");
	expect_unnamed(n, 3, 1, -ENOTCONN, "it was killed");
	ask_names(n, 3, 2, NAMES_LOOKUP, 1);
	expect_unnamed(n, 3, 2, -ENOTCONN, "");
}

PMIX_TEST(request_without_an_answer_is_a_wait)
{
	struct pmi_server *server = net_node_of(n, 5)->server;
	char text[PMI_WAIT_TEXT_MAX];
	uint64_t ended = pmi_server_ended(server);

	assert_false(pmi_server_waits(server));
	ask_names(n, 5, 1, NAMES_LOOKUP, 1);
	assert_true(pmi_server_waits(server));
	assert_false(pmi_server_expires(server));
	pmi_server_tell_wait(server, 60, text);
	assert_string_equal(text, "lookup of a name, or connection by rank 5 (node n2): 60 s, nobody has published \"key\"");
	exit_of(n, 5, NULL);
	assert_false(pmi_server_waits(server));
	assert_true(pmi_server_ended(server) > ended);
}

PMIX_TEST(connection_names_the_namespace_that_has_not_come)
{
	struct names_item item = { .key = "key", .from.nspace = "pmi2x.7.1" };
	const struct names_request r = {
		.op = NAMES_LOOKUP, .range = NAMES_OF_SESSION, .items = &item, .count = 1,
		.wait = 1,
	};
	char text[PMI_WAIT_TEXT_MAX];

	say_names(n, 5, 1, &r);
	pmi_server_tell_wait(net_node_of(n, 5)->server, 60, text);
	assert_string_equal(text, "lookup of a name, or connection by rank 5 (node n2): 60 s, processes of pmi2x.7.1 have not come");
}

/* pmixd waits for the answer until the rank exits. */
TEST(end_of_pmi_fd_drops_no_request_of_pmix)
{
	const struct net_options o = { .no_launcher = true };
	struct net *n = serve(&o);

	ask_names(n, 5, 1, NAMES_LOOKUP, 1);
	net_init1(n, 5); /* another program starts PMI over */
	net_hang_up(n, 5);
	assert_silence(net_node_of(n, 5));
	exit_of(n, 5, NULL);
	expect_unnamed(n, 5, 1, -ENOTCONN, "");
}

PMIX_TEST(requests_about_names_that_cannot_be_are_refused)
{
	struct pmix_msg m = { .type = PMIX_MSG_NAMES, .id = 7, .rank = 5,
			      .data = "none", .len = 4 };

	assert_int_equal(say(net_node_of(n, 5), &m), 0);
	expect_unnamed(n, 5, 7, -EPROTO, "");
	m.rank = 0; /* of another node */
	assert_int_equal(say(net_node_of(n, 5), &m), 0);
	expect_unnamed(n, 5, 7, -EINVAL, "");
	for (uint64_t id = 0; id <= RANK_WAITS; id++)
		ask_names(n, 5, id, NAMES_LOOKUP, 1);
	expect_unnamed(n, 5, RANK_WAITS, -ENOSPC, "");
	assert_silence(net_node_of(n, 5));
}

/* Waits for what rank 3 of the step, and with it no other, is to publish. */
static void wait_for_rank_3(struct net *n, uint32_t rank, uint64_t id)
{
	struct names_item item = {
		.key = "key", .from.nspace = "pmi2x.17.2", .ranks = "\3\0\0\0",
		.ranks_len = 4,
	};
	const struct names_request r = {
		.op = NAMES_LOOKUP, .range = NAMES_OF_SESSION, .items = &item,
		.count = 1, .wait = 1,
	};

	say_names(n, rank, id, &r);
}

/* All ranks of a step on their nodes, of which rank 5 is connected. */
static struct net *spawn_step(void)
{
	const struct net_options o = { .spawned = true };
	struct net *n = net_create(&o);

	for (uint32_t i = 0; i < NET_NODES; i++)
		hello(&n->nodes[i]);
	assert_int_equal(say_rank(n, PMIX_MSG_CONNECTED, 5), 0);
	return n;
}

/* The name that rank 5 waits for with wait_for_rank_3 never comes. */
static void expect_that_rank_3_has_ended(struct net *n)
{
	struct names_answer a;
	struct pmix_msg m = {};

	assert_true(hear(net_node_of(n, 5), &m));
	assert_int_equal(m.type, PMIX_MSG_NAMED);
	assert_int_equal(names_unpack_answer(&a, m.data, m.len), 0);
	assert_int_equal(a.error, -ECONNRESET);
	free(a.items);
	assert_string_equal(n->report, "pmi2x.17.2 cannot connect with rank 3 (node n0) of pmi2x.17.2, which ended before the connection was made");
}

TEST_ON(nobody_waits_for_a_rank_of_a_spawned_step_that_has_ended, struct net *n, spawn_step())
{
	wait_for_rank_3(n, 5, 1);
	exit_of(n, 1, NULL);
	assert_silence(net_node_of(n, 5));
	exit_of(n, 3, &(struct pmi_exit){ .status = 0 });
	expect_that_rank_3_has_ended(n);
}

TEST(nobody_waits_for_the_first_rank_to_start_that_has_ended)
{
	static const struct pmi_exit ends[] = { { .status = 0 }, { .status = 3 << 8 } };
	struct net *n;

	for (int bad = 0; bad < 2; bad++) {
		n = spawn_step();
		exit_of(n, 1, &ends[bad]);
		assert_int_equal(n->ready, 0);
		exit_of(n, 0, &ends[bad]);
		assert_int_equal(n->ready, !bad);
		assert_string_equal(n->not_ready, bad ? "rank 0 (node n0) exited with exit code 3 without starting PMI" : "");
		unit_end(n);
	}
}

PMIX_TEST(lookup_of_an_exited_rank_is_dropped)
{
	struct pmix_msg m;

	ask_names(n, 5, 1, NAMES_LOOKUP, 1);
	pmi_server_client_exit(n->nodes[2].server, 0, NULL);
	for (m.type = 0; m.type != PMIX_MSG_NAMED;)
		assert_true(hear(&n->nodes[2], &m));
	assert_int_equal(m.id, 1);
	assert_true(m.status < 0);
}

/* ---- spawn ---- */

static void ask_spawn(struct net *n, uint32_t rank, uint64_t id)
{
	struct spawn_request *r = spawn_new();
	struct pmix_msg m = { .type = PMIX_MSG_SPAWN, .id = id, .rank = rank };
	struct buf b;

	assert_int_equal(spawn_add_command(r), 0);
	assert_int_equal(spawn_set_program(r, "a.out", 5), 0);
	assert_int_equal(spawn_set_nprocs(r, 3), 0);
	buf_init(&b, BYTES_MAX);
	assert_int_equal(spawn_pack(&b, r), 0);
	m.data = b.data;
	m.len = b.len;
	assert_int_equal(say(net_node_of(n, rank), &m), 0);
	spawn_free(r);
	buf_free(&b);
	net_run(n);
}

static void expect_spawned(struct net *n, uint32_t rank, uint64_t id, int status,
			   const char *said)
{
	struct pmix_msg m;

	assert_true(hear(net_node_of(n, rank), &m));
	assert_int_equal(m.type, PMIX_MSG_SPAWNED);
	assert_int_equal(m.id, id);
	assert_int_equal(m.status, status);
	assert_int_equal(m.text_len, strlen(said));
	assert_memory_equal(m.text, said, m.text_len);
}

PMIX_TEST(a_spawn_is_answered_with_its_namespace)
{
	const struct pmix_msg none = { .type = PMIX_MSG_SPAWN, .id = 9, .rank = 5,
				       .data = "none", .len = 4 };

	ask_spawn(n, 5, 7);
	assert_int_equal(n->spawn_procs, 3);
	assert_silence(net_node_of(n, 5));
	step_services_spawned(n->launcher, n->spawn_token, 0, "17.3");
	net_run(n);
	expect_spawned(n, 5, 7, 0, "pmi2x.17.3");
	ask_spawn(n, 5, 8);
	step_services_spawned(n->launcher, n->spawn_token, PMI_RC_FAIL, "no room");
	net_run(n);
	expect_spawned(n, 5, 8, -ENOTCONN, "no room");
	assert_int_equal(say(net_node_of(n, 5), &none), 0);
	expect_spawned(n, 5, 9, -EPROTO, strerror(EPROTO));
}

/* Also if the rank exits well, and its step goes on. */
PMIX_TEST(nobody_waits_for_a_rank_that_has_spawned_and_ended)
{
	ask_spawn(n, 3, 7);
	step_services_spawned(n->launcher, n->spawn_token, 0, "17.3");
	net_run(n);
	expect_spawned(n, 3, 7, 0, "pmi2x.17.3");
	wait_for_rank_3(n, 5, 1);
	for (uint32_t rank = 1; rank <= 3; rank += 2) {
		assert_silence(net_node_of(n, 5));
		assert_int_equal(say_rank(n, PMIX_MSG_FINALIZED, rank), 0);
		exit_of(n, rank, &(struct pmi_exit){ .status = 0 });
	}
	expect_that_rank_3_has_ended(n);
}
