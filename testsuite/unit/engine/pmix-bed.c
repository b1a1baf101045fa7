/* SPDX-License-Identifier: BSD-3-Clause */
/* Speaks as the servers of PMIx clients do, and hears. */
#include "pmix-bed.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- speaking ---- */

int say_bytes(struct net_node *node, const void *data, size_t len)
{
	struct payload *p = payload_copy(data, len);
	int rc = pmi_server_pmix_input(node->server, p);

	payload_unref(p);
	return rc;
}

int say(struct net_node *node, const struct pmix_msg *m)
{
	struct buf b;
	int rc;

	buf_init(&b, BYTES_MAX);
	assert_int_equal(pmix_msg_pack(&b, m), 0);
	rc = say_bytes(node, b.data, b.len);
	buf_free(&b);
	return rc;
}

int say_rank(struct net *n, enum pmix_msg_type type, uint32_t rank)
{
	const struct pmix_msg m = { .type = type, .rank = rank };

	return say(net_node_of(n, rank), &m);
}

bool hear(struct net_node *node, struct pmix_msg *m)
{
	struct buf *bytes = &node->heard;
	int64_t size;

	buf_free(bytes);
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

void hello(struct net_node *node)
{
	const struct pmix_msg m = {
		.type = PMIX_MSG_HELLO, .number = PMIX_MSG_VERSION,
		.rank = PMIX_NO_RANK,
	};

	pmi_server_use_pmix(node->server, 1000, 100, 60000);
	assert_int_equal(say(node, &m), 0);
	pmi_server_topology(node->server, NULL);
	buf_clear(&node->pmix);
}

struct net *serve(const struct net_options *options)
{
	struct net *n = net_create(options);

	for (uint32_t i = 0; i < NET_NODES; i++)
		hello(&n->nodes[i]);
	for (uint32_t r = 0; r < NET_RANKS; r++)
		assert_int_equal(say_rank(n, PMIX_MSG_CONNECTED, r), 0);
	return n;
}

/* ---- entering ---- */

void begin(struct entering *e, uint64_t id, const uint32_t *members,
	   uint32_t count)
{
	e->m = (struct pmix_msg){
		.type = PMIX_MSG_ENTER, .id = id, .op = PMIX_OP_FENCE,
		.rank = PMIX_NO_RANK,
	};
	buf_init(&e->data, BYTES_MAX);
	assert_int_equal(pmix_members_pack(&e->data, members, count), 0);
}

void add(struct entering *e, uint32_t rank, const void *bytes, uint32_t len)
{
	const struct pmix_entry entry = { rank, len, bytes };

	assert_int_equal(pmix_entry_pack(&e->data, &entry), 0);
}

int enter(struct entering *e, struct net_node *node)
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

/* The value of rank r: `len` bytes of its own. */
static char *value_of(uint32_t rank, size_t len)
{
	char *value = malloc(len + 1);

	memset(value, 'a' + (int)rank, len);
	return value;
}

void enter_named(struct net_node *node, uint64_t id, enum pmix_op op,
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

void enter_node(struct net_node *node, uint64_t id, const uint32_t *members,
		uint32_t count, size_t len)
{
	enter_named(node, id, PMIX_OP_FENCE, "", members, count, len);
}

void enter_nodes(struct net *n, uint64_t id, size_t len)
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

void assert_ended(struct net_node *node, uint64_t id, const uint32_t *ranks,
		  uint32_t count, size_t len)
{
	struct pmix_msg m;

	assert_true(hear(node, &m));
	assert_int_equal(m.type, PMIX_MSG_ENDED);
	assert_int_equal(m.id, id);
	assert_int_equal(m.status, 0);
	assert_entries(&m, ranks, count, len);
}

const uint32_t givers[] = { 0, 3, 2, 4, 5 };

void assert_all_ended(struct net *n, uint64_t id, size_t len)
{
	for (uint32_t i = 0; i < NET_NODES; i++)
		assert_ended(&n->nodes[i], id, givers, 5, len);
}

void fence(struct net *n, uint64_t id, size_t len)
{
	enter_nodes(n, id, len);
	net_run(n);
	assert_all_ended(n, id, len);
}

void assert_failed(struct net_node *node, uint64_t id, const char *why)
{
	struct pmix_msg m;
	char text[PMIX_MSG_TEXT_MAX + 1];

	assert_true(hear(node, &m));
	assert_int_equal(m.type, PMIX_MSG_ENDED);
	assert_int_equal(m.id, id);
	assert_true(m.status < 0);
	assert_int_equal(m.len, 0);
	snprintf(text, sizeof(text), "%.*s", (int)m.text_len, m.text);
	if (!strstr(text, why))
		fail_msg("\"%s\" is not in \"%s\"", why, text);
}

void assert_silence(struct net_node *node)
{
	assert_int_equal(node->pmix.len, 0);
}

/* ---- others ---- */

void ready(struct net *n)
{
	for (uint32_t i = 0; i < NET_NODES; i++)
		assert_int_equal(say(&n->nodes[i], &(struct pmix_msg){
					 .type = PMIX_MSG_READY }), 0);
}

void exit_of(struct net *n, uint32_t rank, const struct pmi_exit *end)
{
	pmi_server_client_exit(net_node_of(n, rank)->server, net_slot_of(n, rank), end);
	net_run(n);
}
