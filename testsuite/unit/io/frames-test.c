/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames out of a byte stream: every split, large bodies, what is refused. */
#include "unit.h"

#include <errno.h>

#include "libio/frames.h"
#include "libutil/buf.h"

struct seen {
	int count;
	enum frame_type types[8];
	struct payload *bodies[8];
	int stop_with;
	struct payload *room; /* where bodies of messages go, from byte 8 */
	int rooms;
};

static int see_message(void *arg, const void *head, size_t head_len,
		       struct payload *body)
{
	struct seen *seen = arg;

	assert_int_equal(head_len, 4);
	assert_memory_equal(head, "head", 4);
	seen->types[seen->count] = FRAME_COLLECTIVE;
	seen->bodies[seen->count++] = payload_ref(body);
	return seen->stop_with;
}

static struct payload *give_room(void *arg, const void *head, size_t head_len,
				 size_t len)
{
	struct seen *seen = arg;

	assert_memory_equal(head, "head", 4);
	if (!seen->room)
		return NULL;
	seen->rooms++;
	return payload_slice(seen->room, 8, len);
}

static int see(void *arg, enum frame_type type, struct payload *body)
{
	struct seen *seen = arg;

	seen->types[seen->count] = type;
	seen->bodies[seen->count++] = payload_ref(body);
	return seen->stop_with;
}

static void forget(struct seen *seen)
{
	for (int i = 0; i < seen->count; i++)
		payload_unref(seen->bodies[i]);
}

/* Feed like a stream does: what fits into the room, at most `step` bytes. */
static int feed(struct frame_reader *r, const void *data, size_t len,
		size_t step, struct seen *seen)
{
	static const struct frame_ops ops = {
		.frame = see, .message = see_message, .room = give_room,
	};
	const char *at = data;
	int rc = 0;

	while (len && !rc) {
		void *to;
		size_t n = frame_reader_room(r, &to);

		assert_true(n > 0);
		n = n < step ? n : step;
		n = n < len ? n : len;
		memcpy(to, at, n);
		rc = frame_reader_input(r, n, &ops, seen);
		at += n;
		len -= n;
	}
	return rc;
}

static void append_frame(struct buf *b, enum frame_type type, const void *body,
			 size_t len)
{
	struct payload *header = frame_header(type, NULL, 0, len);

	assert_int_equal(header->len, FRAME_HEADER_BYTES);
	buf_append(b, header->data, header->len);
	buf_append(b, body, len);
	payload_unref(header);
}

TEST(frames_survive_every_split)
{
	struct frame_reader *r = malloc(sizeof(*r));
	struct buf b;

	buf_init(&b, 1000);
	append_frame(&b, FRAME_CONTROL_UP, "hello", 5);
	append_frame(&b, FRAME_GOODBYE, "", 0);
	append_frame(&b, FRAME_COLLECTIVE, "x", 1);
	for (size_t split = 0; split <= b.len; split++) {
		struct seen seen = { 0 };

		frame_reader_init(r);
		assert_int_equal(feed(r, b.data, split, 1000, &seen), 0);
		assert_int_equal(feed(r, b.data + split, b.len - split, 1000,
				      &seen), 0);
		assert_int_equal(seen.count, 3);
		assert_int_equal(seen.types[0], FRAME_CONTROL_UP);
		assert_memory_equal(seen.bodies[0]->data, "hello", 5);
		assert_int_equal(seen.types[1], FRAME_GOODBYE);
		assert_int_equal(seen.bodies[1]->len, 0);
		assert_int_equal(seen.bodies[2]->len, 1);
		forget(&seen);
		frame_reader_free(r);
	}
	buf_free(&b);
	free(r);
}

TEST(large_bodies_arrive_whole)
{
	static const size_t sizes[] = {
		FRAME_STAGE_BYTES - FRAME_HEADER_BYTES - 1,
		FRAME_STAGE_BYTES - FRAME_HEADER_BYTES,
		FRAME_STAGE_BYTES - FRAME_HEADER_BYTES + 1,
		FRAME_FIRST_GROWTH, FRAME_FIRST_GROWTH + 1,
		5 * FRAME_FIRST_GROWTH + 3,
	};
	static const size_t steps[] = { 4093, 65536, 1 << 30 };
	struct frame_reader *r = malloc(sizeof(*r));
	unsigned char *body = malloc(6 * FRAME_FIRST_GROWTH);

	for (size_t i = 0; i < 6 * FRAME_FIRST_GROWTH; i++)
		body[i] = i * 31 >> 3;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		for (size_t k = 0; k < 3; k++) {
			struct seen seen = { 0 };
			struct buf b;

			buf_init(&b, 7 * FRAME_FIRST_GROWTH);
			append_frame(&b, FRAME_COLLECTIVE, body, sizes[i]);
			append_frame(&b, FRAME_CONTROL_DOWN, "after", 5);
			frame_reader_init(r);
			assert_int_equal(feed(r, b.data, b.len, steps[k],
					      &seen), 0);
			assert_int_equal(seen.count, 2);
			assert_int_equal(seen.bodies[0]->len, sizes[i]);
			assert_memory_equal(seen.bodies[0]->data, body,
					    sizes[i]);
			assert_memory_equal(seen.bodies[1]->data, "after", 5);
			forget(&seen);
			frame_reader_free(r);
			buf_free(&b);
		}
	}
	free(body);
	free(r);
}

/* A message behind a large body is still whole, wherever reads end. */
TEST(large_messages_go_where_they_belong)
{
	static const size_t steps[] = { 7, 63, 4093, 1 << 30 };
	size_t len = 3 * FRAME_STAGE_BYTES;
	struct frame_reader *r = malloc(sizeof(*r));
	struct payload *front = frame_header(FRAME_COLLECTIVE, "head", 4, len);
	char *body = malloc(len);

	for (size_t i = 0; i < len; i++)
		body[i] = i * 31 >> 3;
	for (size_t k = 0; k < sizeof(steps) / sizeof(*steps); k++) {
		struct seen seen = { .room = payload_new(len + 8) };
		struct buf b;

		buf_init(&b, 1 << 20);
		for (int i = 0; i < 2; i++) {
			buf_append(&b, front->data, front->len);
			buf_append(&b, body, len);
		}
		append_frame(&b, FRAME_CONTROL_DOWN, "after", 5);
		frame_reader_init(r);
		assert_int_equal(feed(r, b.data, b.len, steps[k], &seen), 0);
		assert_int_equal(seen.count, 3);
		assert_int_equal(seen.rooms, 2);
		assert_ptr_equal(seen.bodies[1]->data, seen.room->data + 8);
		assert_memory_equal(seen.room->data + 8, body, len);
		assert_memory_equal(seen.bodies[2]->data, "after", 5);
		forget(&seen);
		payload_unref(seen.room);
		frame_reader_free(r);
		buf_free(&b);
	}
	payload_unref(front);
	free(body);
	free(r);
}

TEST(an_announced_length_allocates_little)
{
	struct frame_reader *r = malloc(sizeof(*r));
	struct payload *header = frame_header(FRAME_COLLECTIVE, "head", 4,
					      FRAME_BODY_MAX);
	static const char body[2 * FRAME_STAGE_BYTES];
	struct seen seen = { 0 };

	frame_reader_init(r);
	assert_int_equal(feed(r, header->data, header->len, 100, &seen), 0);
	assert_int_equal(feed(r, body, sizeof(body), 99999, &seen), 0);
	assert_true(r->body->len <= FRAME_FIRST_GROWTH);
	assert_int_equal(seen.count, 0);
	payload_unref(header);
	frame_reader_free(r);
	free(r);
}

TEST(invalid_frames_are_rejected)
{
	static const unsigned char bad_type[] = {
		0, 0, 0, 0, FRAME_TYPES, 0, 0, 0,
	};
	static const unsigned char no_zero[] = { 0, 0, 0, 0, 1, 1, 0, 0 };
	/* A head that only another type may have, that is longer than the
	   frame, that nobody reads. */
	static const unsigned char head[][12] = {
		{ 1, 0, 0, 0, FRAME_GOODBYE, 0, 1, 0 },
		{ 1, 0, 0, 0, FRAME_COLLECTIVE, 0, 2, 0 },
		{ 0xff, 0xff, 0, 0, FRAME_COLLECTIVE, 0, 1, 4 },
	};
	static const unsigned char too_long[] = { 1, 0, 0, 0x40, 0, 0, 0, 0 };
	struct frame_reader *r = malloc(sizeof(*r));
	struct seen seen = { 0 };

	frame_reader_init(r);
	assert_int_equal(feed(r, bad_type, 8, 8, &seen), -EPROTO);
	frame_reader_init(r);
	assert_int_equal(feed(r, no_zero, 8, 8, &seen), -EPROTO);
	frame_reader_init(r);
	assert_int_equal(feed(r, too_long, 8, 8, &seen), -EMSGSIZE);
	for (int i = 0; i < 3; i++) {
		frame_reader_init(r);
		assert_int_equal(feed(r, head[i], 8, 8, &seen), -EPROTO);
	}
	free(r);
}

TEST(the_callee_can_stop)
{
	struct frame_reader *r = malloc(sizeof(*r));
	struct seen seen = { .stop_with = -ECANCELED };
	struct buf b;

	buf_init(&b, 100);
	append_frame(&b, FRAME_GOODBYE, "", 0);
	append_frame(&b, FRAME_GOODBYE, "", 0);
	frame_reader_init(r);
	assert_int_equal(feed(r, b.data, b.len, 100, &seen), -ECANCELED);
	assert_int_equal(seen.count, 1);
	forget(&seen);
	buf_free(&b);
	free(r);
}

TEST(a_frame_can_be_made_whole)
{
	struct frame_reader *r = malloc(sizeof(*r));
	struct payload *whole = frame_whole(FRAME_CONTROL_UP, "body", 4);
	struct seen seen = { 0 };

	frame_reader_init(r);
	assert_int_equal(feed(r, whole->data, whole->len, 100, &seen), 0);
	assert_int_equal(seen.count, 1);
	assert_int_equal(seen.types[0], FRAME_CONTROL_UP);
	assert_int_equal(seen.bodies[0]->len, 4);
	assert_memory_equal(seen.bodies[0]->data, "body", 4);
	forget(&seen);
	payload_unref(whole);
	free(r);
}

/* Messages of the store have a limit of their own, and must not break a link. */
TEST(only_frames_of_the_store_need_no_budget)
{
	static const enum frame_type types[] = { FRAME_STORE, FRAME_CONTROL_UP };
	static const size_t sizes[] = { 100, FRAME_STAGE_BYTES * 3 };

	for (int i = 0; i < 4; i++) {
		struct budget none = { .limit = 10 };
		struct frame_reader r;
		struct seen seen = { .count = 0 };
		char *body = calloc(1, sizes[i / 2]);
		struct buf b;

		assert_non_null(body);
		buf_init(&b, SIZE_MAX);
		frame_reader_init(&r);
		r.budget = &none;
		append_frame(&b, types[i % 2], body, sizes[i / 2]);
		assert_int_equal(feed(&r, b.data, b.len, SIZE_MAX, &seen),
				 i % 2 ? -ENOMEM : 0);
		assert_int_equal(seen.count, i % 2 ? 0 : 1);
		forget(&seen);
		frame_reader_free(&r);
		buf_free(&b);
		free(body);
	}
}
