/* SPDX-License-Identifier: BSD-3-Clause */
/* Growable buffers: content, limits, failures that change nothing. */
#include "unit.h"

#include <errno.h>

#include "libutil/buf.h"

TEST(appends_in_order)
{
	struct buf b;

	buf_init(&b, 1000);
	assert_int_equal(buf_puts(&b, "ab"), 0);
	assert_int_equal(buf_printf(&b, "%d-%s", 42, "x"), 0);
	assert_int_equal(buf_append(&b, "\0z", 2), 0);
	assert_int_equal(b.len, 8);
	assert_memory_equal(b.data, "ab42-x\0z", 8);
	buf_free(&b);
}

TEST(refuses_to_pass_its_limit)
{
	struct buf b;

	buf_init(&b, 4);
	assert_int_equal(buf_puts(&b, "abc"), 0);
	assert_int_equal(buf_puts(&b, "de"), -ENOBUFS);
	assert_int_equal(buf_printf(&b, "%s", "de"), -ENOBUFS);
	assert_int_equal(buf_reserve(&b, SIZE_MAX), -ENOBUFS);
	assert_int_equal(buf_room(&b), 1);
	assert_string_equal(buf_cstr(&b), "abc");
	assert_int_equal(buf_puts(&b, "d"), 0);
	assert_string_equal(buf_cstr(&b), "abcd");
	buf_free(&b);
}

TEST(says_how_much_room_there_is)
{
	struct buf b;
	size_t room;

	buf_init(&b, 10000);
	assert_int_equal(buf_room(&b), 0);
	assert_int_equal(buf_reserve(&b, 300), 0);
	room = buf_room(&b);
	assert_true(room >= 300);
	buf_puts(&b, "abc");
	assert_int_equal(buf_room(&b), room - 3);
	buf_free(&b);
}

TEST(consumes_from_the_front)
{
	struct buf b;

	buf_init(&b, 100);
	buf_puts(&b, "hello world");
	buf_consume(&b, 6);
	assert_string_equal(buf_cstr(&b), "world");
	buf_consume(&b, 5);
	assert_int_equal(b.len, 0);
	buf_free(&b);
	assert_null(b.data);
}
