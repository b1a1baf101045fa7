/* SPDX-License-Identifier: BSD-3-Clause */
/* PMIx clients of three nodes, by messages of who serves them. */
#include "server-net.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "libpmi/names.h"
#include "libpmi/pmix_msg.h"
#include "libpmi/pmix_nspace.h"
#include "scarce-memory.h"

#define BYTES_MAX (8u << 20)
#define RANK_WAITS 1024 /* unanswered requests of a rank */
#define BIG 300000 /* bytes of a rank: more than go in one message between nodes */

/* ---- speaking ---- */

static int say_bytes(struct net_node *node, const void *data, size_t len)
{
	struct payload *p = payload_copy(data, len);
	int rc = pmi_server_pmix_input(node->server, p);

	payload_unref(p);
	return rc;
}

static int say(struct net_node *node, const struct pmix_msg *m)
{
	struct buf b;
	int rc;

	buf_init(&b, BYTES_MAX);
	assert_int_equal(pmix_msg_pack(&b, m), 0);
	rc = say_bytes(node, b.data, b.len);
	buf_free(&b);
	return rc;
}

static int say_rank(struct net *n, enum pmix_msg_type type, uint32_t rank)
{
	const struct pmix_msg m = { .type = type, .rank = rank };

	return say(net_node_of(n, rank), &m);
}

/* What came first and has not been read, in `bytes`; false: nothing did. */
static bool hear(struct net_node *node, struct pmix_msg *m, struct buf *bytes)
{
	int64_t size;

	buf_init(bytes, BYTES_MAX);
	if (!node->pmix.len)
		return false;
	size = pmix_msg_unpack(m, node->pmix.data, node->pmix.len);
	assert_true(size > 0);
	assert_int_equal(buf_append(bytes, node->pmix.data, size), 0);
	assert_int_equal(pmix_msg_unpack(m, bytes->data, bytes->len), size);
	buf_consume(&node->pmix, size);
	return true;
}

static void hello(struct net_node *node)
{
	const struct pmix_msg m = {
		.type = PMIX_MSG_HELLO, .number = PMIX_MSG_VERSION,
		.rank = PMIX_NO_RANK,
	};

	pmi_server_use_pmix(node->server, 1000, 100);
	assert_int_equal(say(node, &m), 0);
	pmi_server_topology(node->server, NULL);
	buf_clear(&node->pmix);
}

/* A step whose ranks are all served and connected. */
static struct net *serve(const struct net_options *options)
{
	struct net *n = net_create(options);

	for (uint32_t i = 0; i < NET_NODES; i++)
		hello(&n->nodes[i]);
	for (uint32_t r = 0; r < NET_RANKS; r++)
		assert_int_equal(say_rank(n, PMIX_MSG_CONNECTED, r), 0);
	return n;
}

/* ---- entering ---- */

/* ENTER while it is made. */
struct entering {
	struct pmix_msg m;
	struct buf data;
};

static void begin(struct entering *e, uint64_t id, const uint32_t *members,
		  uint32_t count)
{
	e->m = (struct pmix_msg){
		.type = PMIX_MSG_ENTER, .id = id, .op = PMIX_OP_FENCE,
		.rank = PMIX_NO_RANK,
	};
	buf_init(&e->data, BYTES_MAX);
	assert_int_equal(pmix_members_pack(&e->data, members, count), 0);
}

static void add(struct entering *e, uint32_t rank, const void *bytes, uint32_t len)
{
	const struct pmix_entry entry = { rank, len, bytes };

	assert_int_equal(pmix_entry_pack(&e->data, &entry), 0);
}

static int enter(struct entering *e, struct net_node *node)
{
	int rc;

	e->m.data = e->data.data;
	e->m.len = e->data.len;
	rc = say(node, &e->m);
	buf_free(&e->data);
	return rc;
}

static bool is_in(uint32_t rank, const uint32_t *members, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		if (members[i] == rank)
			return true;
	return count == 0;
}

/* What rank r gives: so many bytes of its own. */
static char *value_of(uint32_t rank, size_t len)
{
	char *value = malloc(len + 1);

	memset(value, 'a' + (int)rank, len);
	return value;
}

/* A node's ranks enter, each with `len` bytes, but rank 1 with nothing. */
static void enter_named(struct net_node *node, uint64_t id, enum pmix_op op,
			const char *name, const uint32_t *members, uint32_t count,
			size_t len)
{
	struct entering e;
	uint32_t own;
	const uint32_t *ranks = layout_ranks_at(node->net->layout, node->position,
						&own);

	begin(&e, id, members, count);
	e.m.op = op;
	e.m.text = name;
	e.m.text_len = strlen(name);
	for (uint32_t i = 0; i < own; i++) {
		char *value = value_of(ranks[i], len);

		if (is_in(ranks[i], members, count))
			add(&e, ranks[i], value, ranks[i] == 1 ? 0 : len);
		free(value);
	}
	assert_int_equal(enter(&e, node), 0);
}

static void enter_node(struct net_node *node, uint64_t id, const uint32_t *members,
		       uint32_t count, size_t len)
{
	enter_named(node, id, PMIX_OP_FENCE, "", members, count, len);
}

static void enter_nodes(struct net *n, uint64_t id, size_t len)
{
	for (uint32_t i = 0; i < NET_NODES; i++)
		enter_node(&n->nodes[i], id, NULL, 0, len);
}

static void assert_entries(const struct pmix_msg *m, const uint32_t *ranks,
			   uint32_t count, size_t len)
{
	struct pmix_entry entry;
	struct cursor c;

	cursor_init(&c, m->data, m->len);
	for (uint32_t i = 0; i < count; i++) {
		char *value = value_of(ranks[i], len);

		assert_true(pmix_entry_next(&c, &entry));
		assert_int_equal(entry.rank, ranks[i]);
		assert_int_equal(entry.len, len);
		assert_memory_equal(entry.bytes, value, len);
		free(value);
	}
	assert_true(cursor_done(&c));
}

/* The node hears that `id` has ended well, with what these ranks have given. */
static void assert_ended(struct net_node *node, uint64_t id, const uint32_t *ranks,
			 uint32_t count, size_t len)
{
	struct pmix_msg m;
	struct buf b;

	assert_true(hear(node, &m, &b));
	assert_int_equal(m.type, PMIX_MSG_ENDED);
	assert_int_equal(m.id, id);
	assert_int_equal(m.status, 0);
	assert_entries(&m, ranks, count, len);
	buf_free(&b);
}

static const uint32_t givers[] = { 0, 3, 2, 4, 5 }; /* in tree order */

static void assert_all_ended(struct net *n, uint64_t id, size_t len)
{
	for (uint32_t i = 0; i < NET_NODES; i++)
		assert_ended(&n->nodes[i], id, givers, 5, len);
}

/* The same, but it has failed, and that is said. */
static void assert_failed(struct net_node *node, uint64_t id, const char *why)
{
	struct pmix_msg m;
	char text[PMIX_MSG_TEXT_MAX + 1];
	struct buf b;

	assert_true(hear(node, &m, &b));
	assert_int_equal(m.type, PMIX_MSG_ENDED);
	assert_int_equal(m.id, id);
	assert_true(m.status < 0);
	assert_int_equal(m.len, 0);
	snprintf(text, sizeof(text), "%.*s", (int)m.text_len, m.text);
	if (!strstr(text, why))
		fail_msg("\"%s\" is not in \"%s\"", why, text);
	buf_free(&b);
}

static void assert_silence(struct net_node *node)
{
	assert_int_equal(node->pmix.len, 0);
}

/* ---- the beginning ---- */

static void hello_is_answered_with_the_namespace(void **state)
{
	struct net *n = net_create(NULL);
	struct net_node *node = &n->nodes[1];
	const struct pmix_msg m = {
		.type = PMIX_MSG_HELLO, .number = PMIX_MSG_VERSION,
	};
	struct pmix_nspace ns;
	struct pmix_msg got;
	struct buf b;

	pmi_server_use_pmix(node->server, 1000, 100);
	assert_int_equal(say(node, &m), 0);
	/* It may be there before any rank, which may never need it. */
	assert_int_equal(node->links_wanted, 0);
	assert_int_equal(node->topology_wanted, 1);
	assert_silence(node);
	pmi_server_topology(node->server, "/topology.xml");
	assert_true(hear(node, &got, &b));
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
	buf_free(&b);
	pmi_server_topology(node->server, "/later.xml");
	assert_silence(node);
	net_destroy(n);
}

static void a_spawned_step_has_a_parent_and_is_ready(void **state)
{
	const struct net_options o = { .spawned = true, .ends = true };
	const struct pmix_msg m = {
		.type = PMIX_MSG_HELLO, .number = PMIX_MSG_VERSION,
	};
	struct net *n = net_create(&o);
	struct pmix_nspace ns;
	struct pmix_msg got;
	struct buf b;

	pmi_server_use_pmix(n->nodes[0].server, 1000, 100);
	assert_int_equal(say(&n->nodes[0], &m), 0);
	assert_true(hear(&n->nodes[0], &got, &b));
	assert_int_equal(pmix_nspace_unpack(&ns, got.data, got.len), 0);
	assert_string_equal(ns.parent, "pmi2x.17.1");
	assert_int_equal(ns.napps, 2);
	assert_int_equal(ns.app_sizes[1], 4);
	pmix_nspace_free(&ns);
	buf_free(&b);
	assert_int_equal(n->ready, 0);
	assert_int_equal(say_rank(n, PMIX_MSG_CONNECTED, 0), 0);
	assert_int_equal(n->ready, 1);
	net_destroy(n);
}

static void another_version_is_refused(void **state)
{
	const struct pmix_msg m = {
		.type = PMIX_MSG_HELLO, .number = PMIX_MSG_VERSION + 1,
	};
	struct net *n = net_create(NULL);

	pmi_server_use_pmix(n->nodes[0].server, 1000, 100);
	assert_int_equal(say(&n->nodes[0], &m), -EPROTO);
	assert_non_null(strstr(buf_cstr(&n->log), "one release"));
	net_destroy(n);
}

/* ---- fences of all ---- */

static void a_fence_gathers_what_ranks_give(void **state)
{
	struct net *n = serve(NULL);

	for (uint64_t id = 1; id <= 3; id++) {
		enter_nodes(n, id, 10);
		net_run(n);
		assert_all_ended(n, id, 10);
	}
	net_destroy(n);
}

static void a_fence_waits_for_every_node(void **state)
{
	struct net *n = serve(NULL);

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
	net_destroy(n);
}

static void several_fences_may_be_under_way(void **state)
{
	struct net *n = serve(NULL);

	for (uint32_t i = 0; i < NET_NODES; i++) {
		enter_node(&n->nodes[i], 7, NULL, 0, 3);
		enter_node(&n->nodes[i], 5, NULL, 0, 4);
	}
	net_run(n);
	for (uint32_t i = 0; i < NET_NODES; i++) {
		assert_ended(&n->nodes[i], 7, givers, 5, 3);
		assert_ended(&n->nodes[i], 5, givers, 5, 4);
	}
	net_destroy(n);
}

static void large_data_arrive_whole(void **state)
{
	const struct net_options compressed = { .compress = true };
	const struct net_options heap = { .heap = true };
	const struct net_options *all[] = { NULL, &compressed, &heap };

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		struct net *n = serve(all[i]);

		enter_nodes(n, 1, BIG);
		net_run(n);
		assert_all_ended(n, 1, BIG);
		net_destroy(n);
	}
}

static void pmi_and_pmix_do_not_count_together(void **state)
{
	struct net *n = serve(NULL);

	for (uint32_t r = 0; r < NET_RANKS; r++)
		net_init1(n, r);
	for (uint32_t r = 0; r < NET_RANKS - 1; r++)
		assert_null(net_pmi1(n, r, "cmd=barrier_in"));
	enter_nodes(n, 1, 8);
	net_run(n);
	assert_all_ended(n, 1, 8);
	assert_non_null(net_pmi1(n, NET_RANKS - 1, "cmd=barrier_in"));
	net_destroy(n);
}

/* ---- fences of some ---- */

static void some_ranks_fence_among_themselves(void **state)
{
	static const uint32_t some[] = { 0, 2, 4 }, others[] = { 1, 3, 4, 5 };
	static const uint32_t gave[] = { 3, 4, 5 };
	struct net *n = serve(NULL);

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
	net_destroy(n);
}

static void some_fail_when_one_of_them_goes(void **state)
{
	static const uint32_t some[] = { 0, 2, 4 }, others[] = { 0, 5 };
	struct net *n = serve(NULL);

	enter_node(&n->nodes[0], 1, some, 3, 6);
	net_run(n);
	pmi_server_client_exit(net_node_of(n, 4)->server, net_slot_of(n, 4), NULL);
	net_run(n);
	assert_failed(&n->nodes[0], 1,
		      "rank 4 (node n1) exited without finalizing PMIx");
	assert_non_null(strstr(n->report, "PMIx fence of 3 ranks failed"));
	enter_node(&n->nodes[0], 2, others, 2, 6);
	enter_node(&n->nodes[2], 2, others, 2, 6);
	net_run(n);
	assert_ended(&n->nodes[0], 2, others, 2, 6);
	net_destroy(n);
}

/* ---- groups ---- */

static void groups_are_told_apart_by_name(void **state)
{
	static const char *const names[NET_NODES][2] = {
		{ "one", "other" }, { "other", "one" }, { "one", "other" },
	};
	struct net *n = serve(NULL);

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
	net_destroy(n);
}

static void a_group_is_no_fence(void **state)
{
	static const uint32_t some[] = { 0, 2 };
	struct net *n = serve(NULL);

	enter_named(&n->nodes[0], 1, PMIX_OP_CONSTRUCT, "g", NULL, 0, 4);
	enter_nodes(n, 2, 6);
	net_run(n);
	assert_all_ended(n, 2, 6);
	enter_named(&n->nodes[0], 3, PMIX_OP_CONSTRUCT, "", some, 2, 4);
	enter_named(&n->nodes[0], 4, PMIX_OP_DESTRUCT, "", some, 2, 5);
	enter_node(&n->nodes[1], 5, some, 2, 6);
	enter_named(&n->nodes[1], 6, PMIX_OP_DESTRUCT, "", some, 2, 5);
	net_run(n);
	assert_ended(&n->nodes[0], 4, some, 2, 5);
	assert_ended(&n->nodes[1], 6, some, 2, 5);
	assert_silence(&n->nodes[0]);
	assert_silence(&n->nodes[1]);
	net_destroy(n);
}

/* Of all ranks in different order than their fence, and of some. */
static void processes_connect_and_disconnect(void **state)
{
	static const uint32_t some[] = { 0, 2 };
	struct net *n = serve(NULL);

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
	net_destroy(n);
}

static void a_name_may_be_as_long_as_a_tag_of_mpi(void **state)
{
	char name[PMIX_MSG_TEXT_MAX + 1] = "";
	struct net *n = serve(NULL);

	memset(name, 'n', PMIX_MSG_TEXT_MAX);
	for (uint32_t i = 0; i < NET_NODES; i++)
		enter_named(&n->nodes[i], 1, PMIX_OP_CONSTRUCT, name, NULL, 0, 4);
	net_run(n);
	assert_all_ended(n, 1, 4);
	net_destroy(n);
}

static void a_group_fails_when_a_member_goes(void **state)
{
	static const uint32_t some[] = { 0, 2, 4 };
	struct net *n = serve(NULL);
	char text[PMI_WAIT_TEXT_MAX];

	enter_named(&n->nodes[0], 1, PMIX_OP_CONSTRUCT, "g", some, 3, 6);
	net_run(n);
	pmi_server_tell_wait(n->nodes[0].server, 60, text);
	assert_string_equal(text,
			    "PMIx group construct of 3 ranks (g): 60 s, node n0 waits for "
			    "ranks of or below these nodes: n1");
	pmi_server_client_exit(net_node_of(n, 4)->server, net_slot_of(n, 4), NULL);
	net_run(n);
	assert_failed(&n->nodes[0], 1,
		      "rank 4 (node n1) exited without finalizing PMIx");
	assert_non_null(strstr(n->report, "PMIx group construct of 3 ranks failed"));
	enter_named(&n->nodes[2], 7, PMIX_OP_DESTRUCT, "all", NULL, 0, 6);
	net_run(n);
	assert_failed(&n->nodes[2], 7, "rank 4 (node n1)");
	net_destroy(n);
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
	struct buf b;

	assert_true(hear(node, &m, &b));
	assert_int_equal(m.type, PMIX_MSG_EVENT);
	assert_int_equal(m.len, strlen(data));
	assert_memory_equal(m.data, data, m.len);
	buf_free(&b);
}

static void an_event_comes_to_the_other_nodes(void **state)
{
	const struct pmix_msg ready = { .type = PMIX_MSG_READY };
	struct net *n = serve(NULL);

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
	assert_non_null(strstr(buf_cstr(&n->log), "cannot tell the others an event"));
	net_destroy(n);
}

/* ---- direct modex ---- */

static void fetch(struct net *n, uint32_t node, uint64_t id, uint32_t rank)
{
	const struct pmix_msg m = {
		.type = PMIX_MSG_FETCH, .id = id, .rank = rank, .number = 77,
		.text = "key", .text_len = 3,
	};

	assert_int_equal(say(&n->nodes[node], &m), 0);
	net_run(n);
}

/* The node is asked for this rank; returns by what it answers. */
static uint64_t expect_asked(struct net_node *node, uint32_t rank)
{
	struct pmix_msg m;
	struct buf b;

	assert_true(hear(node, &m, &b));
	assert_int_equal(m.type, PMIX_MSG_FETCH);
	assert_int_equal(m.rank, rank);
	assert_int_equal(m.number, 77);
	assert_int_equal(m.text_len, 3);
	assert_memory_equal(m.text, "key", 3);
	buf_free(&b);
	return m.id;
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
	struct buf b;

	assert_true(hear(node, &m, &b));
	assert_int_equal(m.type, PMIX_MSG_FETCHED);
	assert_int_equal(m.id, id);
	assert_int_equal(m.status, status);
	assert_int_equal(m.len, strlen(data));
	assert_memory_equal(m.data ? m.data : "", data, m.len);
	assert_int_equal(m.text_len, strlen(why));
	assert_memory_equal(m.text ? m.text : "", why, m.text_len);
	buf_free(&b);
}

static void ready(struct net *n)
{
	for (uint32_t i = 0; i < NET_NODES; i++)
		assert_int_equal(say(&n->nodes[i], &(struct pmix_msg){
					 .type = PMIX_MSG_READY }), 0);
}

static void what_a_rank_has_committed_is_fetched(void **state)
{
	struct net *n = serve(NULL);
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
	net_destroy(n);
}

static void a_fetch_waits_for_who_is_not_ready(void **state)
{
	struct net *n = serve(NULL);

	fetch(n, 0, 1, 5);
	assert_silence(&n->nodes[2]);
	ready(n);
	answer(n, 2, expect_asked(&n->nodes[2], 5), 0, "x");
	expect_fetched(&n->nodes[0], 1, 0, "x", "");
	net_destroy(n);
}

static void a_fetch_of_nobody_is_refused(void **state)
{
	struct net *n = serve(NULL);
	struct pmix_msg m;
	struct buf b;

	ready(n);
	fetch(n, 0, 1, NET_RANKS);
	assert_true(hear(&n->nodes[0], &m, &b));
	assert_int_equal(m.type, PMIX_MSG_FETCHED);
	assert_int_equal(m.status, -EINVAL);
	buf_free(&b);
	net_destroy(n);
}

static void a_fetch_ends_with_its_rank(void **state)
{
	struct net *n = serve(NULL);

	ready(n);
	fetch(n, 0, 1, 5);
	expect_asked(&n->nodes[2], 5);
	pmi_server_client_exit(n->nodes[2].server, 0, NULL);
	net_run(n);
	expect_fetched(&n->nodes[0], 1, -ECONNRESET, "",
		       "rank 5 (node n2) exited without finalizing PMIx");
	net_destroy(n);
}

static void a_fetch_ends_with_who_serves_the_rank(void **state)
{
	struct net *n = serve(NULL);

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
	net_destroy(n);
}

/* ---- names ---- */

/* The rank publishes, takes back or looks up "key", or waits for it. */
static void ask_names(struct net *n, uint32_t rank, uint64_t id, enum names_op op,
		      uint32_t wait)
{
	struct names_item item = { .key = "key" };
	const struct names_request r = {
		.op = op, .range = NAMES_OF_NODE, .items = &item, .count = 1,
		.wait = wait,
	};
	struct pmix_msg m = { .type = PMIX_MSG_NAMES, .id = id, .rank = rank };
	struct buf b;

	item.value = op == NAMES_PUBLISH ? "value" : NULL;
	item.len = op == NAMES_PUBLISH ? 5 : 0;
	buf_init(&b, NAMES_BYTES_MAX);
	assert_int_equal(names_pack_request(&b, &r), 0);
	m.data = b.data;
	m.len = b.len;
	assert_int_equal(say(net_node_of(n, rank), &m), 0);
	buf_free(&b);
	net_run(n);
}

/* The answer: what has been found, or an error. */
static void expect_named(struct net *n, uint32_t rank, uint64_t id, int error,
			 uint32_t found)
{
	struct names_answer a;
	struct pmix_msg m;
	struct buf b;

	assert_true(hear(net_node_of(n, rank), &m, &b));
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
	buf_free(&b);
}

/* Nobody has answered it. */
static void expect_unnamed(struct net *n, uint32_t rank, uint64_t id, int status,
			   const char *why)
{
	struct pmix_msg m;
	char text[PMIX_MSG_TEXT_MAX + 1];
	struct buf b;

	assert_true(hear(net_node_of(n, rank), &m, &b));
	assert_int_equal(m.type, PMIX_MSG_NAMED);
	assert_int_equal(m.id, id);
	assert_int_equal(m.status, status);
	assert_int_equal(m.len, 0);
	snprintf(text, sizeof(text), "%.*s", (int)m.text_len, m.text);
	assert_non_null(strstr(text, why));
	buf_free(&b);
}

/* Ranks 0 and 3 are on a node; who asks is said by the agent. */
static void what_a_rank_publishes_is_found(void **state)
{
	struct net *n = serve(NULL);

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
	net_destroy(n);
}

static void without_srun_nothing_is_found(void **state)
{
	const struct net_options o = { .no_launcher = true };
	struct net *n = serve(&o);

	ask_names(n, 3, 1, NAMES_LOOKUP, 1);
	pmi_server_control_lost(net_node_of(n, 3)->server, "it was killed");
	expect_unnamed(n, 3, 1, -ENOTCONN, "it was killed");
	ask_names(n, 3, 2, NAMES_LOOKUP, 1);
	expect_unnamed(n, 3, 2, -ENOTCONN, "");
	net_destroy(n);
}

static void requests_about_names_that_cannot_be_are_refused(void **state)
{
	struct net *n = serve(NULL);
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
	net_destroy(n);
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
	struct pmix_msg m = { .type = PMIX_MSG_NAMES, .id = id, .rank = rank };
	struct buf b;

	buf_init(&b, NAMES_BYTES_MAX);
	assert_int_equal(names_pack_request(&b, &r), 0);
	m.data = b.data;
	m.len = b.len;
	assert_int_equal(say(net_node_of(n, rank), &m), 0);
	buf_free(&b);
	net_run(n);
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

static void exit_of(struct net *n, uint32_t rank, const struct pmi_exit *end)
{
	pmi_server_client_exit(net_node_of(n, rank)->server, net_slot_of(n, rank), end);
	net_run(n);
}

/* What rank 5 waits for with wait_for_rank_3 never comes. */
static void expect_that_rank_3_has_ended(struct net *n)
{
	struct names_answer a;
	struct pmix_msg m = {};
	struct buf b;

	assert_true(hear(net_node_of(n, 5), &m, &b));
	assert_int_equal(m.type, PMIX_MSG_NAMED);
	assert_int_equal(names_unpack_answer(&a, m.data, m.len), 0);
	assert_int_equal(a.error, -ECONNRESET);
	free(a.items);
	buf_free(&b);
	assert_string_equal(n->report, "pmi2x.17.2 cannot connect with rank 3 (node n0) of pmi2x.17.2, which has ended without it");
}

static void nobody_waits_for_a_rank_of_a_spawned_step_that_has_ended(void **state)
{
	struct net *n = spawn_step();

	wait_for_rank_3(n, 5, 1);
	exit_of(n, 1, NULL);
	assert_silence(net_node_of(n, 5));
	exit_of(n, 3, &(struct pmi_exit){ .status = 0 });
	expect_that_rank_3_has_ended(n);
	net_destroy(n);
}

static void nobody_waits_for_the_first_rank_to_start_that_has_ended(void **state)
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
		net_destroy(n);
	}
}

static void who_has_gone_waits_for_no_name(void **state)
{
	struct net *n = serve(NULL);
	struct pmix_msg m;
	struct buf b;

	ask_names(n, 5, 1, NAMES_LOOKUP, 1);
	pmi_server_client_exit(n->nodes[2].server, 0, NULL);
	for (m.type = 0; m.type != PMIX_MSG_NAMED; buf_free(&b))
		assert_true(hear(&n->nodes[2], &m, &b));
	assert_int_equal(m.id, 1);
	assert_true(m.status < 0);
	net_destroy(n);
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
	struct buf b;

	assert_true(hear(net_node_of(n, rank), &m, &b));
	assert_int_equal(m.type, PMIX_MSG_SPAWNED);
	assert_int_equal(m.id, id);
	assert_int_equal(m.status, status);
	assert_int_equal(m.text_len, strlen(said));
	assert_memory_equal(m.text, said, m.text_len);
	buf_free(&b);
}

static void a_spawn_is_answered_with_its_namespace(void **state)
{
	struct net *n = serve(NULL);
	const struct pmix_msg none = { .type = PMIX_MSG_SPAWN, .id = 9, .rank = 5,
				       .data = "none", .len = 4 };

	ask_spawn(n, 5, 7);
	assert_int_equal(n->spawn_procs, 3);
	assert_silence(net_node_of(n, 5));
	launcher_spawned(n->launcher, n->spawn_token, 0, "17.3");
	net_run(n);
	expect_spawned(n, 5, 7, 0, "pmi2x.17.3");
	ask_spawn(n, 5, 8);
	launcher_spawned(n->launcher, n->spawn_token, PMI_RC_FAIL, "no room");
	net_run(n);
	expect_spawned(n, 5, 8, -ENOTCONN, "no room");
	assert_int_equal(say(net_node_of(n, 5), &none), 0);
	expect_spawned(n, 5, 9, -EPROTO, strerror(EPROTO));
	net_destroy(n);
}

/* Also when it ends well, and none of its step minds. */
static void nobody_waits_for_a_rank_that_has_spawned_and_ended(void **state)
{
	struct net *n = serve(NULL);

	ask_spawn(n, 3, 7);
	launcher_spawned(n->launcher, n->spawn_token, 0, "17.3");
	net_run(n);
	expect_spawned(n, 3, 7, 0, "pmi2x.17.3");
	wait_for_rank_3(n, 5, 1);
	for (uint32_t rank = 1; rank <= 3; rank += 2) {
		assert_silence(net_node_of(n, 5));
		assert_int_equal(say_rank(n, PMIX_MSG_FINALIZED, rank), 0);
		exit_of(n, rank, &(struct pmi_exit){ .status = 0 });
	}
	expect_that_rank_3_has_ended(n);
	net_destroy(n);
}

/* ---- ends of ranks ---- */

static void who_goes_without_goodbye_is_named(void **state)
{
	const struct pmi_exit end = { .status = 9 };
	struct net *n = serve(NULL);
	struct pmix_msg m;
	struct buf b;

	enter_node(&n->nodes[0], 1, NULL, 0, 4);
	net_run(n);
	pmi_server_client_exit(n->nodes[2].server, 0, &end);
	net_run(n);
	assert_failed(&n->nodes[0], 1,
		      "rank 5 (node n2) exited by signal 9 (Killed) without finalizing PMIx");
	assert_non_null(strstr(n->report, "PMIx fence 0 failed: rank 5"));
	assert_int_equal(n->reports, 1);
	enter_node(&n->nodes[1], 2, NULL, 0, 4);
	assert_failed(&n->nodes[1], 2, "rank 5 (node n2)");
	assert_true(hear(&n->nodes[2], &m, &b));
	assert_int_equal(m.type, PMIX_MSG_GONE);
	assert_int_equal(m.rank, 5);
	assert_int_equal(m.number, 1);
	buf_free(&b);
	net_destroy(n);
}

/* libpmix does not tell of a fence that waits for a rank of its own node. */
static void who_never_came_and_failed_ends_the_step(void **state)
{
	const struct net_options o = { .ends = true };
	const struct pmi_exit end = { .status = 9 };
	struct net *n = net_create(&o);
	const struct net_node *node = &n->nodes[0];

	hello(&n->nodes[0]);
	exit_of(n, 3, &end);
	assert_int_equal(node->ends, 0); /* it may be that nobody speaks PMIx */
	assert_int_equal(say_rank(n, PMIX_MSG_CONNECTED, 0), 0);
	assert_int_equal(node->ends, 1);
	assert_string_equal(node->end_why,
			    "rank 3 (node n0) exited by signal 9 (Killed) without starting PMI");
	net_destroy(n);
	n = net_create(&o);
	hello(&n->nodes[0]);
	assert_int_equal(say_rank(n, PMIX_MSG_CONNECTED, 0), 0);
	exit_of(n, 3, NULL);
	assert_int_equal(n->nodes[0].ends, 0); /* nobody knows */
	net_destroy(n);
	n = net_create(&o);
	hello(&n->nodes[0]);
	assert_int_equal(say_rank(n, PMIX_MSG_CONNECTED, 0), 0);
	exit_of(n, 3, &end);
	assert_int_equal(n->nodes[0].ends, 1);
	net_destroy(n);
}

/* It may be that it is missed: clients may do without it, too. */
static void who_never_came_and_ended_well_is_told_of(void **state)
{
	const struct pmi_exit end = { .status = 0 };
	struct net *n = net_create(NULL);
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
	net_destroy(n);
}

static void a_goodbye_is_no_death(void **state)
{
	struct net *n = serve(NULL);

	enter_nodes(n, 1, 4);
	net_run(n);
	assert_all_ended(n, 1, 4);
	assert_true(pmi_server_client_end_matters(n->nodes[2].server, 0));
	assert_int_equal(say_rank(n, PMIX_MSG_FINALIZED, 5), 0);
	assert_false(pmi_server_client_end_matters(n->nodes[2].server, 0));
	pmi_server_client_exit(n->nodes[2].server, 0, NULL);
	net_run(n);
	for (uint32_t i = 0; i < NET_NODES; i++)
		assert_silence(&n->nodes[i]);
	assert_int_equal(n->reports, 0);
	enter_node(&n->nodes[0], 2, NULL, 0, 4);
	assert_failed(&n->nodes[0], 2, "exited after finalizing PMIx");
	net_destroy(n);
}

static void a_rank_may_start_over(void **state)
{
	struct net *n = serve(NULL);

	for (uint32_t r = 0; r < NET_RANKS; r++) {
		assert_int_equal(say_rank(n, PMIX_MSG_FINALIZED, r), 0);
		assert_int_equal(say_rank(n, PMIX_MSG_CONNECTED, r), 0);
	}
	enter_nodes(n, 1, 4);
	net_run(n);
	assert_all_ended(n, 1, 4);
	net_destroy(n);
}

static void pmi_fd_need_not_stay_open(void **state)
{
	struct net *n = serve(NULL);

	for (uint32_t r = 0; r < NET_RANKS; r++)
		net_eof(n, r);
	enter_nodes(n, 1, 4);
	net_run(n);
	assert_all_ended(n, 1, 4);
	net_destroy(n);
}

static void the_goodbye_of_one_protocol_is_not_that_of_the_other(void **state)
{
	struct net *n = serve(NULL);

	net_init1(n, 5);
	net_pmi1(n, 5, "cmd=finalize");
	assert_true(pmi_server_client_end_matters(n->nodes[2].server, 0));
	enter_node(&n->nodes[0], 1, NULL, 0, 4);
	pmi_server_client_exit(n->nodes[2].server, 0, NULL);
	net_run(n);
	assert_failed(&n->nodes[0], 1, "without finalizing PMIx");
	net_destroy(n);
}

static void an_abort_names_the_rank(void **state)
{
	const struct pmix_msg m = {
		.type = PMIX_MSG_ABORT, .id = 17, .rank = 4, .status = 7,
		.text = "no\nway", .text_len = 6,
	};
	struct net *n = serve(NULL);
	struct pmix_msg answer;
	struct buf b;

	assert_int_equal(say(&n->nodes[1], &m), 0);
	assert_int_equal(n->abort_code, 7);
	assert_string_equal(n->abort_text, "4 no?way");
	assert_true(hear(&n->nodes[1], &answer, &b));
	assert_int_equal(answer.type, PMIX_MSG_ABORTED);
	assert_int_equal(answer.id, 17);
	buf_free(&b);
	net_destroy(n);
}

/* ---- ends of who serves them ---- */

static void its_death_fails_fences_everywhere(void **state)
{
	static const uint32_t some[] = { 0, 2 };
	struct net *n = serve(NULL);

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
	net_destroy(n);
}

static void its_end_after_the_ranks_is_none(void **state)
{
	struct net *n = serve(NULL);

	for (uint32_t r = 0; r < NET_RANKS; r++)
		assert_int_equal(say_rank(n, PMIX_MSG_FINALIZED, r), 0);
	pmi_server_client_exit(n->nodes[2].server, 0, NULL);
	pmi_server_pmix_lost(n->nodes[2].server, "PMIx server of node n2 died");
	net_run(n);
	assert_int_equal(n->reports, 0);
	enter_node(&n->nodes[0], 1, NULL, 0, 4);
	assert_failed(&n->nodes[0], 1, "rank 5 (node n2) exited after");
	net_destroy(n);
}

static void who_never_came_is_not_missed(void **state)
{
	struct net *n = net_create(NULL);

	pmi_server_use_pmix(n->nodes[0].server, 1000, 100);
	pmi_server_pmix_lost(n->nodes[0].server, "PMIx server of node n0 died");
	net_run(n);
	assert_int_equal(n->reports, 0);
	for (uint32_t r = 0; r < NET_RANKS; r++)
		net_init1(n, r);
	net_destroy(n);
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

static void a_node_that_never_serves_is_named(void **state)
{
	struct net *n = miss_pmix_at_n2();

	assert_silence(&n->nodes[0]);
	pmi_server_link_up(n->nodes[2].server, 0);
	net_run(n);
	assert_failed(&n->nodes[0], 1, "node n2 has no libpmix");
	enter_node(&n->nodes[1], 2, NULL, 0, 4);
	assert_failed(&n->nodes[1], 2, "node n2 has no libpmix");
	assert_string_equal(n->report, "PMIx fence 0 failed: node n2 has no libpmix");
	net_destroy(n);
}

/* Who does not find it may end at once. */
static void a_node_that_never_serves_is_named_before_its_ranks(void **state)
{
	struct net *n = miss_pmix_at_n2();

	pmi_server_client_exit(n->nodes[2].server, 0, &(struct pmi_exit){ .status = 256 });
	net_run(n);
	assert_failed(&n->nodes[0], 1, "node n2 has no libpmix");
	net_destroy(n);
}

static void where_ranks_speak_pmi_nobody_misses_pmix(void **state)
{
	struct net *n = miss_pmix_at_n2();

	net_init1(n, 5);
	pmi_server_link_up(n->nodes[2].server, 0);
	net_run(n);
	assert_silence(&n->nodes[0]);
	assert_int_equal(n->reports, 0);
	net_destroy(n);
}

static void who_cannot_serve_says_why(void **state)
{
	const struct pmix_msg m = {
		.type = PMIX_MSG_REFUSED, .rank = PMIX_NO_RANK,
		.text = "no libpmix", .text_len = 10,
	};
	struct net *n = net_create(NULL);

	for (uint32_t i = 0; i < NET_NODES; i++)
		hello(&n->nodes[i]);
	enter_node(&n->nodes[0], 1, NULL, 0, 4);
	assert_int_equal(say(&n->nodes[2], &m), 0);
	net_run(n);
	assert_int_equal(n->reports, 2); /* that, and what fails by it */
	assert_non_null(strstr(n->report, "node n2 cannot serve PMIx: no libpmix"));
	assert_failed(&n->nodes[0], 1, "node n2 cannot serve PMIx: no libpmix");
	net_destroy(n);
}

static void answers_wait_for_the_end_of_the_step(void **state)
{
	const struct net_options o = { .ends = true };
	struct net *n = serve(&o);
	struct pmix_msg m;
	struct buf b;

	enter_node(&n->nodes[0], 1, NULL, 0, 4);
	pmi_server_client_exit(n->nodes[2].server, 0, NULL);
	net_run(n);
	assert_int_equal(n->nodes[0].ends, 1);
	assert_non_null(strstr(n->nodes[0].end_why, "PMIx fence 0 failed: rank 5"));
	assert_silence(&n->nodes[0]);
	assert_true(hear(&n->nodes[2], &m, &b));
	assert_int_equal(m.type, PMIX_MSG_GONE);
	assert_int_equal(m.number, 0); /* nobody need be told */
	buf_free(&b);
	pmi_server_answer_failed(n->nodes[0].server);
	assert_failed(&n->nodes[0], 1, "rank 5");
	net_destroy(n);
}

/* ---- what cannot be ---- */

/* It is refused, for this, and a fence of all can be entered all the same. */
static void refuse(struct entering *e, const char *why)
{
	struct net *n = serve(NULL);

	assert_int_equal(enter(e, &n->nodes[1]), 0);
	assert_failed(&n->nodes[1], 3, why);
	enter_nodes(n, 4, 5);
	net_run(n);
	assert_all_ended(n, 4, 5);
	net_destroy(n);
}

static void entries_that_cannot_be_are_refused(void **state)
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
	refuse(&e, "rank 2 is no member");
	begin(&e, 3, none, 2);
	refuse(&e, "is no member");
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

static void an_id_serves_one_at_a_time(void **state)
{
	struct net *n = serve(NULL);

	enter_node(&n->nodes[1], 3, NULL, 0, 4);
	enter_node(&n->nodes[1], 3, NULL, 0, 4);
	assert_failed(&n->nodes[1], 3, "File exists");
	enter_node(&n->nodes[0], 1, NULL, 0, 4);
	enter_node(&n->nodes[2], 1, NULL, 0, 4);
	net_run(n);
	assert_ended(&n->nodes[1], 3, givers, 5, 4);
	enter_node(&n->nodes[1], 3, NULL, 0, 4);
	assert_silence(&n->nodes[1]);
	net_destroy(n);
}

static void who_breaks_the_rules_is_shut_out(void **state)
{
	const struct pmix_msg wrong[] = {
		{ .type = PMIX_MSG_HELLO, .number = PMIX_MSG_VERSION },
		{ .type = PMIX_MSG_NSPACE },
		{ .type = PMIX_MSG_ENDED },
		{ .type = PMIX_MSG_READY, .nspace = 1 },
	};
	struct net *n = serve(NULL);

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_int_equal(say(&n->nodes[0], &wrong[i]), -EPROTO);
	assert_int_equal(say_bytes(&n->nodes[0], "x", 1), -EPROTO);
	net_destroy(n);
	n = net_create(NULL);
	pmi_server_use_pmix(n->nodes[0].server, 1000, 100);
	assert_int_equal(say(&n->nodes[0], &(struct pmix_msg){
				 .type = PMIX_MSG_READY }), -EPROTO);
	net_destroy(n);
}

static void it_speaks_for_its_own_ranks_only(void **state)
{
	static const enum pmix_msg_type types[] = {
		PMIX_MSG_CONNECTED, PMIX_MSG_FINALIZED, PMIX_MSG_ABORT,
	};
	struct net *n = serve(NULL);

	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		for (uint32_t rank = 1; rank < 9; rank += 7)
			assert_int_equal(say(&n->nodes[0], &(struct pmix_msg){
						 .type = types[i], .rank = rank }),
					 0);
	assert_string_equal(n->abort_text, "");
	buf_clear(&n->nodes[0].pmix); /* each abort has been answered */
	enter_nodes(n, 1, 4);
	net_run(n);
	assert_all_ended(n, 1, 4);
	net_destroy(n);
}

/* ---- without memory ---- */

static bool has_ended(struct net_node *node)
{
	struct pmix_msg m;
	struct buf b;
	bool ended = false;

	while (!ended && hear(node, &m, &b)) {
		ended = m.type == PMIX_MSG_ENDED;
		buf_free(&b);
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
	/* It was refused, entered nothing, and can try again. */
	if (pmi_server_pending(n->nodes[0].server)) {
		enter_named(&n->nodes[1], 2, op, "", members, count, 4);
		net_run(n);
	}
	if (!has_ended(&n->nodes[0]))
		fail_msg("allocation %d: node 0 waits", number);
	buf_free(&b);
	buf_free(&data);
	net_destroy(n);
	return failed;
}

static void without_memory_nobody_waits(void **state)
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hello_is_answered_with_the_namespace),
		cmocka_unit_test(a_spawned_step_has_a_parent_and_is_ready),
		cmocka_unit_test(another_version_is_refused),
		cmocka_unit_test(a_fence_gathers_what_ranks_give),
		cmocka_unit_test(a_fence_waits_for_every_node),
		cmocka_unit_test(several_fences_may_be_under_way),
		cmocka_unit_test(large_data_arrive_whole),
		cmocka_unit_test(pmi_and_pmix_do_not_count_together),
		cmocka_unit_test(some_ranks_fence_among_themselves),
		cmocka_unit_test(some_fail_when_one_of_them_goes),
		cmocka_unit_test(groups_are_told_apart_by_name),
		cmocka_unit_test(a_group_is_no_fence),
		cmocka_unit_test(processes_connect_and_disconnect),
		cmocka_unit_test(a_name_may_be_as_long_as_a_tag_of_mpi),
		cmocka_unit_test(a_group_fails_when_a_member_goes),
		cmocka_unit_test(an_event_comes_to_the_other_nodes),
		cmocka_unit_test(what_a_rank_has_committed_is_fetched),
		cmocka_unit_test(a_fetch_waits_for_who_is_not_ready),
		cmocka_unit_test(a_fetch_of_nobody_is_refused),
		cmocka_unit_test(a_fetch_ends_with_its_rank),
		cmocka_unit_test(a_fetch_ends_with_who_serves_the_rank),
		cmocka_unit_test(what_a_rank_publishes_is_found),
		cmocka_unit_test(
			nobody_waits_for_a_rank_of_a_spawned_step_that_has_ended),
		cmocka_unit_test(
			nobody_waits_for_the_first_rank_to_start_that_has_ended),
		cmocka_unit_test(without_srun_nothing_is_found),
		cmocka_unit_test(requests_about_names_that_cannot_be_are_refused),
		cmocka_unit_test(who_has_gone_waits_for_no_name),
		cmocka_unit_test(a_spawn_is_answered_with_its_namespace),
		cmocka_unit_test(nobody_waits_for_a_rank_that_has_spawned_and_ended),
		cmocka_unit_test(who_goes_without_goodbye_is_named),
		cmocka_unit_test(who_never_came_and_failed_ends_the_step),
		cmocka_unit_test(who_never_came_and_ended_well_is_told_of),
		cmocka_unit_test(a_goodbye_is_no_death),
		cmocka_unit_test(a_rank_may_start_over),
		cmocka_unit_test(pmi_fd_need_not_stay_open),
		cmocka_unit_test(the_goodbye_of_one_protocol_is_not_that_of_the_other),
		cmocka_unit_test(an_abort_names_the_rank),
		cmocka_unit_test(its_death_fails_fences_everywhere),
		cmocka_unit_test(its_end_after_the_ranks_is_none),
		cmocka_unit_test(who_never_came_is_not_missed),
		cmocka_unit_test(a_node_that_never_serves_is_named),
		cmocka_unit_test(
			a_node_that_never_serves_is_named_before_its_ranks),
		cmocka_unit_test(where_ranks_speak_pmi_nobody_misses_pmix),
		cmocka_unit_test(who_cannot_serve_says_why),
		cmocka_unit_test(answers_wait_for_the_end_of_the_step),
		cmocka_unit_test(entries_that_cannot_be_are_refused),
		cmocka_unit_test(an_id_serves_one_at_a_time),
		cmocka_unit_test(who_breaks_the_rules_is_shut_out),
		cmocka_unit_test(it_speaks_for_its_own_ranks_only),
		cmocka_unit_test(without_memory_nobody_waits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
