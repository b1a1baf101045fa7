/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where a result is kept while it arrives: in the host's room as far as that reaches, else
 * as it is; whatever size its first message states.
 */
#include "unit.h"

#include <errno.h>

#include "libcoll/coll.h"

#define PIECE 4
#define TEXT "a result in pieces"
#define LEN (sizeof(TEXT) - 1)

struct host {
	struct layout *layout;
	struct coll *coll;
	bool no_room;
	size_t extends_to; /* its limit */
	size_t extended;   /* the requested size */
	struct payload *room;
	struct payload *result;
	bool failed;
};

static void op_send(void *arg, uint32_t position, const struct coll_msg *msg,
		    const struct payload_vec *body)
{
}

static struct payload *op_room(void *arg, enum coll_kind kind, uint32_t seq,
			       size_t size)
{
	struct host *h = arg;

	assert_null(h->room);
	if (h->no_room)
		return NULL;
	h->room = payload_new(size);
	return h->room;
}

static int op_extend(void *arg, struct payload *room, size_t len)
{
	struct host *h = arg;

	assert_ptr_equal(room, h->room);
	if (len > h->extends_to)
		return -ENOSPC;
	h->extended = len;
	return 0;
}

static void op_complete(void *arg, enum coll_kind kind, uint32_t seq,
			struct payload *result, const struct coll_fault *fault)
{
	struct host *h = arg;

	h->failed = fault != NULL;
	h->result = payload_ref(result);
}

static const struct coll_ops ops = {
	.send = op_send,
	.room = op_room,
	.extend = op_extend,
	.complete = op_complete,
};

/* The second of two nodes, whose rank has entered a fence. */
static void start(struct host *h)
{
	static const uint32_t counts[2] = { 1, 1 }, ranks[2] = { 0, 1 };
	static const uint32_t *const lists[2] = { ranks, ranks + 1 };
	static const struct coll_options options = {
		.tree_width = 2, .piece = PIECE,
	};
	uint32_t seq;

	assert_int_equal(layout_create(&h->layout, 2, 2, counts, lists), 0);
	assert_int_equal(coll_create(&h->coll, h->layout, 1, &options, &ops, h),
			 0);
	assert_int_equal(coll_enter(h->coll, COLL_FENCE, 0, NULL, &seq), 0);
}

static void stop(struct host *h)
{
	payload_unref(h->result);
	coll_destroy(h->coll);
	layout_destroy(h->layout);
}

/* A message of `len` bytes from `at` on, as a link that asks for a place, or not. */
static int receive(struct host *h, size_t at, size_t len, bool ask)
{
	const struct coll_msg msg = {
		.type = at ? COLL_MSG_REST : COLL_MSG_DOWN, .kind = COLL_FENCE,
		.size = at ? 0 : LEN,
	};
	struct payload *body = NULL;
	int rc;

	if (ask)
		body = coll_body_room(h->coll, 0, &msg, len);
	if (body)
		memcpy(body->data, TEXT + at, len);
	else
		body = payload_copy(TEXT + at, len);
	rc = coll_receive(h->coll, 0, &msg, body);
	payload_unref(body);
	return rc;
}

static void receive_all(struct host *h, int ask)
{
	for (size_t at = 0; at < LEN; at += PIECE) {
		size_t len = LEN - at < PIECE ? LEN - at : PIECE;
		bool asks = ask == 1 || (ask == 2 && at / PIECE % 2);

		assert_null(h->result);
		assert_int_equal(receive(h, at, len, asks), 0);
	}
	assert_non_null(h->result);
	assert_int_equal(h->result->len, LEN);
	assert_memory_equal(h->result->data, TEXT, LEN);
}

TEST(result_is_stored_in_the_given_room)
{
	for (int ask = 0; ask <= 2; ask++) {
		struct host h = { .extends_to = SIZE_MAX };

		start(&h);
		receive_all(&h, ask);
		assert_ptr_equal(h.result, h.room);
		assert_int_equal(h.extended, LEN);
		stop(&h);
	}
}

TEST(result_arrives_also_without_a_room)
{
	struct host h = { .no_room = true };

	start(&h);
	receive_all(&h, 1);
	stop(&h);
}

TEST(a_room_that_ends_is_left)
{
	for (size_t n = 0; n < LEN; n++) {
		struct host h = { .extends_to = n };

		start(&h);
		receive_all(&h, n % 3);
		assert_int_equal(h.extended, n - n % PIECE);
		stop(&h);
	}
}

TEST(the_room_is_asked_for_what_comes_only)
{
	struct host h = { .extends_to = SIZE_MAX };

	start(&h);
	assert_int_equal(receive(&h, 0, PIECE, true), 0);
	assert_int_equal(h.extended, PIECE);
	assert_int_equal(receive(&h, PIECE, 1, false), 0);
	assert_int_equal(h.extended, PIECE + 1);
	stop(&h);
}

TEST(no_message_is_longer_than_a_piece)
{
	struct host h = { .extends_to = SIZE_MAX };

	start(&h);
	assert_int_equal(receive(&h, 0, PIECE + 1, true), -EPROTO);
	assert_int_equal(receive(&h, 0, PIECE, true), 0);
	assert_int_equal(receive(&h, PIECE, PIECE + 1, false), -EPROTO);
	assert_int_equal(h.extended, PIECE);
	coll_link_lost(h.coll, 0, false, "it sent too much");
	assert_true(h.failed);
	stop(&h);
}
