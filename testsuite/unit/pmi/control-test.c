/* SPDX-License-Identifier: BSD-3-Clause */
/* Control messages: what goes in comes out; nothing else comes in. */
#include "unit.h"

#include <errno.h>

#include "libpmi/control.h"

static struct buf packed(const struct control_msg *msg)
{
	struct buf b;

	buf_init(&b, CONTROL_FRAME_MAX);
	assert_int_equal(control_pack(&b, msg), 0);
	return b;
}

static struct control_msg example(enum control_type type)
{
	const struct control_msg msg = {
		.type = type, .origin = 70000, .id = 0xfffffffe, .rank = 17,
		.code = -5, .name = "name", .text = "tag#0$port",
		.body = "\0body", .body_len = 5,
	};

	return msg;
}

/* In memory of exactly that size, so that the sanitizer sees every overrun. */
static int unpack_exact(const void *data, size_t len, struct control_msg *msg,
			char **copy)
{
	*copy = malloc(len ? len : 1);
	memcpy(*copy, data, len);
	return control_unpack(*copy, len, msg);
}

TEST(every_type_comes_back)
{
	for (int type = 0; type < CONTROL_TYPES; type++) {
		struct control_msg msg = example(type), back;
		struct buf b = packed(&msg);
		enum control_type peeked;
		uint32_t origin;
		char *copy;

		assert_int_equal(control_peek(b.data, b.len, &peeked, &origin),
				 0);
		assert_int_equal(peeked, type);
		assert_int_equal(origin, 70000);
		assert_int_equal(unpack_exact(b.data, b.len, &back, &copy), 0);
		assert_int_equal(back.type, type);
		assert_int_equal(back.origin, msg.origin);
		assert_int_equal(back.id, msg.id);
		assert_int_equal(back.rank, msg.rank);
		assert_int_equal(back.code, msg.code);
		assert_string_equal(back.name, msg.name);
		assert_string_equal(back.text, msg.text);
		assert_int_equal(back.body_len, 5);
		assert_memory_equal(back.body, msg.body, 5);
		control_free(&back);
		free(copy);
		buf_free(&b);
	}
}

TEST(requests_are_answered_and_news_are_not)
{
	assert_true(control_has_reply(CONTROL_SPAWN));
	assert_true(control_has_reply(CONTROL_PUBLISH));
	assert_true(control_has_reply(CONTROL_UNPUBLISH));
	assert_true(control_has_reply(CONTROL_LOOKUP));
	assert_true(control_has_reply(CONTROL_NAMES));
	assert_false(control_has_reply(CONTROL_ABORT));
	assert_false(control_has_reply(CONTROL_REPORT));
	assert_false(control_has_reply(CONTROL_NOTE));
	assert_false(control_has_reply(CONTROL_READY));
	assert_false(control_has_reply(CONTROL_STARTED));
	assert_false(control_has_reply(CONTROL_REPLY));
}

TEST(missing_texts_arrive_empty)
{
	struct control_msg msg = { .type = CONTROL_READY }, back;
	struct buf b = packed(&msg);

	assert_int_equal(control_unpack(b.data, b.len, &back), 0);
	assert_string_equal(back.name, "");
	assert_string_equal(back.text, "");
	assert_int_equal(back.body_len, 0);
	control_free(&back);
	buf_free(&b);
}

TEST(every_other_length_is_refused)
{
	struct control_msg msg = example(CONTROL_PUBLISH), back;
	struct buf b = packed(&msg);
	char *copy;

	for (size_t len = 0; len < b.len; len++) {
		assert_int_equal(unpack_exact(b.data, len, &back, &copy),
				 -EPROTO);
		free(copy);
	}
	buf_append(&b, "", 1);
	assert_int_equal(control_unpack(b.data, b.len, &back), -EPROTO);
	buf_free(&b);
}

TEST(unknown_types_are_refused)
{
	struct control_msg msg = example(CONTROL_LOOKUP), back;
	struct buf b = packed(&msg);
	enum control_type type;
	uint32_t origin;

	b.data[0] = CONTROL_TYPES;
	assert_int_equal(control_unpack(b.data, b.len, &back), -EPROTO);
	assert_int_equal(control_peek(b.data, b.len, &type, &origin), -EPROTO);
	assert_int_equal(control_peek(b.data, 4, &type, &origin), -EPROTO);
	buf_free(&b);
}

TEST(texts_with_a_nul_are_refused)
{
	struct control_msg msg = example(CONTROL_PUBLISH), back;
	struct buf b = packed(&msg);
	char *name = memchr(b.data, 'n', b.len);

	name[1] = '\0';
	assert_int_equal(control_unpack(b.data, b.len, &back), -EPROTO);
	buf_free(&b);
}

TEST(long_texts_are_not_sent)
{
	struct control_msg msg = { .type = CONTROL_REPORT }, back;
	struct buf b;

	msg.text = malloc(CONTROL_TEXT_MAX + 2);
	memset(msg.text, 'x', CONTROL_TEXT_MAX + 1);
	msg.text[CONTROL_TEXT_MAX + 1] = '\0';
	buf_init(&b, CONTROL_FRAME_MAX);
	assert_int_equal(control_pack(&b, &msg), -EMSGSIZE);
	assert_int_equal(b.len, 0);
	msg.text[CONTROL_TEXT_MAX] = '\0';
	assert_int_equal(control_pack(&b, &msg), 0);
	assert_int_equal(control_unpack(b.data, b.len, &back), 0);
	control_free(&back);
	buf_free(&b);
	free(msg.text);
}
