/* SPDX-License-Identifier: BSD-3-Clause */
/* The wire form of messages: round trips, truncation, nonsense. */
#include "unit.h"

#include <errno.h>

#include "libcoll/fetch.h"

static const struct coll_msg samples[] = {
	{ .type = COLL_MSG_UP, .kind = COLL_FENCE, .seq = 7 },
	{ .type = COLL_MSG_UP, .kind = COLL_GATHER, .seq = UINT32_MAX - 1 },
	{ .type = COLL_MSG_UP, .kind = COLL_RING, .seq = 1,
	  .count = 1ull << 40, .left_len = 17 },
	{ .type = COLL_MSG_UP, .kind = COLL_GATHER, .seq = 9, .more = true },
	{ .type = COLL_MSG_DOWN, .kind = COLL_FENCE, .seq = 0 },
	{ .type = COLL_MSG_DOWN, .kind = COLL_FENCE, .seq = 0,
	  .size = 1ull << 35 },
	{ .type = COLL_MSG_REST, .kind = COLL_GATHER, .seq = 5 },
	{ .type = COLL_MSG_DOWN, .kind = COLL_GATHER, .seq = 3, .failed = true,
	  .fault = { .reason = "no memory" } },
	{ .type = COLL_MSG_DOWN, .kind = COLL_RING, .seq = 2, .count = 5,
	  .total = 1ull << 50, .left_len = 3 },
	{ .type = COLL_MSG_FAULT,
	  .fault = { .from = { 1, COLL_NEVER, 3 },
		     .reason = "rank 3 on node n1 was killed" } },
	{ .type = COLL_MSG_FAULT, .fault = { .from = { 0, 0, 0 } } },
	{ .type = COLL_MSG_SUB_UP,
	  .subset = { .key = "0123456789abcde", .members = 3, .above = { 4, 7 },
		      .nabove = 2, .last = true } },
	{ .type = COLL_MSG_SUB_UP, .failed = true,
	  .subset = { .key = "0123456789abcde", .members = 1u << 31 },
	  .fault = { .reason = "no memory" } },
	{ .type = COLL_MSG_SUB_DOWN, .subset = { .key = "1" } },
	{ .type = COLL_MSG_SUB_DOWN, .failed = true, .subset = { .key = "1" },
	  .fault = { .reason = "no memory" } },
	{ .type = COLL_MSG_SUB_OPEN, .subset = { .key = "2", .first = 64 } },
	{ .type = COLL_MSG_SUB_FAIL, .subset = { .key = "3", .first = 1 },
	  .fault = { .reason = "rank 3 on node n1 was killed" } },
	{ .type = COLL_MSG_FETCH, .fetch = { .id = UINT32_MAX, .op = 2,
	  .rank = 9, .timeout = COLL_FETCH_FOREVER } },
	{ .type = COLL_MSG_FETCHED, .fetch = { .id = 1 } },
	{ .type = COLL_MSG_FETCHED, .fault = { .reason = "it has gone" },
	  .fetch = { .id = 1, .status = COLL_FETCH_GONE } },
	{ .type = COLL_MSG_FLOOD },
	{ .type = COLL_MSG_SERIES, .kind = COLL_PMIX, .seq = 2 * COLL_SERIES,
	  .fault = { .reason = "why" } },
};

#define SAMPLES (sizeof(samples) / sizeof(samples[0]))

static void assert_same(const struct coll_msg *a, const struct coll_msg *b)
{
	assert_int_equal(a->type, b->type);
	assert_int_equal(a->kind, b->kind);
	assert_int_equal(a->seq, b->seq);
	assert_int_equal(a->count, b->count);
	assert_int_equal(a->total, b->total);
	assert_int_equal(a->left_len, b->left_len);
	assert_int_equal(a->failed, b->failed);
	assert_int_equal(a->more, b->more);
	assert_int_equal(a->size, b->size);
	assert_memory_equal(a->fault.from, b->fault.from,
			    sizeof(a->fault.from));
	assert_string_equal(a->fault.reason, b->fault.reason);
	assert_memory_equal(&a->fetch, &b->fetch, sizeof(a->fetch));
	assert_memory_equal(a->subset.key, b->subset.key, COLL_KEY_SIZE);
	assert_int_equal(a->subset.first, b->subset.first);
	assert_int_equal(a->subset.members, b->subset.members);
	assert_int_equal(a->subset.nabove, b->subset.nabove);
	assert_memory_equal(a->subset.above, b->subset.above,
			    sizeof(a->subset.above));
	assert_int_equal(a->subset.last, b->subset.last);
}

TEST(comes_back_and_leaves_the_body)
{
	for (size_t i = 0; i < SAMPLES; i++) {
		struct coll_msg msg;
		struct cursor c;
		struct buf b;

		buf_init(&b, 4096);
		assert_int_equal(coll_msg_pack(&b, &samples[i]), 0);
		assert_int_equal(buf_puts(&b, "body"), 0);
		cursor_init(&c, b.data, b.len);
		assert_int_equal(coll_msg_unpack(&c, &msg), 0);
		assert_same(&msg, &samples[i]);
		assert_int_equal(cursor_left(&c), 4);
		buf_free(&b);
	}
}

TEST(refuses_every_truncation)
{
	for (size_t i = 0; i < SAMPLES; i++) {
		struct buf b;

		buf_init(&b, 4096);
		assert_int_equal(coll_msg_pack(&b, &samples[i]), 0);
		for (size_t len = 0; len < b.len; len++) {
			char *exact = malloc(len + 1); /* for the sanitizer */
			struct coll_msg msg;
			struct cursor c;

			memcpy(exact, b.data, len);
			cursor_init(&c, exact, len);
			assert_int_equal(coll_msg_unpack(&c, &msg), -EPROTO);
			free(exact);
		}
		buf_free(&b);
	}
}

TEST(a_full_buffer_stays_as_it_was)
{
	for (size_t i = 0; i < SAMPLES; i++) {
		struct buf whole;

		buf_init(&whole, 4096);
		coll_msg_pack(&whole, &samples[i]);
		for (size_t limit = 1; limit < whole.len; limit++) {
			struct buf b;

			buf_init(&b, limit);
			buf_puts(&b, "x");
			assert_int_equal(coll_msg_pack(&b, &samples[i]),
					 -ENOBUFS);
			assert_int_equal(b.len, 1);
			buf_free(&b);
		}
		buf_free(&whole);
	}
}

TEST(a_header_that_goes_on_is_refused)
{
	struct coll_msg msg;
	struct buf b;

	buf_init(&b, 4096);
	coll_msg_pack(&b, &samples[0]);
	assert_int_equal(coll_msg_read(b.data, b.len, &msg), 0);
	buf_append(&b, "x", 1);
	assert_int_equal(coll_msg_read(b.data, b.len, &msg), -EPROTO);
	buf_free(&b);
}

TEST(refuses_nonsense)
{
	struct coll_msg msg;

	/* no such type; no such kind; the number that means never */
	assert_int_equal(coll_msg_read("\x08\x00\0\0\0\0", 6, &msg), -EPROTO);
	assert_int_equal(coll_msg_read("\xff\x00\0\0\0\0", 6, &msg), -EPROTO);
	assert_int_equal(coll_msg_read("\x00\x03\0\0\0\0", 6, &msg), -EPROTO);
	assert_int_equal(coll_msg_read("\x00\x00\xff\xff\xff\xff", 6, &msg), -EPROTO);
	assert_int_equal(coll_msg_read("\x00\x00\x01\0\0\0\0", 7, &msg), 0);
	/* a result of a form that is none */
	assert_int_equal(coll_msg_read("\x01\x00\x01\0\0\0\x00\x01\0\0\0\0\0\0\0",
				       15, &msg), 0);
	assert_int_equal(coll_msg_read("\x01\x00\x01\0\0\0\x02\x01\0\0\0\0\0\0\0",
				       15, &msg), -EPROTO);
}

/* More nodes above than a tree is deep; all meet above, but nowhere. */
TEST(refuses_a_path_that_cannot_be)
{
	struct coll_msg msg = { .type = COLL_MSG_SUB_UP };
	struct buf b;

	buf_init(&b, 4096);
	msg.subset.nabove = COLL_DEPTH_MAX;
	assert_int_equal(coll_msg_pack(&b, &msg), 0);
	assert_int_equal(coll_msg_read(b.data, b.len, &msg), 0);
	b.data[1 + COLL_KEY_SIZE + 6]++;
	buf_append(&b, "1234", 4);
	assert_int_equal(coll_msg_read(b.data, b.len, &msg), -EPROTO);
	buf_clear(&b);
	msg.subset.nabove = 0;
	msg.subset.last = true;
	assert_int_equal(coll_msg_pack(&b, &msg), 0);
	assert_int_equal(coll_msg_read(b.data, b.len, &msg), -EPROTO);
	buf_free(&b);
}

TEST(refuses_a_reason_that_is_too_long)
{
	char reason[COLL_REASON_MAX + 1];
	struct coll_msg msg;
	struct buf b;

	memset(reason, 'x', sizeof(reason));
	for (size_t len = COLL_REASON_MAX - 1; len <= COLL_REASON_MAX; len++) {
		buf_init(&b, 4096);
		pack_u8(&b, COLL_MSG_FAULT);
		for (int i = 0; i < COLL_KINDS; i++)
			pack_u32(&b, 0);
		pack_bytes(&b, reason, len);
		assert_int_equal(coll_msg_read(b.data, b.len, &msg),
				 len < COLL_REASON_MAX ? 0 : -EPROTO);
		buf_free(&b);
	}
}

TEST(a_reason_cannot_steer_a_terminal)
{
	struct coll_msg msg = { .type = COLL_MSG_FAULT };
	struct buf b;

	strcpy(msg.fault.reason, "a\x1b[2Jb\nc\x9b" "d");
	buf_init(&b, 4096);
	assert_int_equal(coll_msg_pack(&b, &msg), 0);
	assert_int_equal(coll_msg_read(b.data, b.len, &msg), 0);
	assert_string_equal(msg.fault.reason, "a?[2Jb?c?d");
	buf_free(&b);
}

TEST(kinds_have_the_names_that_users_know)
{
	assert_string_equal(coll_kind_name(COLL_FENCE), "fence");
	assert_string_equal(coll_kind_name(COLL_GATHER), "allgather");
	assert_string_equal(coll_kind_name(COLL_RING), "ring");
	assert_string_equal(coll_kind_name(COLL_PMIX), "PMIx fence");
	assert_non_null(coll_kind_name(COLL_KINDS));
}
