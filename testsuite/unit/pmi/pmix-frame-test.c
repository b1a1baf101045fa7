/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages of pmi2x-pmixd taken out of a stream that comes in any portions. */
#include "unit.h"

#include <errno.h>

#include "libpmi/pmix_frame.h"
#include "libpmi/pmix_msg.h"

#define MESSAGES 6

/* Messages of these sizes, one behind the other; the last is larger than a growth. */
static void fill(struct buf *b)
{
	static const size_t sizes[MESSAGES] = { 0, 5, 5000, 1, 70, 700000 };
	char *data = malloc(sizes[MESSAGES - 1]);

	buf_init(b, SIZE_MAX);
	for (uint32_t i = 0; i < MESSAGES; i++) {
		memset(data, 'a' + (int)i, sizes[i]);
		assert_int_equal(pmix_msg_pack(b, &(struct pmix_msg){
			.type = PMIX_MSG_FETCHED, .id = i, .data = data,
			.len = sizes[i] }), 0);
	}
	free(data);
}

/* The message with the next id, and all its bytes. */
static void check(const struct payload *message, uint32_t id)
{
	struct pmix_msg m;

	assert_int_equal(pmix_msg_unpack(&m, message->data, message->len),
			 message->len);
	assert_int_equal(m.id, id);
	for (size_t i = 0; i < m.len; i++)
		assert_int_equal(((const char *)m.data)[i], 'a' + (int)id);
}

static uint32_t take(struct pmix_frame *f, uint32_t count)
{
	struct payload *message;

	while (pmix_frame_next(f, &message) > 0) {
		check(message, count++);
		payload_unref(message);
	}
	return count;
}

/* Bytes [at, at+n) of the stream; how many messages have been complete by then. */
static uint32_t feed(struct pmix_frame *f, const char *bytes, size_t n, uint32_t count)
{
	while (n) {
		void *to;
		size_t room = pmix_frame_room(f, &to);

		assert_true(room > 0);
		room = room < n ? room : n;
		memcpy(to, bytes, room);
		pmix_frame_filled(f, room);
		bytes += room;
		n -= room;
		count = take(f, count);
	}
	return count;
}

TEST(messages_are_whole_however_they_come)
{
	static const size_t portions[] = { 1, 3, 4, 7, 37, 4095, 4096, 4097, 1 << 20 };
	struct buf b;

	fill(&b);
	for (size_t p = 0; p < sizeof(portions) / sizeof(*portions); p++) {
		struct pmix_frame f;
		uint32_t count = 0;

		pmix_frame_init(&f, NULL);
		for (size_t at = 0; at < b.len; at += portions[p]) {
			size_t n = b.len - at;

			count = feed(&f, b.data + at,
				     n < portions[p] ? n : portions[p], count);
		}
		assert_int_equal(count, MESSAGES);
		pmix_frame_free(&f);
	}
	buf_free(&b);
}

TEST(one_message_that_comes_in_two_parts_is_whole)
{
	struct buf b;

	buf_init(&b, SIZE_MAX);
	assert_int_equal(pmix_msg_pack(&b, &(struct pmix_msg){
		.type = PMIX_MSG_FETCHED, .data = "aaaa", .len = 4 }), 0);
	for (size_t at = 0; at <= b.len; at++) {
		struct pmix_frame f;

		pmix_frame_init(&f, NULL);
		assert_int_equal(feed(&f, b.data, at, 0), at == b.len);
		assert_int_equal(feed(&f, b.data + at, b.len - at, at == b.len), 1);
		pmix_frame_free(&f);
	}
	buf_free(&b);
}

/* A message of 1 GiB is announced: no more is held than has come, and as much again. */
TEST(memory_follows_the_bytes_that_come)
{
	struct budget budget = { .limit = 1 << 20 };
	struct pmix_frame f;
	struct payload *message;
	unsigned char zeros[1 << 16] = { 0 };
	const unsigned char length[PMIX_MSG_LENGTH_BYTES] = { 0, 0, 0, 0x40 };
	void *to;
	size_t come = sizeof(length);
	int rc = 0;

	pmix_frame_init(&f, &budget);
	assert_true(pmix_frame_room(&f, &to) >= sizeof(length));
	memcpy(to, length, sizeof(length));
	pmix_frame_filled(&f, sizeof(length));
	assert_int_equal(pmix_frame_next(&f, &message), 0);
	while (!rc) {
		size_t n = pmix_frame_room(&f, &to);

		assert_true(f.message->len <= 262144 || f.message->len <= 2 * come);
		n = n < sizeof(zeros) ? n : sizeof(zeros);
		memcpy(to, zeros, n);
		pmix_frame_filled(&f, n);
		come += n;
		rc = pmix_frame_next(&f, &message);
	}
	assert_int_equal(rc, -ENOMEM);
	assert_int_equal(come, budget.limit);
	pmix_frame_free(&f);
	assert_int_equal(budget.used, 0);
}

TEST(an_invalid_length_is_rejected)
{
	static const unsigned char lengths[][PMIX_MSG_LENGTH_BYTES] = {
		{ 0, 0, 0, 0 }, { 1, 0, 0, 0 }, { 1, 0, 0, 0x40 },
		{ 0xff, 0xff, 0xff, 0xff },
	};

	for (size_t i = 0; i < sizeof(lengths) / sizeof(*lengths); i++) {
		struct pmix_frame f;
		struct payload *message;
		void *to;

		pmix_frame_init(&f, NULL);
		pmix_frame_room(&f, &to);
		memcpy(to, lengths[i], sizeof(lengths[i]));
		pmix_frame_filled(&f, sizeof(lengths[i]));
		assert_int_equal(pmix_frame_next(&f, &message), -EPROTO);
		pmix_frame_free(&f);
	}
}
