/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages of who serves PMIx clients, and namespaces, as bytes and back. */
#include "unit.h"

#include <errno.h>

#include "libpmi/pmix_msg.h"
#include "libpmi/pmix_nspace.h"
#include "scarce-memory.h"

#define BYTES_MAX (1u << 20)
#define HEAD_BYTES 40 /* of a message without text and data */

/* ---- messages ---- */

static const struct pmix_msg full = {
	.type = PMIX_MSG_ENDED, .nspace = 1, .id = 1ull << 40, .rank = 7,
	.status = -5, .number = 9, .op = PMIX_OP_DESTRUCT,
	.text = "why", .text_len = 3, .data = "da\0ta", .len = 5,
};

static void assert_same(const struct pmix_msg *a, const struct pmix_msg *b)
{
	assert_int_equal(a->type, b->type);
	assert_int_equal(a->nspace, b->nspace);
	assert_int_equal(a->id, b->id);
	assert_int_equal(a->rank, b->rank);
	assert_int_equal(a->status, b->status);
	assert_int_equal(a->number, b->number);
	assert_int_equal(a->op, b->op);
	assert_int_equal(a->text_len, b->text_len);
	assert_int_equal(a->len, b->len);
	if (a->text_len)
		assert_memory_equal(a->text, b->text, a->text_len);
	if (a->len)
		assert_memory_equal(a->data, b->data, a->len);
}

TEST(a_message_comes_back)
{
	const struct pmix_msg small = {
		.type = PMIX_MSG_READY, .rank = PMIX_NO_RANK,
	};
	struct pmix_msg m;
	struct buf b;
	int64_t size;

	buf_init(&b, BYTES_MAX);
	assert_int_equal(pmix_msg_pack(&b, &full), 0);
	assert_int_equal(pmix_msg_pack(&b, &small), 0);
	size = pmix_msg_unpack(&m, b.data, b.len);
	assert_int_equal(size, HEAD_BYTES + 8);
	assert_int_equal(pmix_msg_size(b.data), size);
	assert_same(&m, &full);
	assert_int_equal(pmix_msg_unpack(&m, b.data + size, b.len - size),
			 HEAD_BYTES);
	assert_same(&m, &small);
	buf_free(&b);
}

TEST(a_message_is_there_with_its_last_byte)
{
	struct pmix_msg m;
	struct buf b;

	buf_init(&b, BYTES_MAX);
	assert_int_equal(pmix_msg_pack(&b, &full), 0);
	for (size_t len = 0; len < b.len; len++)
		assert_int_equal(pmix_msg_unpack(&m, b.data, len), 0);
	assert_int_equal(pmix_msg_unpack(&m, b.data, b.len), b.len);
	buf_free(&b);
}

TEST(the_data_may_come_behind_the_head)
{
	struct buf head, whole;

	buf_init(&head, BYTES_MAX);
	buf_init(&whole, BYTES_MAX);
	assert_int_equal(pmix_msg_pack_head(&head, &full), 0);
	assert_int_equal(buf_append(&head, full.data, full.len), 0);
	assert_int_equal(pmix_msg_pack(&whole, &full), 0);
	assert_int_equal(head.len, whole.len);
	assert_memory_equal(head.data, whole.data, whole.len);
	buf_free(&head);
	buf_free(&whole);
}

TEST(invalid_messages_are_rejected)
{
	unsigned char bytes[HEAD_BYTES + 4] = { HEAD_BYTES - 4 };
	struct pmix_msg m;

	assert_int_equal(pmix_msg_unpack(&m, bytes, sizeof(bytes)), -EPROTO);
	bytes[4] = PMIX_MSG_TYPES;
	assert_int_equal(pmix_msg_unpack(&m, bytes, sizeof(bytes)), -EPROTO);
	bytes[4] = PMIX_MSG_READY;
	assert_int_equal(pmix_msg_unpack(&m, bytes, sizeof(bytes)), HEAD_BYTES);
	bytes[HEAD_BYTES - 4] = 1; /* a text that is not there */
	assert_int_equal(pmix_msg_unpack(&m, bytes, sizeof(bytes)), -EPROTO);
	bytes[HEAD_BYTES - 4] = 0;
	bytes[0]--;
	assert_int_equal(pmix_msg_unpack(&m, bytes, sizeof(bytes)), -EPROTO);
	bytes[3] = 0x40; /* over PMIX_MSG_BYTES_MAX, also before it has come */
	assert_int_equal(pmix_msg_unpack(&m, bytes, 4), -EPROTO);
	assert_int_equal(pmix_msg_size(bytes), -EPROTO);
}

TEST(too_large_messages_are_not_packed)
{
	struct pmix_msg m = full;
	struct buf b;

	buf_init(&b, HEAD_BYTES);
	m.text_len = PMIX_MSG_TEXT_MAX + 1;
	assert_int_equal(pmix_msg_pack(&b, &m), -EMSGSIZE);
	m = full;
	m.len = PMIX_MSG_BYTES_MAX;
	assert_int_equal(pmix_msg_pack(&b, &m), -EMSGSIZE);
	assert_int_equal(pmix_msg_pack(&b, &full), -ENOBUFS);
	assert_int_equal(b.len, 0);
	buf_free(&b);
}

/* ---- members and entries ---- */

TEST(members_and_entries_come_back)
{
	static const uint32_t members[] = { 2, 5, 9 };
	const struct pmix_entry entries[] = { { 5, 3, "abc" }, { 2, 0, NULL } };
	struct pmix_entry e;
	uint32_t *ranks, count;
	struct cursor c;
	struct buf b;

	buf_init(&b, BYTES_MAX);
	assert_int_equal(pmix_members_pack(&b, members, 3), 0);
	for (int i = 0; i < 2; i++)
		assert_int_equal(pmix_entry_pack(&b, &entries[i]), 0);
	cursor_init(&c, b.data, b.len);
	assert_int_equal(pmix_members_unpack(&c, &ranks, &count, 3), 0);
	assert_int_equal(count, 3);
	assert_memory_equal(ranks, members, sizeof(members));
	free(ranks);
	assert_true(pmix_entry_next(&c, &e));
	assert_int_equal(e.rank, 5);
	assert_int_equal(e.len, 3);
	assert_memory_equal(e.bytes, "abc", 3);
	assert_true(pmix_entry_next(&c, &e));
	assert_int_equal(e.rank, 2);
	assert_int_equal(e.len, 0);
	assert_false(pmix_entry_next(&c, &e));
	assert_true(cursor_ok(&c));
	buf_free(&b);
}

TEST(half_an_entry_is_none)
{
	const struct pmix_entry one = { 5, 3, "abc" };
	struct pmix_entry e;
	struct cursor c;
	struct buf b;

	buf_init(&b, BYTES_MAX);
	assert_int_equal(pmix_entry_pack(&b, &one), 0);
	for (size_t len = 1; len < b.len; len++) {
		cursor_init(&c, b.data, len);
		assert_false(pmix_entry_next(&c, &e));
		assert_false(cursor_ok(&c));
	}
	buf_free(&b);
}

TEST(too_many_members_are_refused)
{
	static const uint32_t members[] = { 2, 5, 9 };
	uint32_t *ranks, count;
	struct cursor c;
	struct buf b;

	buf_init(&b, BYTES_MAX);
	assert_int_equal(pmix_members_pack(&b, members, 3), 0);
	cursor_init(&c, b.data, b.len);
	assert_int_equal(pmix_members_unpack(&c, &ranks, &count, 2), -EPROTO);
	cursor_init(&c, b.data, b.len - 1);
	assert_int_equal(pmix_members_unpack(&c, &ranks, &count, 3), -EPROTO);
	assert_null(ranks);
	buf_free(&b);
}

/* ---- namespaces ---- */

#define NODES 2
#define RANKS 4

static const uint32_t counts[NODES] = { 3, 1 };
static const uint32_t ranks0[] = { 0, 1, 3 }, ranks1[] = { 2 };
static const char *names[NODES] = { "n0", "n1" };
static uint32_t apps[] = { 1, 3 }, numbers[] = { 1, 0 };

static struct pmix_nspace nspace(void)
{
	static const uint32_t *const ranks[NODES] = { ranks0, ranks1 };
	struct pmix_nspace n = {
		.name = "pmi2x.17.2", .position = 1, .node_names = names,
		.universe_size = 12, .app_sizes = apps, .app_numbers = numbers, .napps = 2,
		.uid = 1000,
		.gid = 100, .parent = "pmi2x.17.1", .parent_rank = 3,
		.topology = "/x.xml",
	};

	assert_int_equal(layout_create(&n.layout, NODES, RANKS, counts, ranks), 0);
	return n;
}

static void pack_nspace(struct buf *b, const struct pmix_nspace *n)
{
	buf_init(b, BYTES_MAX);
	assert_int_equal(pmix_nspace_pack(b, n), 0);
}

TEST(a_namespace_comes_back)
{
	struct pmix_nspace n = nspace(), back;
	uint32_t count;
	struct buf b;

	pack_nspace(&b, &n);
	assert_int_equal(pmix_nspace_unpack(&back, b.data, b.len), 0);
	memset(b.data, 0xff, b.len);
	assert_string_equal(back.name, n.name);
	assert_int_equal(back.position, 1);
	assert_int_equal(layout_ranks(back.layout), RANKS);
	assert_int_equal(layout_ranks_at(back.layout, 0, &count)[2], 3);
	assert_string_equal(back.node_names[0], "n0");
	assert_string_equal(back.node_names[1], "n1");
	assert_int_equal(back.universe_size, 12);
	assert_int_equal(back.napps, 2);
	assert_int_equal(back.app_sizes[1], 3);
	assert_int_equal(back.app_numbers[0], 1);
	assert_int_equal(back.uid, 1000);
	assert_int_equal(back.gid, 100);
	assert_string_equal(back.parent, n.parent);
	assert_int_equal(back.parent_rank, 3);
	assert_string_equal(back.topology, n.topology);
	pmix_nspace_free(&back);
	layout_destroy(n.layout);
	buf_free(&b);
}

TEST(part_of_a_namespace_is_none)
{
	struct pmix_nspace n = nspace(), back;
	struct buf b;

	pack_nspace(&b, &n);
	for (size_t len = 0; len < b.len; len++)
		assert_int_equal(pmix_nspace_unpack(&back, b.data, len), -EPROTO);
	assert_int_equal(buf_append(&b, "x", 1), 0);
	assert_int_equal(pmix_nspace_unpack(&back, b.data, b.len), -EPROTO);
	layout_destroy(n.layout);
	buf_free(&b);
}

static void refuse_nspace(struct pmix_nspace *n)
{
	struct pmix_nspace back;
	struct buf b;

	pack_nspace(&b, n);
	assert_int_equal(pmix_nspace_unpack(&back, b.data, b.len), -EPROTO);
	buf_free(&b);
}

TEST(a_namespace_makes_sense)
{
	struct pmix_nspace n = nspace();
	char name[PMIX_NSPACE_NAME_MAX + 2];

	n.position = NODES;
	refuse_nspace(&n);
	n.position = 0;
	n.napps = 1;
	refuse_nspace(&n);
	n.napps = 0;
	n.name = NULL;
	refuse_nspace(&n);
	memset(name, 'x', sizeof(name));
	name[sizeof(name) - 1] = '\0';
	n.name = name;
	refuse_nspace(&n);
	layout_destroy(n.layout);
}

TEST(a_namespace_without_memory_is_none)
{
	struct pmix_nspace n = nspace(), back;
	int rc = -ENOMEM, fail = 0;
	struct buf b;

	pack_nspace(&b, &n);
	for (; rc; fail++) {
		allowed = fail;
		rc = pmix_nspace_unpack(&back, b.data, b.len);
		allowed = -1;
		assert_true(!rc || rc == -ENOMEM);
	}
	assert_true(fail > 5);
	pmix_nspace_free(&back);
	layout_destroy(n.layout);
	buf_free(&b);
}
