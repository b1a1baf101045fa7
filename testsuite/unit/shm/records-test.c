/* SPDX-License-Identifier: BSD-3-Clause */
/* KVS records: round trip, limits, and every damage refused or in bounds. */
#include "unit.h"

#include <errno.h>

#include "libshm/records.h"

TEST(round_trip_with_any_bytes)
{
	struct record r;
	struct buf b;
	size_t at = 0;

	buf_init(&b, 1000);
	assert_int_equal(record_append(&b, "key", 3, "value", 5), 0);
	assert_int_equal(record_append(&b, "k\0;", 3, "\0\n\xff", 3), 0);
	assert_int_equal(record_append(&b, "empty", 5, NULL, 0), 0);
	assert_int_equal(b.len % 4, 0);
	assert_int_equal(record_next(b.data, b.len, &at, &r), 1);
	assert_string_equal(r.key, "key");
	assert_string_equal(r.value, "value");
	assert_int_equal(record_next(b.data, b.len, &at, &r), 1);
	assert_int_equal(r.key_len, 3);
	assert_memory_equal(r.key, "k\0;", 4);
	assert_int_equal(r.value_len, 3);
	assert_memory_equal(r.value, "\0\n\xff", 4);
	assert_int_equal(record_next(b.data, b.len, &at, &r), 1);
	assert_string_equal(r.value, "");
	assert_int_equal(record_next(b.data, b.len, &at, &r), 0);
	assert_int_equal(at, b.len);
	buf_free(&b);
}

TEST(every_length_round_trips)
{
	char bytes[40];
	struct record r;
	struct buf b;

	memset(bytes, 'x', sizeof(bytes));
	for (size_t k = 1; k < 12; k++)
		for (size_t v = 0; v < 12; v++) {
			size_t at = 0;

			buf_init(&b, 100);
			assert_int_equal(record_append(&b, bytes, k, bytes, v),
					 0);
			assert_int_equal(record_next(b.data, b.len, &at, &r),
					 1);
			assert_int_equal(r.key_len, k);
			assert_int_equal(r.value_len, v);
			assert_int_equal(at, b.len);
			buf_free(&b);
		}
}

TEST(limits_are_kept_and_failures_change_nothing)
{
	char *big = calloc(1, RECORD_VALUE_MAX + 1);
	struct buf b;

	buf_init(&b, 2 * RECORD_VALUE_MAX);
	assert_int_equal(record_append(&b, "", 0, "v", 1), -EMSGSIZE);
	assert_int_equal(record_append(&b, big, RECORD_KEY_MAX + 1, "v", 1),
			 -EMSGSIZE);
	assert_int_equal(record_append(&b, "k", 1, big, RECORD_VALUE_MAX + 1),
			 -EMSGSIZE);
	assert_int_equal(b.len, 0);
	assert_int_equal(record_append(&b, big, RECORD_KEY_MAX, big,
				       RECORD_VALUE_MAX), 0);
	buf_free(&b);
	buf_init(&b, 15);
	assert_int_equal(record_append(&b, "key", 3, "v", 1), -ENOBUFS);
	assert_int_equal(b.len, 0);
	buf_free(&b);
	free(big);
}

static void make_block(struct buf *b)
{
	buf_init(b, 1000);
	record_append(b, "a", 1, "12345", 5);
	record_append(b, "bcd", 3, "", 0);
	record_append(b, "efghi", 5, "678", 3);
}

TEST(every_truncation_is_refused)
{
	struct buf b;
	size_t count;

	make_block(&b);
	assert_int_equal(records_check(b.data, b.len, &count), 0);
	assert_int_equal(count, 3);
	for (size_t cut = 1; cut < b.len; cut++) {
		char *exact = malloc(cut); /* so that ASan sees an overrun */
		int rc;

		memcpy(exact, b.data, cut);
		rc = records_check(exact, cut, &count);
		if (rc == 0) /* cut between two records */
			assert_true(count < 3);
		else
			assert_int_equal(rc, -EPROTO);
		free(exact);
	}
	buf_free(&b);
}

/* Whatever a flipped bit does, records stay inside and end where they say. */
TEST(damaged_blocks_stay_in_bounds)
{
	struct buf b;

	make_block(&b);
	for (size_t bit = 0; bit < 8 * b.len; bit++) {
		char *copy = malloc(b.len);
		struct record r;
		size_t at = 0;

		memcpy(copy, b.data, b.len);
		copy[bit / 8] ^= 1 << bit % 8;
		while (record_next(copy, b.len, &at, &r) > 0) {
			assert_true(r.value + r.value_len < copy + b.len);
			assert_int_equal(r.key[r.key_len], 0);
			assert_int_equal(r.value[r.value_len], 0);
		}
		free(copy);
	}
	buf_free(&b);
}

TEST(records_that_append_cannot_write_are_rejected)
{
	static const struct {
		const char *why;
		char bytes[16];
	} bad[] = {
		{"empty key", "\1\0\0\0\0\0\0\0\0v\0"},
		{"key not terminated", "\1\0\0\0\1\0\0\0kkv\0"},
		{"value not terminated", "\1\0\0\0\1\0\0\0k\0vv"},
		{"reserved field", "\1\0\0\0\1\0\1\0k\0v\0"},
		{"huge value", "\xff\xff\xff\xff\1\0\0\0k\0v\0"},
		{"huge key", "\1\0\0\0\xff\xff\0\0k\0v\0"},
		{"dirty padding", "\2\0\0\0\2\0\0\0kk\0vv\0x"},
	};
	struct record r;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		size_t at = 0;

		if (record_next(bad[i].bytes, 16, &at, &r) != -EPROTO)
			fail_msg("accepted: %s", bad[i].why);
		assert_int_equal(at, 0);
	}
	for (size_t at = 17; at < 40; at++)
		assert_int_equal(record_next(bad, 16, &at, &r), -EPROTO);
}
