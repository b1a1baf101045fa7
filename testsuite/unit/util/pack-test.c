/* SPDX-License-Identifier: BSD-3-Clause */
/* Packed fields: round trip, byte order, and every truncation refused. */
#include "unit.h"


#include "libutil/pack.h"

static void pack_all(struct buf *b)
{
	buf_init(b, 1000);
	pack_u8(b, 0xab);
	pack_u16(b, 0x1234);
	pack_u32(b, 0xdeadbeef);
	pack_u64(b, 0x0102030405060708);
	pack_bytes(b, "a\0b", 3);
	pack_str(b, "text");
}

static void unpack_all(struct cursor *c)
{
	size_t n;
	const void *bytes;

	unpack_u8(c);
	unpack_u16(c);
	unpack_u32(c);
	unpack_u64(c);
	bytes = unpack_bytes(c, 100, &n);
	assert_true(!bytes || n == 3);
	unpack_bytes(c, 100, &n);
}

TEST(round_trip)
{
	struct buf b;
	struct cursor c;
	size_t n;

	pack_all(&b);
	assert_int_equal((unsigned char)b.data[1], 0x34); /* little-endian */
	cursor_init(&c, b.data, b.len);
	assert_int_equal(unpack_u8(&c), 0xab);
	assert_int_equal(unpack_u16(&c), 0x1234);
	assert_int_equal(unpack_u32(&c), 0xdeadbeef);
	assert_true(unpack_u64(&c) == 0x0102030405060708);
	assert_memory_equal(unpack_bytes(&c, 3, &n), "a\0b", 3);
	assert_memory_equal(unpack_bytes(&c, 4, &n), "text", 4);
	assert_int_equal(n, 4);
	assert_true(cursor_done(&c));
	buf_free(&b);
}

TEST(every_truncation_fails)
{
	struct buf b;
	struct cursor c;

	pack_all(&b);
	for (size_t cut = 0; cut < b.len; cut++) {
		cursor_init(&c, b.data, cut);
		unpack_all(&c);
		assert_false(cursor_ok(&c));
		assert_int_equal(cursor_left(&c), 0);
	}
	buf_free(&b);
}

TEST(limits_are_checked)
{
	struct buf b;
	struct cursor c;
	size_t n;

	buf_init(&b, 100);
	pack_bytes(&b, "a\0b", 3);
	cursor_init(&c, b.data, b.len);
	assert_null(unpack_bytes(&c, 2, &n));
	assert_int_equal(n, 0);
	assert_false(cursor_ok(&c));
	buf_free(&b);
}
